package nats

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// serverURL returns the real server that the tests run against.
func serverURL(t testing.TB) string {
	t.Helper()
	address := os.Getenv("POSTRIDER_TEST_NATS")
	if address == "" {
		t.Fatal("POSTRIDER_TEST_NATS is not set: `scripts/services up nats` starts a server, `scripts/services env` prints its address")
	}
	return address
}

// host returns the host:port of a server's address.
func host(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// client returns an independent connection.
func client(t testing.TB, address string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// newStream creates a stream of its own for the test. It takes NAME.>.
func newStream(t testing.TB, js jetstream.JetStream, c jetstream.StreamConfig) jetstream.Stream {
	t.Helper()
	c.Name = "test-" + strings.ToLower(rand.Text()[:12])
	c.Subjects = []string{c.Name + ".>"}
	stream, err := js.CreateStream(testContext(t), c)
	if err != nil {
		t.Fatalf("creating stream %s: %v", c.Name, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := js.DeleteStream(ctx, c.Name); err != nil {
			t.Logf("deleting stream %s: %v", c.Name, err)
		}
	})
	return stream
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, c Config) *Sink {
	t.Helper()
	sink, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return sink
}

// readAll returns everything that is in the stream.
func readAll(t testing.TB, stream jetstream.Stream) []sinktest.Stored {
	t.Helper()
	ctx := testContext(t)
	info, err := stream.Info(ctx)
	if err != nil {
		t.Fatalf("reading the stream: %v", err)
	}
	var all []sinktest.Stored
	if info.State.Msgs == 0 {
		return all
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatalf("reading the stream: %v", err)
	}
	for len(all) < int(info.State.Msgs) {
		messages, err := consumer.Fetch(int(info.State.Msgs)-len(all), jetstream.FetchMaxWait(30*time.Second))
		if err != nil {
			t.Fatalf("reading the stream: %v", err)
		}
		for m := range messages.Messages() {
			all = append(all, stored(t, m))
		}
		if err := messages.Error(); err != nil {
			t.Fatalf("reading the stream: %v", err)
		}
	}
	return all
}

func stored(t testing.TB, m jetstream.Msg) sinktest.Stored {
	t.Helper()
	meta, err := m.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	s := sinktest.Stored{Payload: m.Data(), Coordinates: coordinates(meta.Stream, meta.Sequence.Stream)}
	for name, values := range m.Headers() {
		for _, value := range values {
			s.Headers = append(s.Headers, relay.Header{Name: name, Value: value})
		}
	}
	return s
}
