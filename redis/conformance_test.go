package redis

import (
	"bytes"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

const testLimit = 100_000

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t testing.TB) sinktest.Fixture {
				address := shared(t, kind)
				proxy := sinktest.NewProxy(t, address)
				f := newFixture(t, client(t, address), Config{Addresses: []string{proxy.Addr}, IdempotentFor: time.Minute})
				f.Proxy = proxy
				return f
			})
		})
	}
}

// TestConformanceWithoutIdempotentMode leaves out a network that breaks, after which an event can be there twice.
func TestConformanceWithoutIdempotentMode(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(t testing.TB) sinktest.Fixture {
		address := shared(t, "redis")
		return newFixture(t, client(t, address), Config{Addresses: []string{address}})
	})
}

// TestCrash kills the server while messages are on their way. It syncs its file before it answers: with everysec a server that
// is busy syncing keeps what it has answered in its own memory for a while, and a kill takes that along.
func TestCrash(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := launch(t, kind, "REDIS_OPTIONS=--appendfsync always")
			sinktest.Run(t, func(t2 testing.TB) sinktest.Fixture {
				f := newFixture(t2, client(t2, s.address()), Config{Addresses: []string{s.address()}, IdempotentFor: time.Minute})
				f.Crash = func(testing.TB) {
					s.kill(t)
					s.Start(t)
				}
				return f
			})
		})
	}
}

// newFixture has a stream of its own, and for a missing one a key that holds something else.
func newFixture(t testing.TB, c redis.UniversalClient, config Config) sinktest.Fixture {
	t.Helper()
	stream, missing := newStream(t, c), newStream(t, c)
	do(t, c, "SET", missing, "taken")
	config.MaxMessageBytes = testLimit
	return sinktest.Fixture{
		Sink:    open(t, config),
		Topic:   stream,
		Missing: missing,
		Read:    func(t testing.TB) []sinktest.Stored { return readAll(t, c, stream) },
		Fill:    func(m relay.Message) relay.Message { return fill(m, testLimit) },
		Keeps:   sinktest.Keeps{Key: true, HeaderOrder: true},
	}
}

// fill returns m with a payload that makes its entry as large as the limit.
func fill(m relay.Message, limit int) relay.Message {
	size := len("id") + len(m.EventID) + len("key") + len(m.Key) + len("payload")
	for _, h := range m.Headers {
		size += len("h:") + len(h.Name) + len(h.Value)
	}
	m.Payload = bytes.Repeat([]byte("x"), limit-size)
	return m
}
