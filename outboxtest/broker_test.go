package outboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/outboxtest"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

func TestBrokerConformsAsSink(t *testing.T) {
	const limit = 300 << 10
	sinktest.Run(t, func(testing.TB) sinktest.Fixture {
		b := outboxtest.NewBroker(outboxtest.BrokerConfig{Topics: map[string]int{"orders": 4}, MaxMessage: limit})
		return sinktest.Fixture{
			Sink: b.Sink(), Topic: "orders", Missing: "nowhere",
			Read: func(testing.TB) (all []sinktest.Stored) {
				for _, m := range b.Messages("orders") {
					s := sinktest.Stored{Key: m.Key, Payload: m.Payload, Coordinates: m.Coordinates}
					for _, h := range m.Headers {
						s.Headers = append(s.Headers, relay.Header(h))
					}
					all = append(all, s)
				}
				return all
			},
			Fill: func(m relay.Message) relay.Message {
				size := len(m.Key)
				for _, h := range m.Headers {
					size += len(h.Name) + len(h.Value)
				}
				m.Payload = make([]byte, limit-size)
				return m
			},
			Keeps: sinktest.Keeps{Key: true, HeaderOrder: true},
		}
	})
}

// publish publishes a message for each id, of one key.
func publish(t *testing.T, b *outboxtest.Broker, topic, key string, ids ...string) []relay.Outcome {
	t.Helper()
	var batch []relay.Message
	for _, id := range ids {
		batch = append(batch, relay.Message{EventID: id, Key: key, Topic: topic, Headers: []relay.Header{{Name: "X-Event-Id", Value: id}}})
	}
	return b.Sink().Publish(t.Context(), batch)
}

func fetch(t *testing.T, s consumer.Source, limit int) []*consumer.Delivery {
	t.Helper()
	deliveries, err := s.Fetch(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	return deliveries
}

func ids(deliveries []*consumer.Delivery) string {
	var all []string
	for _, d := range deliveries {
		all = append(all, d.Message.EventID())
	}
	return strings.Join(all, " ")
}

// nothing says whether a source has nothing to give.
func nothing(t *testing.T, s consumer.Source) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	deliveries, err := s.Fetch(ctx, 100)
	if err == nil {
		t.Logf("there is %s", ids(deliveries))
	}
	return errors.Is(err, context.DeadlineExceeded)
}

func oneLane() outboxtest.BrokerConfig {
	return outboxtest.BrokerConfig{Topics: map[string]int{"orders": 1}}
}

func TestPositionMovesOverContiguousFinishedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outboxtest.NewBroker(oneLane())
		publish(t, b, "orders", "k", "1", "2", "3", "4")
		s := b.Source("g", "orders")
		d := fetch(t, s, 3)
		if ids(d) != "1 2 3" || d[0].Lane != "orders/0" || d[0].Deliveries != 1 || d[2].Message.Coordinates != "memory:orders/0@2" {
			t.Fatalf("got %s: %+v", ids(d), d[0])
		}
		s.Finish(d[0], d[2])
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		d = fetch(t, b.Source("g", "orders"), 100)
		if ids(d) != "2 3 4" || d[0].Deliveries != 2 || d[2].Deliveries != 1 {
			t.Errorf("after a restart it is %s", ids(d))
		}
		if other := fetch(t, b.Source("another", "orders"), 100); ids(other) != "1 2 3 4" {
			t.Errorf("another group gets %s", ids(other))
		}
	})
}

func TestReturnedMessagesComeAgainInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outboxtest.NewBroker(oneLane())
		publish(t, b, "orders", "k", "1", "2", "3")
		s := b.Source("g", "orders")
		d := fetch(t, s, 100)
		s.Return(d[2], d[0])
		s.Finish(d[0]) // is no longer in hand
		again := fetch(t, s, 100)
		if ids(again) != "1 3" || again[0].Deliveries != 2 {
			t.Errorf("got %s", ids(again))
		}
		if s.Finish(again...); !nothing(t, s) {
			t.Error("what is in hand was delivered again")
		}
	})
}

func TestFetchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outboxtest.NewBroker(outboxtest.BrokerConfig{})
		s := b.Source("g", "orders", "orders.retry.1s")
		began := time.Now()
		go func() {
			time.Sleep(time.Hour)
			publish(t, b, "orders.retry.1s", "k", "1")
		}()
		if d := fetch(t, s, 1); ids(d) != "1" || time.Since(began) != time.Hour || !d[0].Message.At.Equal(time.Now()) {
			t.Errorf("%s came after %v", ids(d), time.Since(began))
		}
		s.Pause("orders.retry.1s/0")
		s.Pause("orders.retry.1s/1")
		s.Pause("orders.retry.1s/2")
		publish(t, b, "orders.retry.1s", "k", "2")
		publish(t, b, "orders", "k", "3")
		if d := fetch(t, s, 100); ids(d) != "3" {
			t.Errorf("got %s, want what is not paused", ids(d))
		}
		go func() {
			time.Sleep(time.Hour)
			for i := range 3 {
				s.Resume(fmt.Sprint("orders.retry.1s/", i))
			}
		}()
		if d := fetch(t, s, 100); ids(d) != "2" || time.Since(began) != 2*time.Hour {
			t.Errorf("%s came after %v", ids(d), time.Since(began))
		}
	})
}

func TestRebalanceWaitsForWhatIsInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outboxtest.NewBroker(outboxtest.BrokerConfig{Topics: map[string]int{"orders": 2}})
		for i := range 20 {
			publish(t, b, "orders", fmt.Sprint("key", i), fmt.Sprint(i))
		}
		first := b.Source("g", "orders")
		mine := fetch(t, first, 100)
		lanes := map[string][]*consumer.Delivery{}
		for _, d := range mine {
			lanes[d.Lane] = append(lanes[d.Lane], d)
		}
		if len(mine) != 20 || len(lanes) != 2 {
			t.Fatalf("the only member has %d messages of %d lanes", len(mine), len(lanes))
		}
		second := b.Source("g", "orders")
		select {
		case <-lanes["orders/1"][0].Revoked:
		default:
			t.Fatal("the lane was not revoked")
		}
		select {
		case <-lanes["orders/0"][0].Revoked:
			t.Fatal("the lane that stays was revoked")
		default:
		}
		moving := lanes["orders/1"]
		first.Finish(moving[0])
		first.Return(moving[1 : len(moving)-1]...)
		if !nothing(t, second) {
			t.Error("the lane went over before all of it came back")
		}
		if !nothing(t, first) {
			t.Error("the old member gets of the revoked lane")
		}
		first.Finish(moving[len(moving)-1])
		got := fetch(t, second, 100)
		if ids(got) != ids(moving[1:]) {
			t.Errorf("the new member gets %s, want %s", ids(got), ids(moving[1:]))
		}
		first.Finish(moving[1]) // is no longer its own
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
		if d := fetch(t, first, 100); ids(d) != ids(got) {
			t.Errorf("after the new member has died the old one gets %s, want %s", ids(d), ids(got))
		}
		first.Return(moving...) // of the first time that it had them
		if !nothing(t, first) {
			t.Error("what was returned of an earlier loan came again")
		}
		if _, err := second.Fetch(t.Context(), 1); err == nil {
			t.Error("a closed source fetches")
		}
	})
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outboxtest.NewBroker(oneLane())
		bad := errors.New("bad")
		b.FailNext(relay.Permanent(bad), relay.Retry(bad))
		classes := func(outcomes []relay.Outcome) (all []relay.Class) {
			for _, o := range outcomes {
				all = append(all, o.Class)
			}
			return all
		}
		if got := classes(publish(t, b, "orders", "k", "1", "2")); !slices.Equal(got, []relay.Class{relay.ClassPermanent, relay.ClassSkipped}) {
			t.Errorf("outcomes are %v", got)
		}
		if got := classes(publish(t, b, "orders", "k", "1")); got[0] != relay.ClassRetry || len(b.Messages("orders")) != 0 {
			t.Errorf("outcomes are %v, stored is %v", got, b.Messages("orders"))
		}
		b.LoseConfirms(1)
		if got := classes(publish(t, b, "orders", "k", "1", "2")); !slices.Equal(got, []relay.Class{relay.ClassUnavailable, relay.ClassSkipped}) {
			t.Errorf("outcomes are %v", got)
		}
		publish(t, b, "orders", "k", "1", "2")
		s := b.Source("g", "orders")
		d := fetch(t, s, 100)
		if ids(d) != "1 1 2" {
			t.Errorf("after a lost confirmation there is %s", ids(d))
		}
		b.LoseAcks("g", 1)
		s.Finish(d[1])
		s.Finish(d[0], d[2])
		if !nothing(t, s) {
			t.Error("a lost acknowledgement shows before the lane goes over")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = b.Source("g", "orders")
		if d = fetch(t, s, 100); ids(d) != "1 2" {
			t.Errorf("after a lost acknowledgement %s comes again", ids(d))
		}
		s.Finish(d[0])
		b.Rewind("g", "orders")
		if again := fetch(t, s, 100); ids(again) != "1 1" {
			t.Errorf("rewound, it delivers %s, want what is not in hand", ids(again))
		}
		b.Break(bad)
		if _, err := s.Fetch(t.Context(), 1); !errors.Is(err, bad) {
			t.Errorf("Fetch of a broken broker says %v", err)
		}
		if got := publish(t, b, "orders", "k", "3")[0]; got.Class != relay.ClassUnavailable {
			t.Errorf("Publish to a broken broker says %v", got)
		}
		b.Mend()
		publish(t, b, "orders", "k", "4")
		if d := fetch(t, s, 100); ids(d) != "4" {
			t.Errorf("mended, it delivers %s", ids(d))
		}
	})
}

func TestMistakesPanic(t *testing.T) {
	for name, mistake := range map[string]func(){
		"no partition": func() { outboxtest.NewBroker(outboxtest.BrokerConfig{Topics: map[string]int{"a": 0}}) },
		"published":    func() { outboxtest.NewBroker(outboxtest.BrokerConfig{}).FailNext(relay.Published("memory:")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			mistake()
		}()
	}
}

func TestMissingTopicIsNamed(t *testing.T) {
	_, err := outboxtest.NewBroker(oneLane()).Source("g", "orders", "nowhere").Fetch(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v", err)
	}
}
