package redis

import (
	"testing"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumertest"
	"github.com/postrider/postrider/sinktest"
)

// testClaimAfter is how long entries of members that have gone silent wait in tests.
const testClaimAfter = 2 * time.Second

func TestSourceConformance(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			consumertest.Run(t, consumertest.Harness{
				Open:        func(t testing.TB) consumertest.Group { return openGroup(t, shared(t, kind)) },
				Expiry:      testClaimAfter,
				Coordinates: true,
				Key:         true,
				Cuts:        true,
			})
		})
	}
}

func openGroup(t testing.TB, address string) consumertest.Group {
	t.Helper()
	stream := newStream(t, client(t, address))
	retry := consumer.RetryTopic(stream, consumertest.RetryDelay)
	dropStream(t, client(t, address), retry)
	return consumertest.Group{Sink: open(t, Config{Addresses: []string{address}}), Topic: stream, Join: func(t testing.TB) consumertest.Member {
		proxy := sinktest.NewProxy(t, address)
		source := openSource(t, SourceConfig{Addresses: []string{proxy.Addr}, Streams: []string{stream, retry}})
		return consumertest.Member{Source: source, Proxy: proxy}
	}}
}

// openSource opens one that the test closes.
func openSource(t testing.TB, c SourceConfig) *Source {
	t.Helper()
	c.Group, c.ClaimAfter, c.Prefetch = "group", testClaimAfter, consumertest.Prefetch
	s, err := OpenSource(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
