package rabbitmq

import (
	"testing"
	"time"

	"github.com/postrider/postrider/consumertest"
	"github.com/postrider/postrider/sinktest"
)

func TestSourceConformance(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		for _, kind := range []string{classic, quorum} {
			t.Run(kind, func(t *testing.T) {
				consumertest.Run(t, consumertest.Harness{
					Open:        func(t testing.TB) consumertest.Group { return openGroup(t, address, kind) },
					Expiry:      time.Second, // a server waits for no member that is there
					Coordinates: true,
					Cuts:        true,
				})
			})
		}
	})
}

// openGroup gives each member a proxy of its own.
func openGroup(t testing.TB, address, kind string) consumertest.Group {
	t.Helper()
	q := newBroker(t, address).newQueue(t, kind)
	sink := open(t, Config{Servers: []string{address}})
	t.Cleanup(func() { sink.Close() })
	return consumertest.Group{Sink: sink, Topic: "/" + q.name, Join: func(t testing.TB) consumertest.Member {
		proxy := sinktest.NewProxy(t, host(t, address))
		source, err := OpenSource(SourceConfig{Servers: []string{at(t, address, proxy.Addr, "")}, Queues: []string{q.name}})
		if err != nil {
			t.Fatal(err)
		}
		return consumertest.Member{Source: source, Proxy: proxy}
	}}
}
