// Package destination gives tests and measurements a destination of every type of sink, on real servers, with the network
// in between and ways to put each out of order.
package destination

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// Destination is where a sink sends to. It and the sink end with the test.
type Destination struct {
	Name     string // also the sink's type
	Topic    string
	Sink     relay.Sink
	Troubles []Trouble

	// Arrived returns the payloads of all messages, those of a key in the order in which consumers get them. It is
	// called once, at the end.
	Arrived func(testing.TB) []string
}

// Trouble is a way to be out of order. Nothing arrives between Begin and End.
type Trouble struct {
	Name   string
	Begin  func(testing.TB)
	End    func(testing.TB)
	Spends bool // it is about single events, which spend attempts
}

// All returns one destination of each type.
func All(t testing.TB) []Destination {
	t.Helper()
	return []Destination{newKafka(t), newNATS(t), newRabbitMQ(t), newRedis(t), newWebhook(t)}
}

// network are the troubles that every connection can have.
func network(proxy *sinktest.Proxy) []Trouble {
	heal := func(testing.TB) { proxy.Heal() }
	return []Trouble{
		{Name: "frozen", Begin: func(testing.TB) { proxy.Freeze() }, End: heal},
		{Name: "cut", Begin: func(testing.TB) { proxy.Cut() }, End: heal},
	}
}

// refused is a login that the server no longer takes, for connections that are there already as well.
func refused(proxy *sinktest.Proxy, setPassword func(testing.TB, string)) Trouble {
	return Trouble{
		Name: "refuses the login",
		Begin: func(t testing.TB) {
			setPassword(t, "changed")
			proxy.Cut()
			proxy.Heal()
		},
		End: func(t testing.TB) { setPassword(t, password) },
	}
}

// The login of sinks.
const (
	user     = "relay"
	password = "secret"
)

// Payload is that of the n-th event of a key.
func Payload(key string, n int) []byte { return fmt.Appendf(nil, `"%s/%d"`, key, n) }

// Check returns what is wrong with payloads that arrived: each key must have had its first n events, in their order but
// for repetitions.
func Check(arrived []string, n map[string]int) []string {
	var wrong []string
	next := make(map[string]int)
	for _, payload := range arrived {
		key, number, _ := strings.Cut(strings.Trim(payload, `"`), "/")
		i, err := strconv.Atoi(number)
		switch {
		case err != nil || i > next[key]:
			wrong = append(wrong, fmt.Sprintf("%s arrived before event %d of its key", payload, next[key]))
		case i == next[key]:
			next[key]++
		}
	}
	for key := range n {
		next[key] += 0 // none arrived, perhaps
	}
	for key, got := range next {
		if got != n[key] {
			wrong = append(wrong, fmt.Sprintf("key %s: %d events in their order, want %d", key, got, n[key]))
		}
	}
	return wrong
}

func address(t testing.TB, server string) *url.URL {
	t.Helper()
	name := "POSTRIDER_TEST_" + server
	u, err := url.Parse(os.Getenv(name))
	if err != nil || u.Host == "" {
		t.Fatalf("%s is not set: scripts/services starts the servers", name)
	}
	return u
}

func newName() string { return "t" + strings.ToLower(rand.Text()) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opened fails the test when a sink could not be opened, and closes it in the end.
func opened[S relay.Sink](t testing.TB) func(S, error) relay.Sink {
	return func(s S, err error) relay.Sink {
		t.Helper()
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
}
