package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/consumer"
)

// Source reads topics as a member of a consumer group. It implements consumer.Source; a lane is a partition.
//
// The group rebalances cooperatively: only partitions that move are interrupted. Those are held back until what is in hand of
// them is finished or returned and their offsets are committed, for two thirds of RebalanceTimeout at most; what is in hand then
// comes again, elsewhere. An offset is committed once everything before it in the partition is finished. A group without
// committed offsets begins at the start of the topic.
//
// What is returned comes again from memory, in the order of its offsets, unless its partition is about to go.
type Source struct {
	config    SourceConfig
	client    *kgo.Client
	committer sync.WaitGroup
	end       context.CancelFunc

	committing chan struct{} // holds one token while offsets are on their way, so that they arrive in order
	turn       chan struct{} // holds one token while somebody polls

	mu         sync.Mutex
	changed    sync.Cond                  // something was finished or returned, a poll began or ended, or the source is closed
	partitions map[string]*ownedPartition // by lane
	wake       context.CancelFunc         // ends the poll of the client, nil unless there is one
	assigning  bool                       // no poll of the client begins
	closed     bool
}

var _ consumer.Source = (*Source)(nil)

// OpenSource checks the configuration and joins the group in the background; Fetch tells when that fails. The caller closes the
// source. The error reports every mistake of the configuration.
func OpenSource(c SourceConfig) (*Source, error) { return openSource(c) }

func openSource(c SourceConfig, extra ...kgo.Opt) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	s := &Source{
		config:     c,
		committing: make(chan struct{}, 1),
		turn:       make(chan struct{}, 1),
		partitions: make(map[string]*ownedPartition),
	}
	s.changed.L = &s.mu
	options := append(c.options(), kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked), kgo.OnPartitionsLost(s.lost))
	s.client, err = kgo.NewClient(append(options, extra...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	s.committer.Go(func() { s.commitRegularly(ctx) })
	return s, nil
}

// Fetch implements consumer.Source. Calls at the same time take turns. While nothing comes it looks every five seconds for what may
// stand in the way: brokers that cannot be reached, a login that is refused, a topic that does not exist or may not be read. It
// returns that as an error, and goes on once that has passed.
func (s *Source) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		deliveries, err := s.poll(ctx, limit)
		if len(deliveries) > 0 {
			return deliveries, nil // an error of another partition comes again
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("kafka: read %v as group %s: %w", s.config.Topics, s.config.Group, err)
		}
	}
}

// poll returns nothing when it was woken. What the client has already handed out of a partition that goes meanwhile is left out:
// nobody holds it, so the partition does not wait for it, and it comes to the next owner.
func (s *Source) poll(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	waiting, wake := context.WithTimeout(ctx, quiet)
	defer wake()
	if again := s.beginPoll(limit, wake); len(again) > 0 {
		return again, nil
	}
	fetches := s.client.PollRecords(waiting, limit)
	deliveries, err := s.endPoll(fetches), failure(fetches)
	if len(deliveries) == 0 && err == nil && errors.Is(waiting.Err(), context.DeadlineExceeded) {
		err = s.obstacle(ctx)
	}
	return deliveries, err
}

// quiet is how long nothing may come before Fetch asks for the reason. The client keeps it to itself: it goes on trying to connect,
// and waits for topics that do not exist.
const quiet = 5 * time.Second

// obstacle returns what stands in the way of reading the topics, or nil.
func (s *Source) obstacle(ctx context.Context) error {
	topics, err := kadm.NewClient(s.client).ListTopics(ctx, s.config.Topics...)
	errs := []error{err}
	for _, t := range topics.Sorted() {
		switch {
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition):
			errs = append(errs, fmt.Errorf("topic %s does not exist, or we may not see it: create it, or allow this login to read it: %w", t.Topic, t.Err))
		case t.Err != nil:
			errs = append(errs, fmt.Errorf("topic %s: %w", t.Topic, t.Err))
		}
	}
	return errors.Join(errs...)
}

// beginPoll returns what was returned. If that is nothing, a poll of the client begins, which wake ends.
func (s *Source) beginPoll(limit int, wake context.CancelFunc) (deliveries []*consumer.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.assigning {
		s.changed.Wait()
	}
	for _, p := range s.partitions {
		deliveries = append(deliveries, p.deliverAgain(limit-len(deliveries))...)
	}
	if len(deliveries) == 0 {
		s.wake = wake
	}
	return deliveries
}

func (s *Source) endPoll(fetches kgo.Fetches) (deliveries []*consumer.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = nil
	s.changed.Broadcast()
	fetches.EachRecord(func(r *kgo.Record) {
		if p := s.partitions[laneName(r.Topic, r.Partition)]; p != nil && !p.going {
			deliveries = append(deliveries, p.deliver(r))
		}
	})
	return deliveries
}

// failure is what the poll could not read, but for its own end.
func failure(fetches kgo.Fetches) error {
	var errs []error
	for _, e := range fetches.Errors() {
		switch {
		case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
		case e.Topic == "":
			errs = append(errs, e.Err)
		case e.Partition < 0:
			errs = append(errs, fmt.Errorf("topic %s: %w", e.Topic, e.Err))
		default:
			errs = append(errs, fmt.Errorf("%s: %w", laneName(e.Topic, e.Partition), e.Err))
		}
	}
	return errors.Join(errs...)
}

// Finish implements consumer.Source.
func (s *Source) Finish(deliveries ...*consumer.Delivery) {
	s.settle(deliveries, (*ownedPartition).finish)
}

// Return implements consumer.Source.
func (s *Source) Return(deliveries ...*consumer.Delivery) {
	s.settle(deliveries, (*ownedPartition).giveBack)
}

// settle leaves out what belongs to a partition that is gone, and what was settled before.
func (s *Source) settle(deliveries []*consumer.Delivery, how func(*ownedPartition, *loan)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		l := d.Ref.(*loan)
		if p := l.partition; s.partitions[d.Lane] == p && !l.finished && !l.returned {
			how(p, l)
		}
	}
	s.wakePoll()
	s.changed.Broadcast()
}

// wakePoll ends the poll that waits, if something can be delivered again. mu is held.
func (s *Source) wakePoll() {
	if s.wake == nil {
		return
	}
	for _, p := range s.partitions {
		if p.comesAgain() {
			s.wake()
			return
		}
	}
}

// Pause implements consumer.Source.
func (s *Source) Pause(lane string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.partitions[lane]; p != nil {
		p.paused = true
		s.client.PauseFetchPartitions(map[string][]int32{p.topic: {p.number}})
	}
}

// Resume implements consumer.Source.
func (s *Source) Resume(lane string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.partitions[lane]; p != nil {
		p.paused = false
		s.client.ResumeFetchPartitions(map[string][]int32{p.topic: {p.number}})
		s.wakePoll()
	}
}

// Flush implements consumer.Source.
func (s *Source) Flush(ctx context.Context) error {
	for {
		err := s.commit(ctx, s.all)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(s.config.CommitInterval):
		case <-ctx.Done():
			return err
		}
	}
}

// closeTimeout bounds the last commit and the leaving of the group.
const closeTimeout = 5 * time.Second

// Close implements consumer.Source. It commits what is finished, and gives up what is in hand.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.end()
	s.committer.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.commit(ctx, s.all)
	s.client.Close()
	if err != nil {
		return fmt.Errorf("%w; what was finished since the last commit comes again", err)
	}
	return nil
}
