package relay

import (
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
)

// flight holds every event between its read and its settle, in one lane for each sink and key.
//
// With ClaimRow every event has a lane of its own.
//
// A lane sends its events in sequence: what is being sent must be acknowledged before the lane's next events
// follow. A lane whose event became DEAD waits until that is settled. A lane whose event is to be retried, or is DEAD
// and holds its key, drops its later events and refuses new ones until that is settled: from then on the store's read
// keeps the key's later events back.
type flight struct {
	mu      sync.Mutex
	claim   Claim
	events  map[string]*flying
	lanes   map[laneKey]*lane
	queues  []sinkQueue // by index of the sink
	bytes   int
	byShard map[int]int // events in flight per shard

	// A read that was planned before a retry, or what holds a key, was settled may still bring the key's later events.
	// While such a read is under way, what is settled keeps its lane shut here.
	reading   bool
	reopening []*lane
}

type laneKey struct {
	sink int    // noSink for what holds its key without having been sent
	key  string // with ClaimRow the event's id
}

const noSink = -1

type laneState uint8

const (
	laneIdle     laneState = iota // nothing is being sent; in the queue of its sink when it has events
	laneSending                   // its first events are at the sink
	laneSettling                  // waits for the settlement of a DEAD event
	laneShut                      // waits for the settlement of what the store holds the key for from then on
)

type lane struct {
	key     laneKey
	state   laneState
	waiting []*flying // read, not yet sent
	queued  bool      // stands in its sink's queue
}

// flying is one event in flight.
type flying struct {
	event      Event
	lease      Lease
	route      *route // nil when none matches
	lane       *lane  // nil when it is DEAD without having been sent, and its key goes on
	readAt     time.Time
	settlement Settlement // set once the outcome is known
}

// sinkQueue holds the lanes of one sink that have something to send.
type sinkQueue struct {
	ready    []*lane
	inFlight int
	kick     chan struct{} // has a token when there may be something to take
}

func newFlight(claim Claim, sinks int) *flight {
	f := &flight{
		claim:   claim,
		events:  make(map[string]*flying),
		lanes:   make(map[laneKey]*lane),
		queues:  make([]sinkQueue, sinks),
		byShard: make(map[int]int),
	}
	for i := range f.queues {
		f.queues[i].kick = make(chan struct{}, 1)
	}
	return f
}

// laneCap bounds the events of one lane, so that a hot key does not take the places of all others.
func laneCap(maxInFlight int) int { return max(1, maxInFlight/4) }

// room is what the next read may bring.
type room struct {
	events   int
	bytes    int
	inFlight []string
	full     map[int]bool // sinks that have no room
	skipKeys []string     // keys whose lanes take no more
}

// plan says what room there is and marks a read as under way; admit ends it. ok is false when there is too little
// room to make a read worthwhile; then no read is under way. A read walks over everything that is in flight, so while
// much is in flight it waits until half of it has left, and then fills all the room.
func (f *flight) plan(maxEvents, maxBytes int) (room, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := room{
		events: maxEvents - len(f.events),
		bytes:  maxBytes - f.bytes,
		full:   make(map[int]bool),
	}
	// Each sink has its share of the places, so that a sink that has stopped cannot hold them all.
	share := maxEvents / len(f.queues)
	for i := range f.queues {
		if left := share - f.queues[i].inFlight; left < max(1, share/2) {
			r.full[i] = true
		} else {
			r.events = min(r.events, left)
		}
	}
	if r.events < 1 || (r.bytes < maxBytes/2 && len(f.events) > 0) || len(r.full) == len(f.queues) {
		return room{}, false
	}
	r.inFlight = make([]string, 0, len(f.events))
	for id := range f.events {
		r.inFlight = append(r.inFlight, id)
	}
	for key, l := range f.lanes {
		if f.claim == ClaimShard && (l.state == laneShut || len(l.waiting) >= laneCap(maxEvents)) {
			r.skipKeys = append(r.skipKeys, key.key)
		}
	}
	f.reading = true
	return r, true
}

