package sinktest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
)

func emptyBatch(t testing.TB, f Fixture) {
	if got := publish(t, context.Background(), f.Sink, nil); len(got) != 0 {
		t.Errorf("outcomes %v for no messages", got)
	}
	checkStored(t, f, nil)
}

func publishedIsThere(t testing.TB, f Fixture) {
	batch := newBatch(f.Topic, 7, 50)
	outcomes := mustPublish(t, f.Sink, batch)
	where := make(map[string]string)
	for _, s := range checkStored(t, f, batch) {
		where[headerValue(s.Headers, idHeader)] = s.Coordinates
	}
	seen := make(map[string]bool)
	for i, o := range outcomes {
		if kind, place, found := strings.Cut(o.Coordinates, ":"); !found || kind == "" || place == "" {
			t.Errorf("message %d has coordinates %q, want the sink's type, a colon and a place", i, o.Coordinates)
		}
		if want := where[batch[i].EventID]; want != "" && o.Coordinates != want {
			t.Errorf("message %d is said to be at %s, but is at %s", i, o.Coordinates, want)
		}
		if seen[o.Coordinates] {
			t.Errorf("message %d is said to be at %s like an earlier one", i, o.Coordinates)
		}
		seen[o.Coordinates] = true
	}
}

func payloadsAreExact(t testing.TB, f Fixture) {
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	var batch []relay.Message
	for _, payload := range [][]byte{
		[]byte(`{"a":1}`),
		[]byte("{ \"b\" : 1.0,\r\n\t\"b\":\"\\u00e9\" }\n"),
		[]byte(`"<&>"`),
		[]byte("{\"open\":"),
		[]byte("äöü € 𝄞"),
		[]byte("\xff\xfe\x00"),
		everyByte,
		[]byte(strings.Repeat("0123456789", 5000)),
		{},
		nil,
	} {
		m := newMessage(f.Topic, "key")
		m.Payload = payload
		batch = append(batch, m)
	}
	mustPublish(t, f.Sink, batch)
	checkStored(t, f, batch)
}

func headersAreExact(t testing.TB, f Fixture) {
	m := newMessage(f.Topic, "key/ä €")
	m.Headers = append(m.Headers,
		relay.Header{Name: "zz-Mixed-cASE", Value: "Value"},
		relay.Header{Name: "content-type", Value: "application/json; charset=utf-8"},
		relay.Header{Name: "aa_underscore", Value: `a "quoted", b=c: d`},
		relay.Header{Name: "traceparent", Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		relay.Header{Name: "X-Unicode", Value: "grün 𝄞"},
		relay.Header{Name: "X-Empty", Value: ""},
	)
	bare := newMessage(f.Topic, "key/ä €")
	bare.Headers = bare.Headers[:1]
	batch := []relay.Message{m, bare}
	mustPublish(t, f.Sink, batch)
	checkStored(t, f, batch)
}

// orderPerKey publishes several batches in which keys take turns, one after the other.
func orderPerKey(t testing.TB, f Fixture) {
	var all []relay.Message
	for range 3 {
		batch := newBatch(f.Topic, 40, 400)
		mustPublish(t, f.Sink, batch)
		all = append(all, batch...)
	}
	checkStored(t, f, all)
}

// oneKey is the batch that leaves a sink nothing to do at the same time.
func oneKey(t testing.TB, f Fixture) {
	batch := newBatch(f.Topic, 1, 300)
	mustPublish(t, f.Sink, batch)
	checkStored(t, f, batch)
}

func concurrentCalls(t testing.TB, f Fixture) {
	const callers, calls = 8, 5
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		all []relay.Message
	)
	for caller := range callers {
		wg.Go(func() {
			for range calls {
				batch := newBatch(f.Topic, 10, 50)
				for i := range batch {
					batch[i].Key = strconv.Itoa(caller) + "/" + batch[i].Key
				}
				for i, o := range f.Sink.Publish(context.Background(), batch) {
					if o.Class != relay.ClassPublished {
						t.Errorf("caller %d: message %d is %s: %v", caller, i, o.Class, o.Err)
					}
				}
				mu.Lock()
				all = append(all, batch...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	checkStored(t, f, all)
}

// endedContext wants an answer at once, and no second copy when what was not published is sent again.
func endedContext(t testing.TB, f Fixture) {
	warm := newBatch(f.Topic, 1, 1)
	mustPublish(t, f.Sink, warm)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	batch := newBatch(f.Topic, 5, 20)
	start := time.Now()
	outcomes := publish(t, ctx, f.Sink, batch)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("Publish with an ended context took %s", took)
	}
	resend(t, f.Sink, batch, outcomes)
	checkStored(t, f, append(warm, batch...))
}

// missingTopic wants a reason that names the topic, charged to its own messages only.
func missingTopic(t testing.TB, f Fixture) {
	good := newBatch(f.Topic, 5, 20)
	lost := newBatch(f.Missing, 2, 4)
	for i := range lost {
		lost[i].Key = "lost/" + lost[i].Key
	}
	batch := append(append(append([]relay.Message{}, good[:10]...), lost...), good[10:]...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	start := time.Now()
	outcomes := publish(t, ctx, f.Sink, batch)
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("the outcome for a missing topic took %s", took)
	}
	for i, o := range outcomes {
		switch {
		case batch[i].Topic == f.Topic && o.Class != relay.ClassPublished:
			t.Errorf("message %d for the topic that exists is %s: %v", i, o.Class, o.Err)
		case batch[i].Topic == f.Missing && o.Class == relay.ClassSkipped:
		case batch[i].Topic == f.Missing && o.Class != relay.ClassRetry && o.Class != relay.ClassPermanent:
			t.Errorf("message %d for the missing topic is %s, want retry or permanent", i, o.Class)
		case batch[i].Topic == f.Missing && !strings.Contains(fmt.Sprint(o.Err), f.Missing):
			t.Errorf("message %d: the reason %q does not name the topic %s", i, o.Err, f.Missing)
		}
	}
	checkStored(t, f, good)
}

// largestMessage shows that Fill finds the limit, without which the next case would show nothing.
func largestMessage(t testing.TB, f Fixture) {
	batch := []relay.Message{f.Fill(newMessage(f.Topic, "key")), newMessage(f.Topic, "key")}
	mustPublish(t, f.Sink, batch)
	checkStored(t, f, batch)
}

// oversizeHarmsOnlyItsKey sends two messages that are one byte too large, one by its payload and one by its headers,
// in the middle of a large batch.
func oversizeHarmsOnlyItsKey(t testing.TB, f Fixture) {
	const keys = 20
	batch := newBatch(f.Topic, keys, 500)
	payload, header := 207, 311
	batch[payload] = f.Fill(batch[payload])
	batch[payload].Payload = append(batch[payload].Payload, 'x')
	batch[header] = f.Fill(batch[header])
	last := &batch[header].Headers[len(batch[header].Headers)-1]
	last.Value += "x"

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	outcomes := publish(t, ctx, f.Sink, batch)
	var want []relay.Message
	for i, o := range outcomes {
		expected := relay.ClassPublished
		switch {
		case i == payload || i == header:
			expected = relay.ClassPermanent
		case i%keys == payload%keys && i > payload, i%keys == header%keys && i > header:
			expected = relay.ClassSkipped
		default:
			want = append(want, batch[i])
		}
		if o.Class != expected {
			t.Errorf("message %d is %s, want %s: %v", i, o.Class, expected, o.Err)
		}
	}
	checkStored(t, f, want)
}
