// Package sinktest is the conformance suite for sinks. A sink that passes it against its real destination keeps the
// contract of relay.Sink.
//
//	func TestConformance(t *testing.T) {
//		sinktest.Run(t, func(t testing.TB) sinktest.Fixture { ... })
//	}
package sinktest

import (
	"testing"

	"github.com/postrider/postrider/relay"
)

// Open gives a case what it works with: a new sink, and a topic that nobody else uses. It ends both with t.Cleanup,
// except for the sink, which the suite closes.
type Open func(t testing.TB) Fixture

// Fixture is a sink and its destination. Sink, Topic and Read are required. A field that is left empty says that the
// destination has no such thing; the cases about it are not run.
type Fixture struct {
	Sink  relay.Sink
	Topic string // exists and is empty

	// Read returns everything that is in Topic, the messages of each key in the order in which a consumer gets
	// them. It uses a client of its own, not the sink's.
	Read func(t testing.TB) []Stored

	// Missing is a topic that does not exist.
	Missing string

	// Fill returns m with a payload that makes it exactly as large as the destination takes: one byte more in
	// its payload or headers would be too much.
	Fill func(m relay.Message) relay.Message

	// Proxy is the network between the sink and the destination. Read does not use it.
	Proxy *Proxy

	// Crash kills the server without warning and starts it again on its data.
	Crash func(t testing.TB)

	// Keeps says which parts of a message the destination keeps besides its payload and its headers' names and
	// values.
	Keeps Keeps
}

// Keeps names parts of a message.
type Keeps struct {
	Key         bool // Message.Key is the key of the stored message
	HeaderOrder bool // headers are stored in the order in which they were given
}

// Stored is a message as the destination has it.
type Stored struct {
	Key         string
	Headers     []relay.Header
	Payload     []byte
	Coordinates string // as the sink's outcome should tell them; empty when the destination has none
}

// Run runs the suite. Each case opens a fixture of its own.
func Run(t *testing.T, open Open) {
	has := open(t)
	closeSink(t, has.Sink)
	for _, c := range cases {
		if c.needs(has) {
			t.Run(c.name, func(t *testing.T) { c.run(t, open) })
		}
	}
}

// testCase is one property of the contract.
type testCase struct {
	name  string
	needs func(Fixture) bool
	check func(t testing.TB, f Fixture)
}

func (c testCase) run(t testing.TB, open Open) {
	f := open(t)
	c.check(t, f)
	closeSink(t, f.Sink)
}

func closeSink(t testing.TB, s relay.Sink) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func always(Fixture) bool       { return true }
func hasMissing(f Fixture) bool { return f.Missing != "" }
func hasLimit(f Fixture) bool   { return f.Fill != nil }
func hasProxy(f Fixture) bool   { return f.Proxy != nil }
func canCrash(f Fixture) bool   { return f.Crash != nil }

var cases = []testCase{
	{"EmptyBatch", always, emptyBatch},
	{"PublishedIsThere", always, publishedIsThere},
	{"PayloadsAreExact", always, payloadsAreExact},
	{"HeadersAreExact", always, headersAreExact},
	{"OrderPerKey", always, orderPerKey},
	{"OneKey", always, oneKey},
	{"ConcurrentCalls", always, concurrentCalls},
	{"EndedContext", always, endedContext},
	{"MissingTopic", hasMissing, missingTopic},
	{"LargestMessage", hasLimit, largestMessage},
	{"OversizeHarmsOnlyItsKey", hasLimit, oversizeHarmsOnlyItsKey},
	{"Unreachable", hasProxy, unreachable},
	{"CancelledOutage", hasProxy, cancelledOutage},
	{"CutInTheMiddle", hasProxy, cutInTheMiddle},
	{"LostAnswers", hasProxy, lostAnswers},
	{"FrozenServer", hasProxy, frozenServer},
	{"CrashedServer", canCrash, crashedServer},
}