// admit takes in what a read brought and returns how many it kept. It must be called once after each plan that
// was ok, also when the read failed.
func (f *flight) admit(read []*flying, maxEvents int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := 0
	for _, e := range read {
		if f.admitOne(e, laneCap(maxEvents)) {
			kept++
		}
	}
	f.reading = false
	for _, l := range f.reopening {
		f.forget(l)
	}
	f.reopening = nil
	return kept
}

func (f *flight) admitOne(e *flying, laneCap int) bool {
	if _, known := f.events[e.event.ID]; known {
		return false
	}
	l := f.laneFor(f.laneKeyOf(e))
	if l.state == laneShut || len(l.waiting) >= laneCap {
		return false
	}
	e.lane = l
	l.waiting = append(l.waiting, e)
	f.add(e)
	f.enqueue(l)
	return true
}

func (f *flight) laneKeyOf(e *flying) laneKey {
	if f.claim == ClaimRow {
		return laneKey{e.route.sink, e.event.ID}
	}
	return laneKey{e.route.sink, e.event.Key()}
}

func (f *flight) laneFor(key laneKey) *lane {
	l := f.lanes[key]
	if l == nil {
		l = &lane{key: key}
		f.lanes[key] = l
	}
	return l
}

func (f *flight) add(e *flying) {
	f.events[e.event.ID] = e
	f.bytes += e.event.Size()
	f.byShard[e.lease.Shard]++
	if e.route != nil {
		f.queues[e.route.sink].inFlight++
	}
}

func (f *flight) remove(e *flying) {
	if f.events[e.event.ID] != e {
		return
	}
	delete(f.events, e.event.ID)
	f.bytes -= e.event.Size()
	if e.route != nil {
		f.queues[e.route.sink].inFlight--
	}
	if f.byShard[e.lease.Shard]--; f.byShard[e.lease.Shard] == 0 {
		delete(f.byShard, e.lease.Shard)
	}
}

// enqueue puts an idle lane that has events into the queue of its sink.
func (f *flight) enqueue(l *lane) {
	if l.state != laneIdle || l.queued || len(l.waiting) == 0 {
		return
	}
	l.queued = true
	q := &f.queues[l.key.sink]
	q.ready = append(q.ready, l)
	q.wake()
}

func (q *sinkQueue) wake() {
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// take hands out up to limit events of a sink, in sequence for each lane. usable says whether a lease leaves
// enough time for sending; lanes whose lease does not are passed over.
func (f *flight) take(sink, limit int, usable func(Lease) bool) []*flying {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := &f.queues[sink]
	var batch []*flying
	var passedOver []*lane
	for len(q.ready) > 0 && len(batch) < limit {
		l := q.ready[0]
		q.ready = q.ready[1:]
		run := sendable(l.waiting, limit-len(batch), usable)
		if run == 0 {
			passedOver = append(passedOver, l)
			continue
		}
		batch = append(batch, l.waiting[:run]...)
		l.waiting = slices.Clone(l.waiting[run:])
		l.state, l.queued = laneSending, false
	}
	q.ready = append(q.ready, passedOver...)
	if len(q.ready) > len(passedOver) {
		q.wake() // another Publish call may take the rest
	}
	return batch
}

func sendable(waiting []*flying, limit int, usable func(Lease) bool) int {
	n := 0
	for n < len(waiting) && n < limit && usable(waiting[n].lease) {
		n++
	}
	return n
}

// report notes what became of a batch, one settlement for each of its events, and returns those that now wait to be
// settled. Events with a zero Settlement go back to the head of their lanes.
func (f *flight) report(batch []*flying, decided []Settlement) (toSettle []*flying) {
	f.mu.Lock()
	defer f.mu.Unlock()
	returned := make(map[*lane][]*flying)
	for i, e := range batch {
		if decided[i].State == "" {
			returned[e.lane] = append(returned[e.lane], e)
			continue
		}
		e.settlement = decided[i]
		toSettle = append(toSettle, e)
		switch {
		case e.settlement.holdsBack():
			e.lane.state = laneShut
		case e.settlement.State == postrider.StateDead:
			e.lane.state = laneSettling
		}
	}
	for _, e := range batch {
		if l := e.lane; l.state == laneSending {
			l.state = laneIdle
		}
	}
	for l, events := range returned {
		l.waiting = append(events, l.waiting...)
	}
	for _, e := range batch {
		if e.lane.state == laneShut {
			f.dropWaiting(e.lane, func(*flying) bool { return true })
		}
		f.enqueue(e.lane)
		f.forgetIfIdle(e.lane)
	}
	return toSettle
}

// bury takes in an event that is DEAD without having been sent: the caller settles it. When it holds its key, no read
// brings events of the key until that is settled. It reports whether the event is new to the flight.
func (f *flight) bury(e *flying) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.events[e.event.ID]; known {
		return false
	}
	if e.settlement.HoldsKey {
		e.lane = f.laneFor(laneKey{noSink, e.event.Key()})
		e.lane.state = laneShut
	}
	f.add(e)
	return true
}

