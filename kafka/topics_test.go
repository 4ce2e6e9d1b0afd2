package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
)

// publishAll sends what is not published yet until all is, and returns how many calls that took.
func publishAll(t *testing.T, sink *Sink, batch []relay.Message) (calls int) {
	t.Helper()
	ctx := testContext(t)
	for len(batch) > 0 {
		if ctx.Err() != nil {
			t.Fatalf("%d messages are still not published", len(batch))
		}
		calls++
		var rest []relay.Message
		for i, o := range sink.Publish(ctx, batch) {
			if o.Class != relay.ClassPublished {
				rest = append(rest, batch[i])
			}
		}
		batch = rest
	}
	return calls
}

func numbered(topic, prefix string, n int) (batch []relay.Message, payloads []string) {
	for i := range n {
		payload := fmt.Sprintf("%s-%d", prefix, i)
		batch, payloads = append(batch, message(topic, fmt.Sprint(i), payload)), append(payloads, payload)
	}
	return batch, payloads
}

func TestTopicGetsMorePartitions(t *testing.T) {
	topic := newTopic(t, 1)
	sink := openSink(t, Config{Brokers: brokers(t)})
	before, payloads := numbered(topic, "before", 50)
	publishAll(t, sink, before)
	if _, err := admin(t).CreatePartitions(testContext(t), 5, topic); err != nil {
		t.Fatal(err)
	}
	sink.topics.mu.Lock()
	sink.topics.known[topic].loaded = time.Now().Add(-2 * topicMaxAge)
	sink.topics.mu.Unlock()
	after, more := numbered(topic, "after", 50)
	publishAll(t, sink, after)
	wantPayloads(t, brokers(t), topic, append(payloads, more...)...)
}

func TestTopicIsDeletedAndCreatedAgain(t *testing.T) {
	topic := newTopic(t, 4)
	sink := openSink(t, Config{Brokers: brokers(t)})
	before, _ := numbered(topic, "before", 50)
	publishAll(t, sink, before)
	a := admin(t)
	if _, err := a.DeleteTopic(testContext(t), topic); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	gone, _ := numbered(topic, "gone", 5)
	for _, o := range sink.Publish(testContext(t), gone) {
		wantOutcome(t, o, relay.ClassRetry, topic)
	}
	if took := time.Since(start); took > patience+2*time.Second {
		t.Errorf("the outcome for a deleted topic took %s", took)
	}
	if _, err := a.CreateTopic(testContext(t), 2, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	after, payloads := numbered(topic, "after", 50)
	publishAll(t, sink, after)
	wantPayloads(t, brokers(t), topic, payloads...)
}
