package relay

import (
	"context"
	"time"

	"github.com/postrider/postrider"
)

const (
	readTimeout    = 30 * time.Second
	loopFirstPause = 100 * time.Millisecond // pauses of a loop that meets errors
	loopMaxPause   = 5 * time.Second
)

// reader reads what may be sent. There is one, so at most one read is under way.
type reader struct {
	engine  *engine
	turn    int // which shard comes first, so that none is always last
	stretch int // how many times its equal part one shard may bring; adapts to uneven shards
	gaps    *gaps
}

// readOutcome says how a read went, for the pace of the next one.
type readOutcome uint8

const (
	readNone  readOutcome = iota // nothing came
	readSome                     // all that there was came
	readMore                     // there is more
	readNoWay                    // no room, or no shard: no read was made
)

// readEvents keeps the flight filled until ctx ends.
func (e *engine) readEvents(ctx context.Context) {
	rd := &reader{engine: e, stretch: 1, gaps: newGaps(e.cfg.VersionGap)}
	idle, failures := e.cfg.PollMin, 0
	for ctx.Err() == nil {
		outcome, err := rd.read(ctx)
		if ctx.Err() != nil {
			return
		}
		e.health.note(loopRead, err)
		if err != nil {
			failures++
			sleep(ctx, pause(failures, loopFirstPause, loopMaxPause))
			continue
		}
		failures = 0
		switch outcome {
		case readMore:
			continue
		case readSome:
			idle = e.cfg.PollMin
			e.waitForWork(ctx, idle)
		case readNone:
			if e.waitForWork(ctx, idle) {
				idle = e.cfg.PollMin
			} else {
				idle = min(2*idle, e.cfg.PollMax)
			}
		case readNoWay:
			e.waitForRoom(ctx)
		}
	}
}

// waitForWork sleeps until the next poll and reports whether a hint cut it short.
func (e *engine) waitForWork(ctx context.Context, d time.Duration) (hinted bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-e.hinted:
		return true
	}
	return false
}

// waitForRoom sleeps until something was settled or the shards changed.
func (e *engine) waitForRoom(ctx context.Context) {
	t := time.NewTimer(e.cfg.PollMax)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-e.room:
	case <-e.hinted:
	}
}

func (rd *reader) read(ctx context.Context) (readOutcome, error) {
	e := rd.engine
	held := e.leases.readable(time.Now(), e.cfg.PublishTimeout)
	if len(held) == 0 {
		return readNoWay, nil
	}
	space, ok := e.flight.plan(e.cfg.MaxInFlight, e.cfg.MaxInFlightBytes)
	if !ok {
		return readNoWay, nil
	}
	req := rd.request(held, space)
	events, err := rd.fetch(ctx, req)
	kept := rd.admit(events, held, e.shutSinks(space.full))
	if err != nil {
		return readNone, err
	}
	return rd.judge(req, events, kept), nil
}

func (rd *reader) request(held []Lease, space room) ReadRequest {
	e := rd.engine
	rd.turn++
	shards := make([]int, len(held))
	for i := range held {
		shards[i] = held[(i+rd.turn)%len(held)].Shard
	}
	// Equal parts of all shards lie close together in the table, since shards are spread evenly over the ids.
	fair := (space.events + len(shards) - 1) / len(shards)
	return ReadRequest{
		Shards:   shards,
		InFlight: space.inFlight,
		Skip:     e.router.kindsOf(e.shutSinks(space.full)),
		SkipKeys: space.skipKeys,
		PerShard: min(fair*rd.stretch, space.events),
		Limit:    space.events,
		MaxBytes: space.bytes,
	}
}

func (rd *reader) fetch(ctx context.Context, req ReadRequest) ([]Event, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	start := time.Now()
	events, err := rd.engine.cfg.Store.Read(ctx, req)
	if err != nil {
		return nil, err
	}
	if restore := rd.engine.cfg.Restore; restore != nil {
		for i := range events {
			restore(&events[i])
		}
	}
	rd.engine.cfg.Hooks.read(len(events), time.Since(start))
	return events, nil
}

