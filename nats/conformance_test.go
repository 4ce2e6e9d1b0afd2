package nats

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

func coordinates(stream string, sequence uint64) string {
	return fmt.Sprintf("nats:%s@%d", stream, sequence)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(t testing.TB) sinktest.Fixture {
		const limit = 100_000
		address := serverURL(t)
		stream := newStream(t, client(t, address), jetstream.StreamConfig{MaxMsgSize: limit})
		name := stream.CachedInfo().Config.Name
		proxy := sinktest.NewProxy(t, host(t, address))
		return sinktest.Fixture{
			Sink:    open(t, Config{Servers: []string{"nats://" + proxy.Addr}}),
			Topic:   name + ".events",
			Missing: "missing." + name,
			Read:    func(t testing.TB) []sinktest.Stored { return readAll(t, stream) },
			Fill:    func(m relay.Message) relay.Message { return fill(m, limit) },
			Proxy:   proxy,
		}
	})
}

// fill returns m with a payload that makes it as large as the limit with its header block.
func fill(m relay.Message, limit int) relay.Message {
	block := len("NATS/1.0\r\n") + len("\r\n")
	for _, h := range append([]relay.Header{{Name: "Nats-Msg-Id", Value: m.EventID}}, m.Headers...) {
		block += len(h.Name) + len(": ") + len(h.Value) + len("\r\n")
	}
	m.Payload = []byte(strings.Repeat("x", limit-block))
	return m
}
