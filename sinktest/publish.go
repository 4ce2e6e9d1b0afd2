package sinktest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
)

// patience bounds every wait of the suite, so that a sink that never returns fails instead of hanging.
const patience = 2 * time.Minute

// idHeader carries the identity by which stored messages are found again.
const idHeader = "X-Event-Id"

var lastID atomic.Int64

// newMessage returns a message with an identity that no other has.
func newMessage(topic, key string) relay.Message {
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", time.Now().Unix()&0xffffffff, lastID.Add(1))
	return relay.Message{
		EventID: id,
		Key:     key,
		Topic:   topic,
		Headers: []relay.Header{{Name: idHeader, Value: id}, {Name: "X-Event-Type", Value: "tested"}},
		Payload: []byte(`{"id":"` + id + `"}`),
	}
}

// newBatch returns messages of several keys, taking turns.
func newBatch(topic string, keys, messages int) []relay.Message {
	batch := make([]relay.Message, messages)
	for i := range batch {
		batch[i] = newMessage(topic, "key-"+strconv.Itoa(i%keys))
	}
	return batch
}

// publish calls Publish and checks what holds for every answer.
func publish(t testing.TB, ctx context.Context, s relay.Sink, batch []relay.Message) []relay.Outcome {
	t.Helper()
	return publishInBackground(ctx, s, batch)(t)
}

// publishInBackground calls Publish. The function it returns waits for the answer and checks it.
func publishInBackground(ctx context.Context, s relay.Sink, batch []relay.Message) func(testing.TB) []relay.Outcome {
	returned := make(chan []relay.Outcome, 1)
	go func() { returned <- s.Publish(ctx, batch) }()
	return func(t testing.TB) []relay.Outcome {
		t.Helper()
		select {
		case outcomes := <-returned:
			checkOutcomes(t, batch, outcomes)
			return outcomes
		case <-time.After(patience):
			t.Fatalf("Publish of %d messages did not return within %s", len(batch), patience)
			return nil
		}
	}
}

func checkOutcomes(t testing.TB, batch []relay.Message, outcomes []relay.Outcome) {
	t.Helper()
	if len(outcomes) != len(batch) {
		t.Fatalf("%d outcomes for %d messages", len(outcomes), len(batch))
	}
	failed := make(map[string]bool)
	for i, o := range outcomes {
		key := batch[i].Key
		switch o.Class {
		case relay.ClassPublished:
			if failed[key] {
				t.Errorf("message %d of key %s was published behind one that was not", i, key)
			}
		case relay.ClassRetry, relay.ClassPermanent, relay.ClassUnavailable:
			if failed[key] {
				t.Errorf("message %d of key %s is %s, want skipped: an earlier one was not published", i, key, o.Class)
			}
			if o.Err == nil {
				t.Errorf("message %d is %s without a reason", i, o.Class)
			}
		case relay.ClassSkipped:
			if !failed[key] {
				t.Errorf("message %d of key %s is skipped, but all earlier ones were published", i, key)
			}
		default:
			t.Errorf("message %d has no valid outcome: %d", i, o.Class)
		}
		failed[key] = failed[key] || o.Class != relay.ClassPublished
	}
}

// mustPublish publishes a batch at once.
func mustPublish(t testing.TB, s relay.Sink, batch []relay.Message) []relay.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	outcomes := publish(t, ctx, s, batch)
	for i, o := range outcomes {
		if o.Class != relay.ClassPublished {
			t.Fatalf("message %d of %d is %s: %v", i, len(batch), o.Class, o.Err)
		}
	}
	return outcomes
}

// resend publishes what is not published yet, as a relay does after an outage, until all is.
func resend(t testing.TB, s relay.Sink, batch []relay.Message, outcomes []relay.Outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rest := unpublished(batch, outcomes)
	for len(rest) > 0 {
		if ctx.Err() != nil {
			t.Fatalf("%d of %d messages are still not published after %s", len(rest), len(batch), patience)
		}
		outcomes = publish(t, ctx, s, rest)
		for i, o := range outcomes {
			if o.Class == relay.ClassPermanent || o.Class == relay.ClassRetry {
				t.Fatalf("an outage was blamed on message %d: %s: %v", i, o.Class, o.Err)
			}
		}
		rest = unpublished(rest, outcomes)
	}
}

func unpublished(batch []relay.Message, outcomes []relay.Outcome) []relay.Message {
	var rest []relay.Message
	for i, o := range outcomes {
		if o.Class != relay.ClassPublished {
			rest = append(rest, batch[i])
		}
	}
	return rest
}

// checkStored wants exactly these messages at the destination: each once, those of a key in this order.
func checkStored(t testing.TB, f Fixture, want []relay.Message) []Stored {
	t.Helper()
	stored := f.Read(t)
	place := make(map[string]int, len(stored)) // where each identity is stored
	var twice, missing, early, extra []string
	for n, s := range stored {
		id := headerValue(s.Headers, idHeader)
		if _, known := place[id]; known {
			twice = append(twice, id)
		}
		place[id] = n
	}
	last := make(map[string]int) // by key
	for _, m := range want {
		n, there := place[m.EventID]
		if !there {
			missing = append(missing, m.EventID)
			continue
		}
		if before, known := last[m.Key]; known && n < before {
			early = append(early, m.EventID)
		}
		last[m.Key] = n
		delete(place, m.EventID)
		checkMessage(t, f.Keeps, m, stored[n])
	}
	for id := range place {
		extra = append(extra, id)
	}
	report(t, twice, "stored twice")
	report(t, missing, "not stored")
	report(t, early, "stored before an earlier one of the same key")
	report(t, extra, "stored, but must not be")
	return stored
}

func report(t testing.TB, ids []string, what string) {
	t.Helper()
	if len(ids) > 0 {
		t.Errorf("%d messages are %s, such as %s", len(ids), what, ids[0])
	}
}

func checkMessage(t testing.TB, keeps Keeps, m relay.Message, s Stored) {
	t.Helper()
	if !bytes.Equal(s.Payload, m.Payload) {
		t.Errorf("message %s is stored with payload %.100q, want %.100q", m.EventID, s.Payload, m.Payload)
	}
	if keeps.Key && s.Key != m.Key {
		t.Errorf("message %s is stored with key %q, want %q", m.EventID, s.Key, m.Key)
	}
	if keeps.HeaderOrder && len(s.Headers) != len(m.Headers) {
		t.Errorf("message %s is stored with headers %v, want %v", m.EventID, s.Headers, m.Headers)
		return
	}
	for i, h := range m.Headers {
		if keeps.HeaderOrder && s.Headers[i] != h {
			t.Errorf("message %s is stored with header %q as number %d, want %q", m.EventID, s.Headers[i], i, h)
		}
		if got := headerValue(s.Headers, h.Name); got != h.Value {
			t.Errorf("message %s is stored with %s = %q, want %q", m.EventID, h.Name, got, h.Value)
		}
	}
}

// headerValue returns the value of the header with exactly this name.
func headerValue(headers []relay.Header, name string) string {
	for _, h := range headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}
