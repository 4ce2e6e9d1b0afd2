package nats

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/consumertest"
	"github.com/postrider/postrider/sinktest"
)

// testAckWait is how long the consumers of tests wait for a member that has gone silent.
const testAckWait = 2 * time.Second

func TestSourceConformance(t *testing.T) {
	t.Parallel()
	consumertest.Run(t, consumertest.Harness{Open: openGroup, Expiry: testAckWait, Coordinates: true, Cuts: true})
}

func openGroup(t testing.TB) consumertest.Group {
	t.Helper()
	address := serverURL(t)
	stream := newStream(t, client(t, address), jetstream.StreamConfig{})
	name := stream.CachedInfo().Config.Name
	return consumertest.Group{Sink: open(t, Config{Servers: []string{address}}), Topic: name + ".events", Join: func(t testing.TB) consumertest.Member {
		proxy := sinktest.NewProxy(t, host(t, address))
		return consumertest.Member{Source: openSource(t, SourceConfig{Servers: []string{"nats://" + proxy.Addr}, Stream: name}), Proxy: proxy}
	}}
}

// openSource opens one that the test closes.
func openSource(t testing.TB, c SourceConfig) *Source {
	t.Helper()
	c.Consumer, c.AckWait, c.Prefetch = "group", testAckWait, 2000
	s, err := OpenSource(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newName() string { return "test-" + strings.ToLower(rand.Text()[:12]) }
