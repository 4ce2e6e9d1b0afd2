package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/postrider/postrider/consumer"
)

// Source returns a new member of a consumer group, which reads from these topics. A group that was never there begins with the
// first message. Partitions are shared out at once, and go over to a new member when what was fetched of them has come back;
// positions move as they do at Kafka, over contiguous finished messages, and a member that closes while it has messages
// in hand is as one that died. Close ends the membership.
func (b *Broker) Source(groupName string, topics ...string) consumer.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.group(groupName)
	s := &source{broker: b, group: g, topics: topics}
	for _, name := range topics {
		if t := b.topic(name); t != nil {
			g.subscribe(name, t)
		} else {
			s.missing = fmt.Errorf("there is no topic %q", name)
		}
	}
	g.members = append(g.members, s)
	g.rebalance()
	b.wake()
	return s
}

// source is guarded by the broker's mutex.
type source struct {
	broker  *Broker
	group   *group
	topics  []string
	missing error
	closed  bool
	turn    int // of the lanes, so that each has its share
}

// loan is the Ref of a delivery.
type loan struct {
	lane   *lane
	term   int
	offset int
}

var errClosed = errors.New("the source is closed")

func (s *source) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	for {
		deliveries, changed, err := s.fetch(ctx, max(limit, 1))
		if err != nil || len(deliveries) > 0 {
			return deliveries, err
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

func (s *source) fetch(ctx context.Context, limit int) (deliveries []*consumer.Delivery, changed <-chan struct{}, err error) {
	b := s.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case s.closed:
		return nil, nil, errClosed
	case b.broken != nil:
		return nil, nil, b.broken
	case s.missing != nil:
		return nil, nil, s.missing
	}
	lanes := s.group.lanes
	s.turn++
	for i := range lanes {
		l := lanes[(s.turn+i)%len(lanes)]
		if l.owner != s || l.revoking || l.paused {
			continue
		}
		deliveries = append(deliveries, s.lend(l, limit-len(deliveries))...)
	}
	return deliveries, b.changed, nil
}

func (s *source) lend(l *lane, limit int) (deliveries []*consumer.Delivery) {
	log := s.broker.topics[l.topic].partitions[l.partition]
	for len(deliveries) < limit {
		offset, ok := l.next(len(log))
		if !ok {
			break
		}
		deliveries = append(deliveries, &consumer.Delivery{
			Message:    log[offset],
			Lane:       l.name,
			Revoked:    l.revoked,
			Deliveries: l.fetch(offset),
			Ref:        loan{l, l.term, offset},
		})
	}
	return deliveries
}

func (s *source) Finish(deliveries ...*consumer.Delivery) {
	s.settle(deliveries, func() state {
		if s.group.loseAcks > 0 {
			s.group.loseAcks--
			return forgotten
		}
		return finished
	})
}

func (s *source) Return(deliveries ...*consumer.Delivery) {
	s.settle(deliveries, func() state { return waiting })
}

// settle leaves alone what is no longer lent.
func (s *source) settle(deliveries []*consumer.Delivery, end func() state) {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	for _, d := range deliveries {
		if ref := d.Ref.(loan); ref.lane.owner == s && ref.term == ref.lane.term {
			ref.lane.settle(ref.offset, end())
		}
	}
	s.broker.wake()
}

func (s *source) Pause(lane string)  { s.setPaused(lane, true) }
func (s *source) Resume(lane string) { s.setPaused(lane, false) }

func (s *source) setPaused(name string, paused bool) {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	for _, l := range s.group.lanes {
		if l.name == name && l.owner == s {
			l.paused = paused
		}
	}
	s.broker.wake()
}

// Flush has nothing to wait for.
func (s *source) Flush(ctx context.Context) error { return ctx.Err() }

func (s *source) Close() error {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.closed = true
	s.group.members = slices.DeleteFunc(s.group.members, func(m *source) bool { return m == s })
	for _, l := range s.group.lanes {
		if l.owner == s {
			l.abandon()
		}
	}
	s.group.rebalance()
	s.broker.wake()
	return nil
}
