package consumer

import (
	"slices"
	"time"
)

// item is a delivery in hand.
type item struct {
	delivery *Delivery
	key      string // of its queue; empty without order
	size     int
	attempts int       // failed ones
	first    time.Time // when the first one failed
	due      time.Time // not tried before
	queue    *queue    // once it has waited until due
}

// queue holds the items of one key in order.
type queue struct {
	key   string
	items []*item
	busy  bool      // its first items are out: nothing more of it is handed out until they are back
	until time.Time // nothing of it is handed out before
}

// lane counts what is in hand of one lane.
type lane struct {
	count   int
	waiting int // for their time on a retry topic
	paused  bool
}

// schedule knows what is in hand and says what may be handled now. It is pure: no clock, no lock, no IO.
//
// An item is added, waits until it is due, stands in the queue of its key, is out, and is then done, or back at the head of its queue.
type schedule struct {
	laneBuffer, retryBuffer int

	queues   map[string]*queue // those of keys
	ready    []*queue          // may be handed out, the longest waiting first
	sleeping []*queue          // have an until in the future
	waiting  []*item           // are not due
	lanes    map[string]*lane
	touched  map[string]bool // lanes whose counts have changed since the last call of turns
	count    int
	bytes    int
}

func newSchedule(laneBuffer, retryBuffer int) *schedule {
	return &schedule{
		laneBuffer: laneBuffer, retryBuffer: retryBuffer,
		queues: make(map[string]*queue), lanes: make(map[string]*lane), touched: make(map[string]bool),
	}
}

// add takes an item in hand.
func (s *schedule) add(it *item, now time.Time) {
	s.count++
	s.bytes += it.size
	l := s.laneOf(it)
	l.count++
	if it.due.After(now) {
		l.waiting++
		s.waiting = append(s.waiting, it)
		return
	}
	s.enqueue(it)
}

func (s *schedule) laneOf(it *item) *lane {
	name := it.delivery.Lane
	l := s.lanes[name]
	if l == nil {
		l = &lane{}
		s.lanes[name] = l
	}
	s.touched[name] = true
	return l
}

func (s *schedule) enqueue(it *item) {
	q := s.queues[it.key]
	if q == nil {
		q = &queue{key: it.key}
		if it.key != "" {
			s.queues[it.key] = q
		}
	}
	it.queue = q
	q.items = append(q.items, it)
	if len(q.items) == 1 && !q.busy {
		s.ready = append(s.ready, q)
	}
}

// take hands out what may be handled now: its share of what is ready for one of idle workers, and limit items at most, each queue's
// in order. What of it has to go back, because its lane is revoked, comes apart and is done.
func (s *schedule) take(now time.Time, limit, idle int) (batch, revoked []*item) {
	s.wake(now)
	var stay []*queue
	room := min(limit, s.share(idle))
	for i, q := range s.ready {
		if len(batch) >= room {
			stay = append(stay, s.ready[i:]...)
			break
		}
		gone := q.split(isRevoked)
		revoked = append(revoked, gone...)
		n := min(room-len(batch), len(q.items))
		if n == 0 {
			s.drop(q)
			continue
		}
		batch = append(batch, q.items[:n]...)
		q.items, q.busy = slices.Clone(q.items[n:]), true
	}
	s.ready = stay
	s.done(revoked...)
	return batch, revoked
}

// share is how many of the ready items one of the idle workers takes.
func (s *schedule) share(idle int) int {
	items := 0
	for _, q := range s.ready {
		items += len(q.items)
	}
	return (items + idle - 1) / max(idle, 1)
}

// wake moves what is due by now to where it is handed out.
func (s *schedule) wake(now time.Time) {
	s.sleeping = slices.DeleteFunc(s.sleeping, func(q *queue) bool {
		if q.until.After(now) {
			return false
		}
		s.ready = append(s.ready, q)
		return true
	})
	var due []*item
	s.waiting = slices.DeleteFunc(s.waiting, func(it *item) bool {
		if it.due.After(now) {
			return false
		}
		s.laneOf(it).waiting--
		due = append(due, it)
		return true
	})
	slices.SortStableFunc(due, func(a, b *item) int { return a.due.Compare(b.due) })
	for _, it := range due {
		s.enqueue(it)
	}
}

