package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
)

// memory is a broker of lanes: what is published to a topic goes to the lane of the topic. As a source it keeps a position
// for each lane, and as a sink it can be told to refuse.
type memory struct {
	mu        sync.Mutex
	lanes     map[string]*memoryLane
	changes   chan struct{}
	published []relay.Message
	refuse    func(relay.Message) *relay.Outcome
	flushed   bool
}

type memoryLane struct {
	messages []inbox.Message
	next     int
	out      map[int]bool
	finished map[int]bool
	paused   bool
	revoked  chan struct{}
	returned int
}

// place is the Ref of a delivery.
type place struct {
	lane string
	at   int
}

func newMemory() *memory {
	return &memory{lanes: make(map[string]*memoryLane), changes: make(chan struct{})}
}

func (b *memory) lane(name string) *memoryLane {
	l := b.lanes[name]
	if l == nil {
		l = &memoryLane{out: make(map[int]bool), finished: make(map[int]bool), revoked: make(chan struct{})}
		b.lanes[name] = l
	}
	return l
}

func (b *memory) changed() {
	close(b.changes)
	b.changes = make(chan struct{})
}

func (b *memory) send(topic, key, id string, headers ...inbox.Header) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lane(topic)
	offset := fmt.Sprint(len(l.messages))
	l.messages = append(l.messages, inbox.Message{
		Topic: topic, Partition: "0", Offset: offset, Coordinates: "memory:" + topic + "/0@" + offset, Key: key,
		Headers: append([]inbox.Header{{Name: "X-Event-Id", Value: id}, {Name: "X-Event-Type", Value: "Made"}}, headers...),
		Payload: []byte(id),
	})
	b.changed()
}

func (b *memory) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	for {
		b.mu.Lock()
		var deliveries []*consumer.Delivery
		for name, l := range b.lanes {
			for ; l.next < len(l.messages) && !l.paused && len(deliveries) < limit; l.next++ {
				l.out[l.next] = true
				deliveries = append(deliveries, &consumer.Delivery{Message: l.messages[l.next], Lane: name, Revoked: l.revoked, Ref: place{name, l.next}})
			}
		}
		changes := b.changes
		b.mu.Unlock()
		if len(deliveries) > 0 {
			return deliveries, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changes:
		}
	}
}

func (b *memory) settle(deliveries []*consumer.Delivery, done func(*memoryLane, int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range deliveries {
		p := d.Ref.(place)
		l := b.lane(p.lane)
		if !l.out[p.at] {
			panic(d.Message.Coordinates + " is finished or returned twice")
		}
		delete(l.out, p.at)
		done(l, p.at)
	}
	b.changed()
}

func (b *memory) Finish(deliveries ...*consumer.Delivery) {
	b.settle(deliveries, func(l *memoryLane, at int) { l.finished[at] = true })
}

func (b *memory) Return(deliveries ...*consumer.Delivery) {
	b.settle(deliveries, func(l *memoryLane, _ int) { l.returned++ })
}

func (b *memory) turn(lane string, paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lane(lane).paused = paused
	b.changed()
}

func (b *memory) Pause(lane string)  { b.turn(lane, true) }
func (b *memory) Resume(lane string) { b.turn(lane, false) }

func (b *memory) Flush(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flushed = true
	return nil
}

func (b *memory) Close() error { return nil }

// revoke takes a lane away, and goes on with it from its position once everything was given back, as another group member would.
func (b *memory) revoke(lane string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.lane(lane).revoked)
}

func (b *memory) Publish(_ context.Context, batch []relay.Message) []relay.Outcome {
	var outcomes []relay.Outcome
	for _, m := range batch {
		if o := b.refusal(m); o != nil {
			outcomes = append(outcomes, *o)
			continue
		}
		b.store(m)
		outcomes = append(outcomes, relay.Published("memory:"+m.Topic))
	}
	return outcomes
}

func (b *memory) refusal(m relay.Message) *relay.Outcome {
	b.mu.Lock()
	refuse := b.refuse
	b.mu.Unlock()
	if refuse == nil {
		return nil
	}
	return refuse(m)
}

func (b *memory) refuseAs(refuse func(relay.Message) *relay.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = refuse
}

func (b *memory) store(m relay.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.published = append(b.published, m)
	if strings.HasSuffix(m.Topic, ".dlt") {
		return
	}
	l := b.lane(m.Topic)
	offset := fmt.Sprint(len(l.messages))
	stored := inbox.Message{
		Topic: m.Topic, Partition: "0", Offset: offset, Coordinates: "memory:" + m.Topic + "/0@" + offset, Key: m.Key, Payload: m.Payload,
	}
	for _, h := range m.Headers {
		stored.Headers = append(stored.Headers, inbox.Header(h))
	}
	l.messages = append(l.messages, stored)
	b.changed()
}

// unfinished counts the messages of a lane that were not acknowledged.
func (b *memory) unfinished(lane string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lane(lane)
	return len(l.messages) - len(l.finished)
}

// letters returns what was published, by topic.
func (b *memory) letters(topic string) (found []relay.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.published {
		if m.Topic == topic {
			found = append(found, m)
		}
	}
	return found
}

// ledger is a handler that notes what it has applied.
type ledger struct {
	mu      sync.Mutex
	applied []string
	fail    func(m inbox.Message) error // nil applies
	calls   int
}

func (l *ledger) handle(_ context.Context, batch []inbox.Message) []inbox.Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	results := make([]inbox.Result, len(batch))
	stopped := make(map[string]bool)
	for i, m := range batch {
		if stopped[m.Key] {
			results[i].Err = inbox.ErrSkipped
			continue
		}
		if l.fail != nil {
			results[i].Err = l.fail(m)
		}
		if results[i].Err != nil {
			stopped[m.Key] = true
			continue
		}
		results[i].Outcome = inbox.Applied
		l.applied = append(l.applied, m.EventID())
	}
	return results
}

func (l *ledger) failWith(fail func(inbox.Message) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = fail
}

func (l *ledger) wants(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.applied, want) {
		t.Errorf("applied %v, want %v", l.applied, want)
	}
}

// wantsAnyOrder is wants for messages of different keys.
func (l *ledger) wantsAnyOrder(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := slices.Sorted(slices.Values(l.applied)); !slices.Equal(got, want) {
		t.Errorf("applied %v, want %v", got, want)
	}
}

// run starts a consumer on the broker and returns what stops it.
func run(t *testing.T, b *memory, config consumer.Config) (c *consumer.Consumer, stop func()) {
	t.Helper()
	config.Name, config.Source, config.Sink = "billing", b, b
	c, err := consumer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return c, stop
}
