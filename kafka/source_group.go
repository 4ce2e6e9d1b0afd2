package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// assigned begins the lanes of partitions that the group has given to this member. It ends the poll that waits, which may hold
// records of the same partition from before it went: they must not count as the lane's first.
func (s *Source) assigned(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigning = true
	for s.wake != nil {
		s.wake()
		s.changed.Wait()
	}
	s.assigning = false
	s.changed.Broadcast()
	each(topics, func(topic string, number int32) {
		s.partitions[laneName(topic, number)] = newPartition(topic, number)
	})
}

// revoked waits for what is in hand, commits, and gives the partitions up. The client goes on with its heartbeats and the other
// partitions meanwhile.
func (s *Source) revoked(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
	going := s.take(topics)
	if len(going) == 0 {
		return
	}
	s.await(going, s.config.RebalanceTimeout*2/3)
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = s.commit(ctx, func() []*ownedPartition { return going }) // what is not committed comes again, which the inbox finds out
	s.forget(client, topics, going)
}

// lost gives up partitions that others may have already: nothing of them can be committed any more.
func (s *Source) lost(_ context.Context, client *kgo.Client, topics map[string][]int32) {
	s.forget(client, topics, s.take(topics))
}

// take tells the holders of deliveries that their lanes go.
func (s *Source) take(topics map[string][]int32) (going []*ownedPartition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	each(topics, func(topic string, number int32) {
		if p := s.partitions[laneName(topic, number)]; p != nil {
			p.going = true
			close(p.revoked)
			going = append(going, p)
		}
	})
	return going
}

// await returns when nothing of the partitions is in hand, the time is over, or the source is closed.
func (s *Source) await(going []*ownedPartition, limit time.Duration) {
	over := false
	timer := time.AfterFunc(limit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		over = true
		s.changed.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !over && !s.closed && anyOpen(going) {
		s.changed.Wait()
	}
}

func anyOpen(partitions []*ownedPartition) bool {
	for _, p := range partitions {
		if p.open() {
			return true
		}
	}
	return false
}

// forget ends the lanes, so that what is still in hand of them settles nothing.
func (s *Source) forget(client *kgo.Client, topics map[string][]int32, going []*ownedPartition) {
	s.mu.Lock()
	for _, p := range going {
		delete(s.partitions, laneName(p.topic, p.number))
	}
	s.mu.Unlock()
	client.ResumeFetchPartitions(topics) // a pause does not outlive the lane
}

func (s *Source) commitRegularly(ctx context.Context) {
	ticks := time.NewTicker(s.config.CommitInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			_ = s.commit(ctx, s.all) // the next tick tries again, and Flush tells
		}
	}
}

// all returns the partitions of this member. mu is held.
func (s *Source) all() (all []*ownedPartition) {
	for _, p := range s.partitions {
		all = append(all, p)
	}
	return all
}

// commit commits the positions that have moved, of the partitions that which returns under the lock.
func (s *Source) commit(ctx context.Context, which func() []*ownedPartition) error {
	select {
	case s.committing <- struct{}{}:
		defer func() { <-s.committing }()
	case <-ctx.Done():
		return fmt.Errorf("kafka: commit the offsets of group %s: an earlier commit waits for an answer: %w", s.config.Group, ctx.Err())
	}
	s.mu.Lock()
	sent := make(map[string]map[int32]kgo.EpochOffset)
	var moved []*ownedPartition
	for _, p := range which() {
		if p.moved {
			add(sent, p, p.position)
			moved = append(moved, p)
		}
	}
	s.mu.Unlock()
	if len(moved) == 0 {
		return nil
	}
	err := s.send(ctx, sent)
	if err != nil {
		return fmt.Errorf("kafka: commit the offsets of group %s: %w", s.config.Group, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range moved {
		p.moved = p.position != sent[p.topic][p.number]
	}
	return nil
}

func (s *Source) send(ctx context.Context, offsets map[string]map[int32]kgo.EpochOffset) error {
	var result error
	s.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		errs := []error{err}
		if err == nil {
			for _, t := range answer.Topics {
				for _, p := range t.Partitions {
					if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
						errs = append(errs, fmt.Errorf("%s: %w", laneName(t.Topic, p.Partition), err))
					}
				}
			}
		}
		result = errors.Join(errs...)
	})
	return result
}

func add(offsets map[string]map[int32]kgo.EpochOffset, p *ownedPartition, to kgo.EpochOffset) {
	if offsets[p.topic] == nil {
		offsets[p.topic] = make(map[int32]kgo.EpochOffset)
	}
	offsets[p.topic][p.number] = to
}

func each(topics map[string][]int32, f func(topic string, number int32)) {
	for topic, numbers := range topics {
		for _, number := range numbers {
			f(topic, number)
		}
	}
}
