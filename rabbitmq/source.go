package rabbitmq

import (
	"context"
	"fmt"
	"sync"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/intake"
)

// Source reads queues. It implements consumer.Source; a lane is a queue, and is never revoked. RabbitMQ hands out messages one by
// one; the package comment tells how an order of keys is had.
//
// Each queue has a channel of its own, with a prefetch of its own, on one connection. When either ends, the source subscribes
// again, sooner or later: what was delivered before can then no longer be acknowledged. The server delivers it again, and to finish
// or to return the old delivery does nothing.
//
// What is finished is acknowledged in the background, and what is returned goes back to its place in the queue at once.
type Source struct {
	config  Config // of the line
	line    line
	end     context.CancelFunc
	running sync.WaitGroup
	readers []*reader
	intake  *intake.Intake[*consumer.Delivery]

	mu sync.Mutex
}

var _ consumer.Source = (*Source)(nil)

// OpenSource checks the configuration and subscribes in the background: a server that is not reachable or refuses the login,
// and a queue that is missing, show as errors of Fetch. The caller closes the source. The error reports every mistake of the
// configuration.
func OpenSource(c SourceConfig) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rabbitmq source: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	s := &Source{config: c.shared(), end: end}
	s.line.config = &s.config
	lane := func(d *consumer.Delivery) string { return d.Lane }
	lend := func(d *consumer.Delivery) *consumer.Delivery { return d }
	s.intake = intake.New(&s.mu, lane, lend)
	for _, queue := range c.Queues {
		s.readers = append(s.readers, &reader{source: s, queue: queue, prefetch: c.Prefetch, shelf: s.intake.NewShelf()})
	}
	for _, r := range s.readers {
		s.running.Go(func() { r.run(ctx) })
	}
	return s, nil
}

// Fetch implements consumer.Source. An error is that of one or several queues, and told once each time that subscribing
// fails; meanwhile the other queues go on.
func (s *Source) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	return s.intake.Fetch(ctx, limit)
}

// Finish implements consumer.Source.
func (s *Source) Finish(deliveries ...*consumer.Delivery) { s.settle(deliveries, (*ledger).finish) }

// Return implements consumer.Source.
func (s *Source) Return(deliveries ...*consumer.Delivery) { s.settle(deliveries, (*ledger).giveBack) }

func (s *Source) settle(deliveries []*consumer.Delivery, how func(*ledger, uint64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		l := d.Ref.(loan)
		how(&l.subscription.ledger, l.tag)
		intake.Signal(l.subscription.wake)
	}
}

// Pause implements consumer.Source. The server goes on to send what the queue's prefetch allows, which waits in the source: to
// cancel the subscription would give a queue with a single active consumer to another process, and to send back what is here would
// count as a delivery.
func (s *Source) Pause(lane string) { s.intake.Pause(lane) }

// Resume implements consumer.Source.
func (s *Source) Resume(lane string) { s.intake.Resume(lane) }

// Flush implements consumer.Source. It does not wait for what can no longer be acknowledged.
func (s *Source) Flush(ctx context.Context) error {
	for _, flushed := range s.flush() {
		select {
		case <-flushed:
		case <-ctx.Done():
			return fmt.Errorf("rabbitmq: acknowledge what is finished: %w", ctx.Err())
		}
	}
	return nil
}

// flush returns a channel for each subscription that is closed when nothing of now is left to be acknowledged on it.
func (s *Source) flush() (flushes []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		if r.current != nil {
			flushed := make(chan struct{})
			r.current.flushes = append(r.current.flushes, flushed)
			intake.Signal(r.current.wake)
			flushes = append(flushes, flushed)
		}
	}
	return flushes
}

// Close implements consumer.Source. It waits a few seconds for acknowledgements, and returns an error when that was not enough.
// What the source has goes back to its place in the queue.
func (s *Source) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.Flush(ctx)
	s.end()
	s.running.Wait()
	s.line.close()
	if err != nil {
		return fmt.Errorf("%w; what is not acknowledged comes again", err)
	}
	return nil
}
