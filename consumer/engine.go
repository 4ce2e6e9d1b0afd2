package consumer

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/postrider/postrider/inbox"
)

// engine is one Run of a Consumer. Its loops are: fetch, the workers, one that writes to retry and dead-letter topics, and one that tries parked
// keys. What is in hand and who may have it is said by the schedule, under mu.
type engine struct {
	*Consumer
	work context.Context // ends when the grace period is over; the Handler runs under it

	turning sync.Mutex // held around calls of Pause and Resume, so that they come in order

	mu       sync.Mutex
	schedule *schedule
	outage   outage
	changes  chan struct{} // closed at the next change
	idle     int           // workers
	letters  []*letter
	outlet   outage // of the sink
	stopping bool
	watched  map[<-chan struct{}]bool // the Revoked channels that somebody waits for
}

const (
	firstPause = 200 * time.Millisecond
	maxPause   = 15 * time.Second
	again      = 100 * time.Millisecond // pause before a message that was skipped without a reason
	stopLimit  = 5 * time.Second        // what a stop may take after the grace period
)

func newEngine(work context.Context, c *Consumer) *engine {
	return &engine{
		Consumer: c, work: work,
		schedule: newSchedule(c.cfg.LaneBuffer, c.cfg.RetryBuffer),
		changes:  make(chan struct{}),
		idle:     c.cfg.Workers,
		watched:  make(map[<-chan struct{}]bool),
	}
}

// run works until ctx ends, and stops in order.
func (e *engine) run(ctx context.Context, endWork context.CancelFunc) error {
	var intake, writing sync.WaitGroup
	writeCtx, endWriting := context.WithCancel(context.Background())
	defer endWriting()
	intake.Go(func() { e.loop(ctx, loopFetch, e.fetch) })
	for range e.cfg.Workers {
		intake.Go(func() { e.loop(ctx, loopHandle, e.handleNext) })
	}
	if e.cfg.Parking != nil {
		intake.Go(func() { e.loop(ctx, loopPark, e.tryParked) })
	}
	if e.cfg.Sink != nil {
		writing.Go(func() { e.loop(writeCtx, loopWrite, e.write) })
	}
	<-ctx.Done()
	e.stop()
	drained := e.within(e.cfg.Grace, func() { intake.Wait(); e.awaitLetters(writeCtx) })
	endWork()
	drained = drained || e.within(stopLimit, intake.Wait)
	endWriting()
	drained = e.within(stopLimit, writing.Wait) && drained
	e.returnLetters(func(*letter) bool { return true })
	flushCtx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := e.cfg.Source.Flush(flushCtx); err != nil {
		return fmt.Errorf("stopped, but acknowledgements did not reach the broker, so messages will come again: %w", err)
	}
	if !drained {
		return fmt.Errorf("stopped after the grace period of %v although the handler or the sink has not returned: messages will come again", e.cfg.Grace)
	}
	return nil
}

// loop runs rounds until ctx ends, with pauses after errors and panics.
func (e *engine) loop(ctx context.Context, name string, round func(context.Context) error) {
	for failures := 0; ctx.Err() == nil; {
		err := guard(func() error { return round(ctx) })
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if failures > 0 {
				e.watch.note(name, nil)
			}
			failures = 0
			continue
		}
		failures++
		e.watch.note(name, err)
		sleep(ctx, backoff(failures))
	}
}

// guard makes an error of a panic.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// stop returns what was not begun. What is out comes back by itself.
func (e *engine) stop() {
	e.mu.Lock()
	e.stopping = true
	rest := e.schedule.remove(func(*item) bool { return true })
	e.changed()
	e.mu.Unlock()
	e.giveBack(rest)
	e.returnLetters(func(l *letter) bool { return !l.writing && (e.outlet.failures > 0 || l.due.After(time.Now())) })
}

// within runs f and reports whether it has returned within the limit.
func (e *engine) within(limit time.Duration, f func()) bool {
	ended := make(chan struct{})
	go func() {
		f()
		close(ended)
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-ended:
		return true
	case <-t.C:
		return false
	}
}

// changed tells everybody who waits that something is different. mu is held.
func (e *engine) changed() {
	close(e.changes)
	e.changes = make(chan struct{})
}

// fetch gets messages for which there is room.
func (e *engine) fetch(ctx context.Context) error {
	e.mu.Lock()
	room, changes := e.schedule.room(e.cfg.MaxInFlight, e.cfg.MaxInFlightBytes), e.changes
	e.mu.Unlock()
	if room == 0 {
		select {
		case <-ctx.Done():
		case <-changes:
		}
		return nil
	}
	deliveries, err := e.cfg.Source.Fetch(ctx, min(room, e.cfg.Batch))
	if len(deliveries) > 0 {
		e.accept(deliveries)
	}
	return err
}

// accept takes deliveries in hand.
func (e *engine) accept(deliveries []*Delivery) {
	e.watch.count(func(s *Stats) { s.Fetched += int64(len(deliveries)) })
	e.cfg.Hooks.fetched(len(deliveries))
	var foreign, late []*Delivery
	now := time.Now()
	e.mu.Lock()
	for _, d := range deliveries {
		switch {
		case e.stopping:
			late = append(late, d)
		case forAnother(d.Message, e.cfg.Name):
			foreign = append(foreign, d)
		default:
			e.schedule.add(e.newItem(d, now), now)
			e.watchRevoked(d.Revoked)
		}
	}
	e.changed()
	e.mu.Unlock()
	if len(foreign) > 0 {
		e.watch.count(func(s *Stats) { s.Foreign += int64(len(foreign)) })
		e.cfg.Source.Finish(foreign...)
	}
	if len(late) > 0 {
		e.cfg.Source.Return(late...)
	}
	e.turnLanes()
}

