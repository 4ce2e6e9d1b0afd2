package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/postrider/postrider/consumer"
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
	news    chan struct{} // holds a token when a reader may have something

	mu      sync.Mutex
	readers []*reader
	first   int // the reader that Fetch begins with
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
	s := &Source{config: c.shared(), end: end, news: make(chan struct{}, 1)}
	s.line.config = &s.config
	for _, queue := range c.Queues {
		s.readers = append(s.readers, &reader{source: s, queue: queue, prefetch: c.Prefetch})
	}
	for _, r := range s.readers {
		s.running.Go(func() { r.run(ctx) })
	}
	return s, nil
}

// Fetch implements consumer.Source. An error is that of one or several queues, and told once each time that subscribing
// fails; meanwhile the other queues go on.
func (s *Source) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	for {
		if err := s.failure(); err != nil {
			return nil, fmt.Errorf("rabbitmq: %w", err)
		}
		if deliveries := s.take(limit); len(deliveries) > 0 {
			return deliveries, nil
		}
		select {
		case <-s.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// failure returns what was not yet told.
func (s *Source) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []error
	for _, r := range s.readers {
		if r.failure != nil {
			same := func(other error) bool { return other.Error() == r.failure.Error() }
			if !slices.ContainsFunc(failures, same) { // without a connection, all queues fail alike
				failures = append(failures, r.failure)
			}
			r.failure = nil
		}
	}
	return errors.Join(failures...)
}

// take returns what is ready, of each reader in turn.
func (s *Source) take(limit int) (deliveries []*consumer.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = (s.first + 1) % len(s.readers)
	left := 0
	for i := range s.readers {
		r := s.readers[(s.first+i)%len(s.readers)]
		if r.paused {
			continue
		}
		n := min(limit-len(deliveries), len(r.ready))
		deliveries = append(deliveries, r.ready[:n]...)
		r.ready = slices.Delete(r.ready, 0, n)
		left += len(r.ready)
	}
	if left > 0 {
		s.announce() // others may wait
	}
	return deliveries
}

// announce wakes somebody who waits in Fetch.
func (s *Source) announce() {
	select {
	case s.news <- struct{}{}:
	default:
	}
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
		l.subscription.wakeUp()
	}
}

// Pause implements consumer.Source. The server goes on to send what the queue's prefetch allows, which waits in the source: to
// cancel the subscription would give a queue with a single active consumer to another process, and to send back what is here would
// count as a delivery.
func (s *Source) Pause(lane string) { s.turn(lane, true) }

// Resume implements consumer.Source.
func (s *Source) Resume(lane string) { s.turn(lane, false) }

func (s *Source) turn(lane string, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		if r.queue == lane {
			r.paused = paused
		}
	}
	s.announce()
}

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
			r.current.wakeUp()
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