// next is when something becomes due of what is not; zero when nothing does.
func (s *schedule) next() (at time.Time) {
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, q := range s.sleeping {
		sooner(q.until)
	}
	for _, it := range s.waiting {
		sooner(it.due)
	}
	return at
}

// back puts items that were handed out at the head of their queue again. It stays busy.
func (s *schedule) back(q *queue, items ...*item) { q.items = append(slices.Clone(items), q.items...) }

// release lets a busy queue be handed out again, not before until.
func (s *schedule) release(q *queue, until, now time.Time) {
	q.busy, q.until = false, until
	switch {
	case len(q.items) == 0:
		s.drop(q)
	case until.After(now):
		s.sleeping = append(s.sleeping, q)
	default:
		s.ready = append(s.ready, q)
	}
}

func (s *schedule) drop(q *queue) {
	if q.key != "" {
		delete(s.queues, q.key)
	}
}

// done takes items, which are out or were removed, from the counts.
func (s *schedule) done(items ...*item) {
	for _, it := range items {
		s.count--
		s.bytes -= it.size
		s.laneOf(it).count--
	}
}

// remove takes everything that is not out and that match wants from the schedule. It is done.
func (s *schedule) remove(match func(*item) bool) []*item {
	var removed []*item
	s.waiting = slices.DeleteFunc(s.waiting, func(it *item) bool {
		if !match(it) {
			return false
		}
		s.laneOf(it).waiting--
		removed = append(removed, it)
		return true
	})
	var empty []*queue
	for q := range s.all() {
		removed = append(removed, q.split(match)...)
		if len(q.items) == 0 && !q.busy {
			empty = append(empty, q)
		}
	}
	for _, q := range empty {
		s.drop(q)
	}
	isEmpty := func(q *queue) bool { return len(q.items) == 0 }
	s.ready, s.sleeping = slices.DeleteFunc(s.ready, isEmpty), slices.DeleteFunc(s.sleeping, isEmpty)
	s.done(removed...)
	return removed
}

// all goes through every queue that has items.
func (s *schedule) all() func(yield func(*queue) bool) {
	return func(yield func(*queue) bool) {
		for _, q := range s.queues {
			if !yield(q) {
				return
			}
		}
		for _, q := range append(slices.Clone(s.ready), s.sleeping...) {
			if q.key == "" && !yield(q) {
				return
			}
		}
	}
}

// split takes the items that match wants out of the queue.
func (q *queue) split(match func(*item) bool) (gone []*item) {
	q.items = slices.DeleteFunc(q.items, func(it *item) bool {
		if !match(it) {
			return false
		}
		gone = append(gone, it)
		return true
	})
	return gone
}

// turns returns the lanes that are to be paused and to be resumed now.
func (s *schedule) turns() (pause, resume []string) {
	for name := range s.touched {
		l := s.lanes[name]
		full := l.count >= s.laneBuffer || l.waiting >= s.retryBuffer
		roomy := l.count <= s.laneBuffer/2 && l.waiting <= s.retryBuffer/2
		switch {
		case full && !l.paused:
			l.paused = true
			pause = append(pause, name)
		case roomy && l.paused:
			l.paused = false
			resume = append(resume, name)
		}
		if l.count == 0 && !l.paused {
			delete(s.lanes, name)
		}
	}
	clear(s.touched)
	return pause, resume
}

// room says how many messages may be fetched now.
func (s *schedule) room(maxCount, maxBytes int) int {
	if s.count >= maxCount || s.bytes >= maxBytes {
		return 0
	}
	room := maxCount - s.count
	if s.count > 0 && s.bytes > 0 { // what comes is taken to be of the size of what is here
		room = min(room, max(1, (maxBytes-s.bytes)*s.count/s.bytes))
	}
	return room
}

func isRevoked(it *item) bool {
	select {
	case <-it.delivery.Revoked: // nil, which blocks, where no lane is ever revoked
		return true
	default:
		return false
	}
}
