package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// kinds are the servers that tests run against.
var kinds = []string{"redis", "valkey"}

// shared returns host:port of the real server of a kind that the tests share.
func shared(t testing.TB, kind string) string {
	t.Helper()
	variable := "POSTRIDER_TEST_" + strings.ToUpper(kind)
	address := os.Getenv(variable)
	if address == "" {
		t.Fatalf("%s is not set: `scripts/services up %s` starts a server, `scripts/services env` prints its address", variable, kind)
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	return options.Addr
}

// server is one that a test owns.
type server struct{ *servers.Server }

// launch starts a server of its own for the test; environment are its variations, as NAME=VALUE.
func launch(t testing.TB, kind string, environment ...string) server {
	t.Helper()
	return server{servers.Launch(t, kind, environment...)}
}

// kill is what a crash does.
func (s server) kill(t testing.TB) {
	t.Helper()
	s.Stop(t, syscall.SIGKILL)
}

func (s server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())) }

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// client returns an independent connection.
func client(t testing.TB, address string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, ReadTimeout: 30 * time.Second})
	t.Cleanup(func() { c.Close() })
	return c
}

// do sends one command, as words.
func do(t testing.TB, c redis.UniversalClient, command ...any) any {
	t.Helper()
	answer, err := c.Do(testContext(t), command...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("%v: %v", command, err)
	}
	return answer
}

// newStream returns a key that nobody else uses.
func newStream(t testing.TB, c redis.UniversalClient) string {
	t.Helper()
	name := "test-" + strings.ToLower(rand.Text()[:12])
	dropStream(t, c, name)
	return name
}

// dropStream deletes a stream when the test ends.
func dropStream(t testing.TB, c redis.UniversalClient, name string) {
	t.Cleanup(func() {
		if err := c.Del(context.Background(), name).Err(); err != nil {
			t.Logf("deleting stream %s: %v", name, err)
		}
	})
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
func readAll(t testing.TB, c redis.UniversalClient, stream string) []sinktest.Stored {
	t.Helper()
	entries, err := c.Do(testContext(t), "XRANGE", stream, "-", "+").Slice()
	if err != nil {
		t.Fatalf("reading the stream: %v", err)
	}
	var all []sinktest.Stored
	for _, entry := range entries {
		parts := entry.([]any)
		s := sinktest.Stored{Coordinates: "redis:" + stream + "@" + parts[0].(string)}
		values := parts[1].([]any)
		for i := 0; i < len(values); i += 2 {
			name, value := values[i].(string), values[i+1].(string)
			switch header, found := strings.CutPrefix(name, "h:"); {
			case found:
				s.Headers = append(s.Headers, relay.Header{Name: header, Value: value})
			case name == "key":
				s.Key = value
			case name == "payload":
				s.Payload = []byte(value)
			}
		}
		all = append(all, s)
	}
	return all
}

func publishOne(t testing.TB, s *Sink, m relay.Message) relay.Outcome {
	t.Helper()
	return s.Publish(testContext(t), []relay.Message{m})[0]
}

// wantOutcome wants a class and a reason that has all of these words in it.
func wantOutcome(t testing.TB, o relay.Outcome, class relay.Class, words ...string) {
	t.Helper()
	if o.Class != class {
		t.Errorf("outcome %s (%v), want %s", o.Class, o.Err, class)
		return
	}
	for _, word := range words {
		if !strings.Contains(fmt.Sprint(o.Err), word) {
			t.Errorf("reason %q does not mention %q", o.Err, word)
		}
	}
}

func wantFinding(t testing.TB, findings []operator.Finding, level operator.Level, words string) {
	t.Helper()
	for _, f := range findings {
		if f.Level == level && strings.Contains(f.Subject+": "+f.Message, words) {
			return
		}
	}
	t.Errorf("Check found %+v, want %s: %s", findings, level, words)
}
