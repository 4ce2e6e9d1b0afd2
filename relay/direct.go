package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
)

// DirectConfig says how a Direct works. Sinks and Routes must be set, as for a relay.
type DirectConfig struct {
	Sinks  []NamedSink // not those of a Relay that runs: a sink must not get the events of a key from two sides
	Routes []Route     // their Retry and OnDead have no meaning: nothing is sent twice, or kept
	Events postrider.Config

	Queue   int           // most events that wait for one sink; default 10,000
	Batch   int           // most events of one Publish call, unless the sink says otherwise; default 500
	Timeout time.Duration // of one Publish call; default 10s
}

// Direct publishes events without an outbox: nothing has stored them before, and nothing sends them again. It is for events
// that may be lost, such as hints and statistics, beside those that may not, which go through Outbox.Add. What it sends is
// committed or rolled back with nothing. The events of a key leave in the order in which they were given to one Direct.
//
// It is safe for concurrent use. Close ends it; the sinks are closed by the caller, afterwards.
type Direct struct {
	cfg     DirectConfig
	routes  []*route
	queues  []chan *directEvent // of each sink
	workers sync.WaitGroup
	dropped atomic.Int64

	mu     sync.RWMutex // held while something is put into a queue
	closed bool
}

// directEvent is an event on its way.
type directEvent struct {
	ctx     context.Context // an event whose caller has gone is not sent any more
	sink    int
	message Message
	outcome chan Outcome // nil when nobody waits
}

// ErrClosed is the error of what a Direct is given after Close.
var ErrClosed = errors.New("it was closed")

const defaultQueue = 10_000

// NewDirect checks the configuration, reports every mistake in it, and starts a goroutine for each sink.
func NewDirect(c DirectConfig) (*Direct, error) {
	setDefault(&c.Queue, defaultQueue)
	setDefault(&c.Batch, defaultBatch)
	setDefault(&c.Timeout, defaultPublishTimeout)
	routes, err := Config{Sinks: c.Sinks, Routes: c.Routes}.resolveRoutes()
	if c.Queue < 0 || c.Batch < 0 || c.Timeout < 0 {
		err = errors.Join(err, fmt.Errorf("Queue (%d), Batch (%d) and Timeout (%v) must not be negative", c.Queue, c.Batch, c.Timeout))
	}
	if err := errors.Join(checkSinks(c.Sinks), err); err != nil {
		return nil, fmt.Errorf("direct configuration: %w", err)
	}
	d := &Direct{cfg: c, routes: routes}
	for _, s := range c.Sinks {
		setDefault(&s.Batch, c.Batch)
		queue := make(chan *directEvent, c.Queue)
		d.queues = append(d.queues, queue)
		d.workers.Go(func() { d.publish(s, queue) })
	}
	return d, nil
}

// Guaranteed publishes events and returns nil once every one of them was acknowledged durably. It blocks, for as long as the
// queue of a sink is full, and then until the sink has answered. The error names each event that was not acknowledged, and
// why: the caller knows of each event that is missing. An event behind one of its key that was not acknowledged may have been
// sent or not; the error tells. When ctx ends before the answer, whether an event was published is
// not known. Events that are not fit to be published are told by postrider.EventErrors, and then none is sent.
func (d *Direct) Guaranteed(ctx context.Context, events ...postrider.Event) error {
	list, err := d.prepare(ctx, events, true)
	if err != nil {
		return fmt.Errorf("publish directly: %w", err)
	}
	problems := make([]error, 0, len(list))
	for _, one := range list {
		problems = append(problems, d.put(one))
	}
	for i, one := range list {
		if problems[i] == nil {
			problems[i] = one.wait()
		}
		if problems[i] != nil {
			problems[i] = fmt.Errorf("publish directly: event %s of key %q: %w", one.message.EventID, one.message.Key, problems[i])
		}
	}
	return errors.Join(problems...)
}

// BestEffort hands events over to be published, and never blocks or fails: what is not fit to be published, finds its queue
// full, or is not acknowledged at the first try is dropped and counted by Dropped. The end of ctx does not take back what
// was handed over.
func (d *Direct) BestEffort(ctx context.Context, events ...postrider.Event) {
	list, err := d.prepare(context.WithoutCancel(ctx), events, false)
	if err != nil {
		d.dropped.Add(int64(len(events)))
		return
	}
	for _, one := range list {
		if !d.offer(one) {
			d.dropped.Add(1)
		}
	}
}

