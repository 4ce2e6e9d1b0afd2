package sink_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	natsio "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/nats"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// TestNATSThatCrashes kills the server while messages are on their way.
func TestNATSThatCrashes(t *testing.T) {
	server := servers.Launch(t, "nats")
	address := fmt.Sprintf("nats://127.0.0.1:%d", server.Port())
	sinktest.Run(t, func(t2 testing.TB) sinktest.Fixture {
		sink, err := nats.Open(nats.Config{Servers: []string{address}})
		if err != nil {
			t2.Fatal(err)
		}
		stream := newStream(t2, address)
		return sinktest.Fixture{
			Sink:  sink,
			Topic: stream.CachedInfo().Config.Name + ".events",
			Read:  func(t testing.TB) []sinktest.Stored { return readStream(t, stream) },
			Crash: func(testing.TB) {
				server.Stop(t, syscall.SIGKILL)
				server.Start(t)
			},
		}
	})
}

func newStream(t testing.TB, address string) jetstream.Stream {
	t.Helper()
	conn, err := natsio.Connect(address, natsio.MaxReconnects(-1), natsio.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	name := "t" + strings.ToLower(rand.Text())
	stream, err := js.CreateStream(testContext(t), jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func readStream(t testing.TB, stream jetstream.Stream) []sinktest.Stored {
	t.Helper()
	ctx := testContext(t)
	info, err := stream.Info(ctx)
	if err != nil {
		t.Fatalf("reading the stream: %v", err)
	}
	var all []sinktest.Stored
	for sequence := info.State.FirstSeq; sequence <= info.State.LastSeq && info.State.Msgs > 0; sequence++ {
		m, err := stream.GetMsg(ctx, sequence)
		if err != nil {
			t.Fatalf("reading message %d of the stream: %v", sequence, err)
		}
		s := sinktest.Stored{Payload: m.Data, Coordinates: fmt.Sprintf("nats:%s@%d", info.Config.Name, m.Sequence)}
		for name, values := range m.Header {
			s.Headers = append(s.Headers, relay.Header{Name: name, Value: values[0]})
		}
		all = append(all, s)
	}
	return all
}
