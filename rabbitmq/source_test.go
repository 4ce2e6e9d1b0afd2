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
					Expiry:      2 * time.Second, // a connection that ends is seen at once
					Coordinates: true,
					Cuts:        true,
				})
			})
		}
	})
}

func openGroup(t testing.TB, address, kind string) consumertest.Group {
	t.Helper()
	q := newBroker(t, address).newQueue(t, kind)
	return consumertest.Group{Sink: open(t, Config{Servers: []string{address}}), Topic: "/" + q.name, Join: func(t testing.TB) consumertest.Member {
		proxy := sinktest.NewProxy(t, host(t, address))
		return consumertest.Member{Source: openSource(t, at(t, address, proxy.Addr, ""), q.name), Proxy: proxy}
	}}
}

// openSource opens one that the test closes.
func openSource(t testing.TB, address string, queues ...string) *Source {
	t.Helper()
	s, err := OpenSource(SourceConfig{Servers: []string{address}, Queues: queues, Prefetch: 2000})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