// Dropped counts the events of BestEffort that were not acknowledged.
func (d *Direct) Dropped() int64 { return d.dropped.Load() }

// Close lets everything that waits be sent and ends the goroutines. It blocks until then; a Publish call ends with its
// timeout.
func (d *Direct) Close() {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if !closed {
		for _, queue := range d.queues {
			close(queue)
		}
	}
	d.workers.Wait()
}

// prepare finds the message and the sink of each event.
func (d *Direct) prepare(ctx context.Context, events []postrider.Event, wait bool) ([]*directEvent, error) {
	prepared, err := postrider.Prepare(ctx, d.cfg.Events, events)
	if err != nil {
		return nil, err
	}
	list := make([]*directEvent, len(prepared))
	var problems []error
	for i, p := range prepared {
		if !p.At.IsZero() || p.DedupKey != "" {
			problems = append(problems, fmt.Errorf("event %d: At and DedupKey need an outbox, which keeps the event and its key", i))
			continue
		}
		e := eventOf(p)
		r := routeOf(d.routes, e.Kind())
		if r == nil {
			problems = append(problems, fmt.Errorf("event %d of type %q of %q: no route takes it", i, p.Type, p.AggregateType))
			continue
		}
		list[i] = &directEvent{ctx: ctx, message: r.message(e), sink: r.sink}
		if wait {
			list[i].outcome = make(chan Outcome, 1)
		}
	}
	return list, errors.Join(problems...)
}

// eventOf is an event as the outbox would give it back, but for its place there.
func eventOf(p postrider.Event) *Event {
	e := &Event{
		EventID: p.ID, AggregateType: p.AggregateType, AggregateID: p.AggregateID, EventType: p.Type, Topic: p.Topic,
		Payload: p.Payload, ContentType: p.ContentType, Headers: p.Headers,
	}
	if p.AggregateVersion != 0 {
		e.AggregateVersion = &p.AggregateVersion
	}
	return e
}

// put waits until the event is in its queue.
func (d *Direct) put(one *directEvent) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return ErrClosed
	}
	select {
	case d.queues[one.sink] <- one:
		return nil
	case <-one.ctx.Done():
		return fmt.Errorf("not sent: %w", context.Cause(one.ctx))
	}
}

// offer puts the event into its queue if there is room.
func (d *Direct) offer(one *directEvent) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return false
	}
	select {
	case d.queues[one.sink] <- one:
		return true
	default:
		return false
	}
}

var errKeyBroken = errors.New("not sent: an earlier event of its key was not acknowledged")

// wait returns what became of the event.
func (one *directEvent) wait() error {
	select {
	case o := <-one.outcome:
		return reasonOf(o)
	case <-one.ctx.Done():
	}
	select {
	case o := <-one.outcome:
		return reasonOf(o)
	default:
		return fmt.Errorf("not known whether it was published: %w", context.Cause(one.ctx))
	}
}

func reasonOf(o Outcome) error {
	switch o.Class {
	case ClassPublished:
		return nil
	case ClassSkipped:
		return errKeyBroken
	default:
		return o.Err
	}
}

// publish sends what is in a queue until the queue is closed and empty.
func (d *Direct) publish(s NamedSink, queue <-chan *directEvent) {
	for first := range queue {
		if batch := waiting(first, queue, s.Batch); len(batch) > 0 {
			d.send(s.Sink, batch)
		}
	}
}

// waiting takes up to limit events that wait in the queue, the first among them, without those whose callers have gone.
func waiting(first *directEvent, queue <-chan *directEvent, limit int) (batch []*directEvent) {
	for one, more := first, true; more; {
		if one.ctx.Err() == nil {
			batch = append(batch, one)
		}
		if len(batch) == limit {
			break
		}
		select {
		case one, more = <-queue:
		default:
			more = false
		}
	}
	return batch
}

func (d *Direct) send(sink Sink, batch []*directEvent) {
	messages := make([]Message, len(batch))
	for i, one := range batch {
		messages[i] = one.message
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Timeout)
	defer cancel()
	for i, o := range send(ctx, sink, messages) {
		if batch[i].outcome != nil {
			batch[i].outcome <- o
		} else if o.Class != ClassPublished {
			d.dropped.Add(1)
		}
	}
}
