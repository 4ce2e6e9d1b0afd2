package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/postrider/postrider/consumer"
)

// Source reads queues. It implements consumer.Source; there are no lanes, because the server hands out messages one by one.
//
// A message is acknowledged when it is finished. When the connection breaks, everything that was not acknowledged comes again, and
// what becomes of the old deliveries settles nothing. A queue that is missing harms no other one: Fetch tells it now and then, and
// begins to read the queue once it is there. A message that is in hand for longer than the server's consumer_timeout (30 minutes)
// comes again too.
//
// The order of a key is kept within one Source. Where several processes read one queue, declare it with x-single-active-consumer, or
// give each process a queue of its own, with a consistent-hash exchange over the aggregate id in front. A message that is returned, or
// comes again, stands where it was, as far as the server can.
type Source struct {
	config     SourceConfig
	connection Config
	incoming   chan *consumer.Delivery
	done       chan struct{}

	mu      sync.Mutex
	session *session
	subs    map[string]*subscription // by queue; one that is over is replaced by the next Fetch
	failed  map[string]time.Time     // when a queue could not be read
}

var _ consumer.Source = (*Source)(nil)

// queueRetry is the pause between two tries of a queue that cannot be read.
const queueRetry = 5 * time.Second

// OpenSource checks the configuration and does not connect: Fetch does. The caller closes the source. The error reports every
// mistake of the configuration.
func OpenSource(c SourceConfig) (*Source, error) {
	c, connection, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rabbitmq source: %w", err)
	}
	return &Source{
		config: c, connection: connection,
		incoming: make(chan *consumer.Delivery), done: make(chan struct{}),
		subs: make(map[string]*subscription), failed: make(map[string]time.Time),
	}, nil
}

// Fetch implements consumer.Source. It may take some seconds to end with its context when it is about to connect.
func (s *Source) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		over, err := s.ready()
		if err != nil {
			return nil, fmt.Errorf("rabbitmq: %w", err)
		}
		if deliveries := s.receive(ctx, limit, over); len(deliveries) > 0 {
			return deliveries, nil
		}
	}
}

// ready sees to it that all queues are read. over tells when one no longer is, or may be tried again.
func (s *Source) ready() (over <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.connect(); err != nil {
		return nil, err
	}
	var errs []error
	for _, queue := range s.config.Queues {
		if sub := s.subs[queue]; sub != nil && !sub.isOver() || time.Since(s.failed[queue]) < queueRetry {
			continue
		}
		if sub := s.subs[queue]; sub != nil {
			errs = append(errs, sub.cause)
			delete(s.subs, queue)
		}
		sub, err := s.session.subscribe(queue, s.config.Prefetch, s.incoming, s.done)
		if err != nil {
			s.failed[queue] = time.Now()
			errs = append(errs, err)
			continue
		}
		s.subs[queue] = sub
	}
	return s.anyOver(), errors.Join(errs...)
}

// connect replaces a connection that has ended. mu is held.
func (s *Source) connect() error {
	if s.session != nil && !s.session.conn.IsClosed() {
		return nil
	}
	s.session = nil
	clear(s.subs)
	clear(s.failed)
	var errs []error
	for _, server := range s.connection.Servers {
		session, err := dial(&s.connection, server)
		if err == nil {
			s.session = session
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("no connection: %w", errors.Join(errs...))
}

// anyOver returns a channel that is closed when a subscription ends, or a queue that failed is to be tried again. mu is held.
func (s *Source) anyOver() <-chan struct{} {
	over := make(chan struct{})
	once := sync.OnceFunc(func() { close(over) })
	for _, sub := range s.subs {
		go func() {
			select {
			case <-sub.ended:
				once()
			case <-over:
			case <-s.done:
			}
		}()
	}
	if len(s.subs) < len(s.config.Queues) {
		time.AfterFunc(queueRetry, once)
	}
	return over
}

// receive waits for one message and takes what is there besides.
func (s *Source) receive(ctx context.Context, limit int, over <-chan struct{}) (deliveries []*consumer.Delivery) {
	select {
	case d := <-s.incoming:
		deliveries = append(deliveries, d)
	case <-over:
		return nil
	case <-ctx.Done():
		return nil
	}
	for len(deliveries) < limit {
		select {
		case d := <-s.incoming:
			deliveries = append(deliveries, d)
		default:
			return deliveries
		}
	}
	return deliveries
}

// Finish implements consumer.Source.
func (s *Source) Finish(deliveries ...*consumer.Delivery) {
	settle(deliveries, (*subscription).acknowledge)
}

// Return implements consumer.Source.
func (s *Source) Return(deliveries ...*consumer.Delivery) {
	settle(deliveries, (*subscription).giveBack)
}

// settle tells the subscriptions; one that has ended settles nothing, and its messages come again.
func settle(deliveries []*consumer.Delivery, how func(*subscription, []uint64) error) {
	bySubscription := make(map[*subscription][]uint64)
	for _, d := range deliveries {
		l := d.Ref.(*loan)
		bySubscription[l.subscription] = append(bySubscription[l.subscription], l.tag)
	}
	for sub, tags := range bySubscription {
		_ = how(sub, tags)
	}
}

// Pause implements consumer.Source. There are no lanes.
func (s *Source) Pause(string) {}

// Resume implements consumer.Source. There are no lanes.
func (s *Source) Resume(string) {}

// Flush implements consumer.Source. What was in hand when a connection broke cannot be acknowledged any more, and is not waited for.
func (s *Source) Flush(ctx context.Context) error {
	s.mu.Lock()
	var living []*subscription
	for _, sub := range s.subs {
		if !sub.isOver() {
			living = append(living, sub)
		}
	}
	s.mu.Unlock()
	flushed := make(chan error, 1)
	go func() {
		for _, sub := range living {
			if err := sub.flush(); err != nil && !sub.isOver() {
				flushed <- fmt.Errorf("rabbitmq: queue %s: acknowledge: %w", sub.queue, err)
				return
			}
		}
		flushed <- nil
	}()
	select {
	case err := <-flushed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements consumer.Source.
func (s *Source) Close() error {
	close(s.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		s.session.close()
	}
	return nil
}
