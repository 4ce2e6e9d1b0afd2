package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/intake"
)

// Source reads streams as a member of a consumer group. It implements consumer.Source; a lane is a stream, and is never revoked. Redis
// hands out entries one by one; the package comment tells how an order of keys is had.
//
// As long as the source lives and reaches the server, what it has is kept from being taken over. A connection that is lost
// and comes back changes nothing; when it stays away for longer than SourceConfig.ClaimAfter, other members take over
// what the source has. What is finished is acknowledged in the background; an entry that was taken over meanwhile as well,
// for it is done.
type Source struct {
	config  SourceConfig
	client  redis.UniversalClient
	end     context.CancelFunc
	running sync.WaitGroup
	readers []*reader
	intake  *intake.Intake[*loan]

	mu sync.Mutex
}

var _ consumer.Source = (*Source)(nil)

// OpenSource checks the configuration and begins to read in the background: a server that is not reachable or refuses the
// login, and a key that holds something else than a stream, show as errors of Fetch. The caller closes the source. The
// error reports every mistake of the configuration.
func OpenSource(c SourceConfig) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("redis source: %w", err)
	}
	options := c.shared().options()
	options.PoolSize = 2*len(c.Streams) + 2 // a connection waits for entries of each stream, another one serves what is in hand
	ctx, end := context.WithCancel(context.Background())
	s := &Source{config: c, client: redis.NewUniversalClient(options), end: end}
	s.intake = intake.New(&s.mu, (*loan).lane, (*loan).delivery)
	for _, stream := range c.Streams {
		s.readers = append(s.readers, newReader(s, stream))
	}
	for _, r := range s.readers {
		s.running.Go(func() { r.run(ctx) })
		s.running.Go(func() { r.keep(ctx) })
	}
	return s, nil
}

// Fetch implements consumer.Source. An error is that of one or several streams, and told once each time that reading fails;
// meanwhile the other streams go on.
func (s *Source) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	return s.intake.Fetch(ctx, limit)
}

// Finish implements consumer.Source.
func (s *Source) Finish(deliveries ...*consumer.Delivery) { s.settle(deliveries, finished) }

// Return implements consumer.Source.
func (s *Source) Return(deliveries ...*consumer.Delivery) { s.settle(deliveries, returned) }

// settle leaves out what was settled before, and what belongs to a group that is gone.
func (s *Source) settle(deliveries []*consumer.Delivery, how state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		l := d.Ref.(*loan)
		if r := l.reader; r.held[l.id] == l && l.state == lent {
			l.state = how
			r.settled[how] = append(r.settled[how], l)
			intake.Signal(r.wake)
		}
	}
}

// Pause implements consumer.Source. The server is not asked for more of the stream; what it has given already waits in the source.
func (s *Source) Pause(lane string) { s.intake.Pause(lane) }

// Resume implements consumer.Source.
func (s *Source) Resume(lane string) { s.intake.Resume(lane) }

// Flush implements consumer.Source.
func (s *Source) Flush(ctx context.Context) error {
	for _, over := range s.unanswered() {
		select {
		case <-over:
		case <-ctx.Done():
			return fmt.Errorf("redis: acknowledge what is finished: %w", ctx.Err())
		}
	}
	return nil
}

// unanswered returns a channel for each loan that is finished now, which is closed when the server knows.
func (s *Source) unanswered() (all []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		for _, l := range r.held {
			if l.state != finished {
				continue
			}
			if l.over == nil {
				l.over = make(chan struct{})
			}
			all = append(all, l.over)
		}
	}
	return all
}

// closeTimeout bounds the last acknowledgements, and after them the last words to the server.
const closeTimeout = 5 * time.Second

// Close implements consumer.Source. It waits a few seconds for acknowledgements, and returns an error when that was not enough.
func (s *Source) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.Flush(ctx)
	s.end()
	s.running.Wait()
	ctx, cancel = context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, r := range s.readers {
		r.leave(ctx)
	}
	_ = s.client.Close() // nothing is under way
	if err != nil {
		return fmt.Errorf("%w; what is not acknowledged comes again", err)
	}
	return nil
}