// judge decides the pace and adapts stretch: it grows while single shards have more than their part and the read
// still had room, and shrinks again when the whole limit is used.
func (rd *reader) judge(req ReadRequest, events []Event, kept int) readOutcome {
	perShard := make(map[int]int)
	cut := false
	bytes := 0
	for i := range events {
		shard := events[i].Shard
		perShard[shard]++
		cut = cut || perShard[shard] >= req.PerShard
		bytes += events[i].Size()
	}
	full := len(events) >= req.Limit || bytes >= req.MaxBytes
	switch {
	case full:
		rd.stretch = max(1, rd.stretch/2)
	case cut && req.PerShard < req.Limit:
		rd.stretch *= 2
	}
	switch {
	case kept == 0:
		return readNone
	case full || cut:
		return readMore
	default:
		return readSome
	}
}

// admit routes what a read brought and takes it into flight. Events without a route and malformed ones are settled
// as DEAD at once, and events before which a version is missing as waiting; the later ones of their keys come again.
func (rd *reader) admit(events []Event, held []Lease, shut map[int]bool) int {
	e := rd.engine
	leaseOf := make(map[int]Lease, len(held))
	for _, l := range held {
		leaseOf[l.Shard] = l
	}
	var sendable, waiting, hopeless []*flying
	heldKeys := make(map[string]bool) // by an event of this read
	for i := range events {
		f := &flying{event: events[i], lease: leaseOf[events[i].Shard], readAt: time.Now()}
		if !e.leases.holds(f.lease) || heldKeys[f.event.Key()] {
			continue
		}
		f.route = e.router.find(f.event.Kind())
		reason := f.event.Malformed
		if reason == nil && f.route == nil {
			reason = errNoRoute
		}
		switch {
		case reason != nil:
			hopeless = append(hopeless, e.dead(f, reason))
			heldKeys[f.event.Key()] = f.settlement.HoldsKey
		case rd.waits(f):
			waiting = append(waiting, f)
			heldKeys[f.event.Key()] = true
		case shut[f.route.sink]:
			// Its kind was not known when the read was planned; the next read skips it.
		default:
			sendable = append(sendable, f)
		}
	}
	kept := e.flight.admit(sendable, e.cfg.MaxInFlight)
	for _, f := range waiting {
		if e.flight.hold(f) {
			e.settleQueue.add(f)
		}
	}
	for _, f := range hopeless {
		if e.flight.bury(f) {
			e.settleQueue.add(f)
			kept++
		}
	}
	return kept
}

// waits decides the settlement of an event that must wait because a version before it is missing.
func (rd *reader) waits(f *flying) bool {
	found := rd.gaps.look(&f.event, f.readAt)
	if found == gapPassed {
		rd.engine.log.Warn("a version is still missing: the key goes on without it",
			"event_id", f.event.EventID, "key", f.event.Key(), "missing", *f.event.After, "after", rd.gaps.bound)
	}
	if found == gapNone || found == gapPassed {
		return false
	}
	f.settlement = rd.gaps.settlement(f, f.readAt)
	if found == gapFound {
		rd.engine.log.Warn("a version is missing: the key waits for it", "event_id", f.event.EventID, "reason", f.settlement.Error)
	}
	return true
}

// dead decides the settlement of an event that cannot be sent at all.
func (e *engine) dead(f *flying, reason error) *flying {
	onDead := e.cfg.OnDead
	if f.route != nil {
		onDead = f.route.OnDead
	}
	f.settlement = Settlement{
		ID: f.event.ID, Lease: f.lease, State: postrider.StateDead,
		RetryCount: f.event.RetryCount, Error: reason.Error(), HoldsKey: onDead == OnDeadHold && f.event.Key() != "",
	}
	f.route = nil // it holds no place of a sink
	e.log.Error("event is DEAD without having been sent", "event_id", f.event.EventID, "id", f.event.ID, "reason", reason,
		"holds_key", f.settlement.HoldsKey)
	e.cfg.Hooks.dead("", &f.event, reason.Error())
	return f
}

// shutSinks adds the sinks that take nothing at present to those that have no room.
func (e *engine) shutSinks(full map[int]bool) map[int]bool {
	shut := make(map[int]bool)
	for i := range e.sinks {
		if full[i] || e.sinkShut(i) {
			shut[i] = true
		}
	}
	return shut
}

// sinkShut says that a sink takes nothing and that an event to probe it with is at hand.
func (e *engine) sinkShut(i int) bool {
	state, _, _ := e.sinks[i].circuit.snapshot()
	return state != CircuitClosed && e.flight.sinkCount(i) > 0
}