// overhead is what a message in hand takes beside its texts, in bytes, roughly.
const overhead = 500

func (e *engine) newItem(d *Delivery, now time.Time) *item {
	m := d.Message
	it := &item{delivery: d, key: keyOf(m), size: overhead + len(m.Payload) + len(m.Key)}
	for _, h := range m.Headers {
		it.size += len(h.Name) + len(h.Value)
	}
	it.attempts, it.first, it.due = pastOf(m)
	// Whatever the header says, and whatever the clock of its writer, no message waits for longer than the longest delay.
	if latest := now.Add(longest(e.cfg.policyOf(m.EventType()).Delays)); it.due.After(latest) {
		it.due = latest
	}
	return it
}

// keyOf names what keeps an order: the key, else the aggregate id, within its topic. It is empty when nothing does.
func keyOf(m inbox.Message) string {
	key := m.Key
	if key == "" {
		key = m.AggregateID()
	}
	if key == "" {
		return ""
	}
	return originTopic(m) + "\x00" + key
}

// watchRevoked returns what is not begun of a lane when it is revoked. mu is held.
func (e *engine) watchRevoked(revoked <-chan struct{}) {
	if revoked == nil || e.watched[revoked] {
		return
	}
	e.watched[revoked] = true
	go func() {
		select {
		case <-revoked:
			e.revoke(revoked)
		case <-e.work.Done():
		}
	}()
}

func (e *engine) revoke(revoked <-chan struct{}) {
	e.mu.Lock()
	delete(e.watched, revoked)
	gone := e.schedule.remove(func(it *item) bool { return it.delivery.Revoked == revoked })
	e.changed()
	e.mu.Unlock()
	e.giveBack(gone)
	e.returnLetters(func(l *letter) bool { return l.item.delivery.Revoked == revoked && !l.writing })
	e.turnLanes()
}

// finish acknowledges items, which are out, and takes them from the schedule.
func (e *engine) finish(items ...*item) {
	if len(items) == 0 {
		return
	}
	e.cfg.Source.Finish(deliveriesOf(items)...)
	e.mu.Lock()
	e.schedule.done(items...)
	e.mu.Unlock()
}

// giveBack returns items, which are not in the schedule any more, to the source.
func (e *engine) giveBack(items []*item) {
	if len(items) == 0 {
		return
	}
	e.watch.count(func(s *Stats) { s.Returned += int64(len(items)) })
	e.cfg.Source.Return(deliveriesOf(items)...)
}

func deliveriesOf(items []*item) []*Delivery {
	deliveries := make([]*Delivery, len(items))
	for i, it := range items {
		deliveries[i] = it.delivery
	}
	return deliveries
}

// turnLanes pauses and resumes what the counts ask for.
func (e *engine) turnLanes() {
	e.turning.Lock()
	defer e.turning.Unlock()
	e.mu.Lock()
	pause, resume := e.schedule.turns()
	e.mu.Unlock()
	for _, name := range pause {
		e.cfg.Source.Pause(name)
	}
	for _, name := range resume {
		e.cfg.Source.Resume(name)
	}
}

// putBack puts items that are out at the head of their queue again, and lets it go on, not before until. What may not be begun any
// more is returned. release says whether the queue is free again.
func (e *engine) putBack(q *queue, items []*item, until time.Time, release bool) {
	var gone []*item
	e.mu.Lock()
	var stay []*item
	for _, it := range items {
		if e.stopping || isRevoked(it) {
			gone = append(gone, it)
		} else {
			stay = append(stay, it)
		}
	}
	e.schedule.back(q, stay...)
	e.schedule.done(gone...)
	if release {
		e.schedule.release(q, until, time.Now())
	}
	e.changed()
	e.mu.Unlock()
	e.giveBack(gone)
}

// measure fills in what is in hand.
func (e *engine) measure(s *Stats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.InFlight, s.InFlightBytes = e.schedule.count, e.schedule.bytes
	s.Waiting, s.Blocked = len(e.schedule.waiting), len(e.schedule.sleeping)
	s.Letters = len(e.letters)
	for _, l := range e.letters {
		if l.refused != nil {
			s.Refused++
		}
	}
	for _, l := range e.schedule.lanes {
		if l.paused {
			s.PausedLanes++
		}
	}
}

// outage is the state of something that takes nothing: pauses that double, and one probe at a time after them.
type outage struct {
	failures int // in a row
	until    time.Time
	probing  bool
}

// permit says how many of limit may be tried now, and how long to wait when none may; a wait of 0 is for the end of a probe.
func (o *outage) permit(now time.Time, limit int) (allowed int, wait time.Duration) {
	switch {
	case o.failures == 0:
		return limit, 0
	case o.until.After(now):
		return 0, o.until.Sub(now)
	case o.probing:
		return 0, 0
	default:
		return 1, 0
	}
}

func (o *outage) failed(now time.Time) {
	if o.failures > 0 && o.until.After(now) {
		return // what was under way when the outage was met
	}
	o.failures++
	o.until = now.Add(backoff(o.failures))
}

// backoff is the pause after the n-th failure in a row.
func backoff(n int) time.Duration {
	d := firstPause
	for i := 1; i < n && d < maxPause; i++ {
		d *= 2
	}
	return min(d, maxPause)
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