// hold takes in an event that is to wait in the store and keeps its lane shut until that is settled: the caller settles
// it. It takes no event while earlier ones of its lane are in flight, since it waits for one of them, perhaps.
func (f *flight) hold(e *flying) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.laneFor(f.laneKeyOf(e))
	if _, known := f.events[e.event.ID]; known || l.state != laneIdle || len(l.waiting) > 0 {
		return false
	}
	l.state, e.lane = laneShut, l
	f.add(e)
	return true
}

// settled ends the flight of events. written holds the ids whose rows now carry the outcome; the others were lost:
// their lanes start again from what the store says.
func (f *flight) settled(events []*flying, written map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		f.remove(e)
		l := e.lane
		if l == nil { // buried
			continue
		}
		if !written[e.event.ID] {
			f.dropWaiting(l, func(w *flying) bool { return w.lease == e.lease })
		}
		switch {
		case e.settlement.State == postrider.StateDead && l.state == laneSettling:
			l.state = laneIdle
		case e.settlement.holdsBack() && l.state == laneShut:
			f.reopen(l)
		}
		f.enqueue(l)
		f.forgetIfIdle(l)
	}
}

func (f *flight) reopen(l *lane) {
	if f.reading {
		f.reopening = append(f.reopening, l)
		return
	}
	f.forget(l)
}

func (f *flight) forget(l *lane) {
	l.state = laneIdle
	f.forgetIfIdle(l)
}

func (f *flight) forgetIfIdle(l *lane) {
	if l.state == laneIdle && len(l.waiting) == 0 && !l.queued && f.lanes[l.key] == l {
		delete(f.lanes, l.key)
	}
}

// dropWaiting forgets events that were read but not sent. Their rows stay PENDING.
func (f *flight) dropWaiting(l *lane, drop func(*flying) bool) {
	l.waiting = slices.DeleteFunc(l.waiting, func(e *flying) bool {
		if drop(e) {
			f.remove(e)
			return true
		}
		return false
	})
}

// dropLeases forgets the events, read but not sent, of leases for which lost says so.
func (f *flight) dropLeases(lost func(Lease) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lanes {
		f.dropWaiting(l, func(e *flying) bool { return lost(e.lease) })
	}
	for i := range f.queues {
		q := &f.queues[i]
		q.ready = slices.DeleteFunc(q.ready, func(l *lane) bool {
			if len(l.waiting) > 0 {
				return false
			}
			l.queued = false
			f.forgetIfIdle(l)
			return true
		})
	}
}

// count returns how many events are in flight.
func (f *flight) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.events)
}

// sinkCount returns how many events of a sink are in flight.
func (f *flight) sinkCount(sink int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queues[sink].inFlight
}

// shardEmpty says whether nothing of the shard is in flight.
func (f *flight) shardEmpty(shard int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byShard[shard] == 0
}
