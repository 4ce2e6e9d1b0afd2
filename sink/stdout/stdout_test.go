package stdout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sink/stdout"
	"github.com/postrider/postrider/sinktest"
)

func TestConformance(t *testing.T) {
	sinktest.Run(t, func(t testing.TB) sinktest.Fixture {
		var text bytes.Buffer
		return sinktest.Fixture{
			Sink:  stdout.New(&text),
			Topic: "orders",
			Read:  func(t testing.TB) []sinktest.Stored { return parse(t, text.String()) },
			Keeps: sinktest.Keeps{Key: true, HeaderOrder: true},
		}
	})
}

// parse reads lines back as a consumer would.
func parse(t testing.TB, text string) []sinktest.Stored {
	t.Helper()
	var all []sinktest.Stored
	for line := range strings.Lines(text) {
		var event struct {
			Key     string          `json:"key"`
			Headers json.RawMessage `json:"headers"`
			Payload json.RawMessage `json:"payload"`
			Base64  []byte          `json:"payload_base64"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, sinktest.Stored{
			Key:         event.Key,
			Headers:     parseHeaders(t, event.Headers),
			Payload:     append([]byte(event.Payload), event.Base64...),
			Coordinates: fmt.Sprintf("stdout:%d", len(all)+1),
		})
	}
	return all
}

func parseHeaders(t testing.TB, object []byte) []relay.Header {
	t.Helper()
	var texts []string
	decoder := json.NewDecoder(bytes.NewReader(object))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(string); ok {
			texts = append(texts, text)
		}
	}
	var headers []relay.Header
	for pair := range slices.Chunk(texts, 2) {
		headers = append(headers, relay.Header{Name: pair[0], Value: pair[1]})
	}
	return headers
}

// fullPipe takes some bytes and then no more, until it is emptied.
type fullPipe struct {
	bytes.Buffer
	room int
}

func (p *fullPipe) Write(text []byte) (int, error) {
	n := min(len(text), p.room)
	p.room -= n
	p.Buffer.Write(text[:n])
	if n < len(text) {
		return n, errors.New("pipe is full")
	}
	return n, nil
}

func TestWriterThatTakesOnlyAPart(t *testing.T) {
	pipe := &fullPipe{room: 150}
	sink := stdout.New(pipe)
	batch := []relay.Message{
		{Key: "a", Topic: "orders", Payload: []byte(`{"n":1}`)},
		{Key: "b", Topic: "orders", Payload: []byte(`{"n":2}`)},
		{Key: "b", Topic: "orders", Payload: []byte(`{"n":3}`)},
		{Key: "b", Topic: "orders", Payload: []byte(`{"n":4}`)},
	}
	outcomes := sink.Publish(context.Background(), batch)
	want := []relay.Class{relay.ClassPublished, relay.ClassPublished, relay.ClassUnavailable, relay.ClassSkipped}
	for i, o := range outcomes {
		if o.Class != want[i] {
			t.Errorf("message %d is %s, want %s", i, o.Class, want[i])
		}
	}
	pipe.room = 1000
	again := sink.Publish(context.Background(), batch[2:])
	if again[0].Coordinates != "stdout:3" || again[1].Coordinates != "stdout:4" {
		t.Errorf("outcomes %+v, want lines 3 and 4", again)
	}
	lines := strings.Split(strings.TrimSuffix(pipe.String(), "\n"), "\n")
	if len(lines) != 5 {
		t.Fatalf("lines %q, want four events and the torn line between them", lines)
	}
	parse(t, strings.Join(slices.Delete(lines, 2, 3), "\n"))
}

func ExampleSink() {
	sink := stdout.New(os.Stdout)
	sink.Publish(context.Background(), []relay.Message{{
		Key:     "42",
		Topic:   "orders",
		Headers: []relay.Header{{Name: "X-Event-Type", Value: "order.created"}},
		Payload: []byte(`{"total": 7.50}`),
	}})
	// Output: {"topic":"orders","key":"42","headers":{"X-Event-Type":"order.created"},"payload":{"total": 7.50}}
}
