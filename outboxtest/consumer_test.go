package outboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/outboxtest"
)

// A Consumer runs on the broker in a bubble: retries take no time, and the dead letter is in its topic.
func TestConsumerRunsOnTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := outboxtest.NewBroker(outboxtest.BrokerConfig{})
		for i := range 100 {
			publish(t, b, "orders", fmt.Sprint("key", i%10), fmt.Sprint(i))
		}
		b.LoseAcks("g", 3)
		applied := make(map[string]int)
		tries := 0
		handler := func(_ context.Context, batch []inbox.Message) []inbox.Result {
			results := make([]inbox.Result, len(batch))
			stopped := make(map[string]bool)
			for i, m := range batch {
				switch {
				case stopped[m.Key]:
					results[i].Err = inbox.ErrSkipped
				case m.EventID() == "33":
					tries++
					results[i].Err = errors.New("it fails")
					stopped[m.Key] = true
				default:
					applied[m.EventID()]++
					results[i].Outcome = inbox.Applied
				}
			}
			return results
		}
		run := func() {
			s := b.Source("g", "orders", "orders.retry.1s")
			c, err := consumer.New(consumer.Config{
				Name: "g", Source: s, Sink: b.Sink(), Handler: handler, Workers: 1,
				Policy: consumer.Policy{Retry: consumer.RetryTopics, Delays: []time.Duration{time.Second}},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		run()
		if len(applied) != 99 || tries != 2 {
			t.Errorf("%d messages were applied, and the bad one tried %d times", len(applied), tries)
		}
		if dead := b.Messages("orders.dlt"); len(dead) != 1 || dead[0].EventID() != "33" {
			t.Errorf("dead letters: %v", dead)
		}
		before := maps.Clone(applied)
		run()
		if again := slices.DeleteFunc(slices.Sorted(maps.Keys(applied)), func(id string) bool { return applied[id] == before[id] }); len(again) < 3 {
			t.Errorf("after lost acknowledgements %v come again", again)
		}
	})
}
