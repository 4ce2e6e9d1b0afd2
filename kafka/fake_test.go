package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/postrider/postrider/relay"
)

// A fake cluster serves the tests of answers that a real one cannot be made to give. It keeps the broker's rules about
// producer ids and sequence numbers.

const orders, payments = "orders", "payments"

// newCluster starts a fake cluster with the topics orders and payments, of four partitions each.
func newCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(4, orders, payments)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func openSink(t testing.TB, c Config, extra ...kgo.Opt) *Sink {
	t.Helper()
	sink, err := open(c, extra...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return sink
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func message(topic, key, payload string) relay.Message {
	return relay.Message{Topic: topic, Key: key, Payload: []byte(payload)}
}

// wantOutcome wants a class and a reason that has all of these words in it.
func wantOutcome(t testing.TB, o relay.Outcome, class relay.Class, words ...string) {
	t.Helper()
	if o.Class != class {
		t.Fatalf("outcome %s (%v), want %s", o.Class, o.Err, class)
	}
	for _, word := range words {
		if !strings.Contains(o.Err.Error(), word) {
			t.Errorf("reason %q does not mention %q", o.Err, word)
		}
	}
}

func wantClasses(t testing.TB, outcomes []relay.Outcome, want ...relay.Class) {
	t.Helper()
	for i, o := range outcomes {
		if o.Class != want[i] {
			t.Errorf("message %d is %s (%v), want %s", i, o.Class, o.Err, want[i])
		}
	}
}

// wantPayloads wants exactly these payloads in a topic, in any order.
func wantPayloads(t testing.TB, addresses []string, topic string, want ...string) {
	t.Helper()
	count := make(map[string]int)
	for _, s := range readTopic(t, addresses, topic) {
		count[string(s.Payload)]++
	}
	for _, payload := range want {
		if count[payload] != 1 {
			t.Errorf("%q is in topic %s %d times, want once", payload, topic, count[payload])
		}
		delete(count, payload)
	}
	for payload := range count {
		t.Errorf("%q is in topic %s, but must not be", payload, topic)
	}
}

// refuse makes the cluster refuse every record batch of the topic orders that has these bytes in it.
func refuse(c *kfake.Cluster, payload string, refusal *kerr.Error) {
	for partition := range int32(4) {
		c.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce}, Topic: orders, Partitions: []int32{partition}, Err: refusal, Count: -1,
			When: func(r kmsg.Request) bool {
				for _, topic := range r.(*kmsg.ProduceRequest).Topics {
					for _, p := range topic.Partitions {
						if p.Partition == partition && strings.Contains(string(p.Records), payload) {
							return true
						}
					}
				}
				return false
			},
		})
	}
}
