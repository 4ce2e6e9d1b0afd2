// Package consumer tests consumers with parking on real databases.
package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumer/parking"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/relay"
)

// stream is a source of what is sent to it, in order, without lanes. It counts what was acknowledged.
type stream struct {
	mu       sync.Mutex
	messages []*consumer.Delivery
	sent     int
	finished int
	changes  chan struct{}
}

func newStream() *stream { return &stream{changes: make(chan struct{})} }

func (s *stream) send(key, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	s.messages = append(s.messages, &consumer.Delivery{Message: message(key, id, s.sent)})
	s.changed()
}

func message(key, id string, offset int) inbox.Message {
	return inbox.Message{
		Topic: "orders", Offset: fmt.Sprint(offset), Coordinates: fmt.Sprintf("memory:orders@%d", offset), Key: key,
		Headers: []inbox.Header{{Name: "X-Event-Id", Value: id}, {Name: "X-Idempotency-Key", Value: id}, {Name: "X-Event-Type", Value: "Made"}},
		Payload: []byte(id),
	}
}

func (s *stream) changed() {
	close(s.changes)
	s.changes = make(chan struct{})
}

func (s *stream) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	for {
		s.mu.Lock()
		n := min(limit, len(s.messages))
		deliveries, changes := s.messages[:n:n], s.changes
		s.messages = s.messages[n:]
		s.mu.Unlock()
		if n > 0 {
			return deliveries, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changes:
		}
	}
}

func (s *stream) Finish(deliveries ...*consumer.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished += len(deliveries)
}

func (s *stream) unfinished() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent - s.finished
}

func (s *stream) Return(...*consumer.Delivery) {}
func (s *stream) Pause(string)                 {}
func (s *stream) Resume(string)                {}
func (s *stream) Flush(context.Context) error  { return nil }
func (s *stream) Close() error                 { return nil }

// letters is a sink that keeps what is published, and takes nothing while refused is set.
type letters struct {
	mu      sync.Mutex
	taken   []relay.Message
	refused error
}

func (l *letters) Publish(_ context.Context, batch []relay.Message) (outcomes []relay.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range batch {
		if l.refused != nil {
			outcomes = append(outcomes, relay.Permanent(l.refused))
			continue
		}
		l.taken = append(l.taken, m)
		outcomes = append(outcomes, relay.Published("memory:"+m.Topic))
	}
	return outcomes
}

func (l *letters) refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = err
}

func (l *letters) all() []relay.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.taken)
}

func (l *letters) Close() error { return nil }

func newParking(t *testing.T, db testdb.Database) *parking.Table {
	t.Helper()
	p, err := parking.New(db.DB, parking.Config{Dialect: db.Dialect})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds everything there
		if err := p.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return p
}
