package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/await"
)

// These tests play the client, whose callbacks and polls meet as they seldom do.

var firstOfOrders = map[string][]int32{orders: {0}}

// idleSource reads a topic in which nothing is, and is given a partition that does not exist there.
func idleSource(t *testing.T) *Source {
	t.Helper()
	s := newSource(t, SourceConfig{Brokers: newCluster(t).ListenAddrs(), Group: "g", Topics: []string{payments}})
	t.Cleanup(func() { closeSource(t, s) })
	s.assigned(t.Context(), s.client, firstOfOrders)
	return s
}

func polled(offset int64) kgo.Fetches {
	records := []*kgo.Record{{Topic: orders, Offset: offset}}
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: orders, Partitions: []kgo.FetchPartition{{Records: records}}}}}}
}

// TestPollEndsAfterTheRevocation has a poll bring a record of a partition that is about to go.
func TestPollEndsAfterTheRevocation(t *testing.T) {
	s := idleSource(t)
	s.beginPoll(1, func() {})
	s.take(firstOfOrders)
	if got := s.endPoll(polled(5)); len(got) > 0 {
		t.Errorf("%s was delivered though its partition is about to go", got[0].Message)
	}
}

// TestPollEndsAfterTheReturn has a poll bring a record of a partition that went and came back: it may be behind others that are to
// come, and must not stand before them.
func TestPollEndsAfterTheReturn(t *testing.T) {
	s := idleSource(t)
	woken := make(chan struct{})
	s.beginPoll(1, func() { close(woken) })
	s.revoked(t.Context(), s.client, firstOfOrders)
	back := make(chan struct{})
	go func() {
		defer close(back)
		s.assigned(t.Context(), s.client, firstOfOrders)
	}()
	<-woken
	if got := s.endPoll(polled(5)); len(got) > 0 {
		t.Errorf("%s was delivered as the first of a partition that came back", got[0].Message)
	}
	<-back
	s.beginPoll(1, func() {})
	if got := s.endPoll(polled(3)); len(got) != 1 {
		t.Errorf("%d deliveries of a partition that came back, want 1", len(got))
	}
}

// TestLostPartition wants nothing to be committed of a partition that others may have.
func TestLostPartition(t *testing.T) {
	s := idleSource(t)
	s.beginPoll(1, func() {})
	got := s.endPoll(polled(5))
	s.lost(t.Context(), s.client, firstOfOrders)
	select {
	case <-got[0].Revoked:
	default:
		t.Error("the holder was not told")
	}
	s.Finish(got...)
	if left := s.all(); len(left) > 0 {
		t.Errorf("a partition that was lost has position %+v", left[0].position)
	}
}

// TestFetchWakes has a Fetch wait while its message is returned, and while its lane is resumed.
func TestFetchWakes(t *testing.T) {
	c := newCluster(t)
	produce(t, openSink(t, Config{Brokers: c.ListenAddrs()}).client, orders, "a")
	s := newSource(t, SourceConfig{Brokers: c.ListenAddrs(), Group: "g", Topics: []string{orders}})
	d := wantFetched(t, s, "a")[0]
	for name, wakes := range map[string]func(d *consumer.Delivery){
		"Return": func(d *consumer.Delivery) { s.Return(d) },
		"Resume": func(d *consumer.Delivery) {
			s.Pause(d.Lane)
			s.Return(d) // does not wake it
			s.Resume(d.Lane)
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), quiet/2)
		defer cancel()
		fetched := make(chan *consumer.Delivery)
		go func() {
			got, err := s.Fetch(ctx, 1)
			if err != nil {
				t.Errorf("%s did not wake Fetch: %v", name, err)
				got = []*consumer.Delivery{d}
			}
			fetched <- got[0]
		}()
		await.True(t, time.Second, "Fetch waits", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.wake != nil
		})
		wakes(d)
		d = <-fetched
	}
	closeSource(t, s)
}
