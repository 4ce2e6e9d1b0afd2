package nats

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/relay"
)

// TestStreamsThatRefuse has one event stored, where that is possible, and another one refused.
func TestStreamsThatRefuse(t *testing.T) {
	address := serverURL(t)
	js := client(t, address)
	sink := open(t, Config{Servers: []string{address}})
	for name, test := range map[string]struct {
		stream jetstream.StreamConfig
		first  relay.Class
		second relay.Class
		words  string
	}{
		"full of messages":     {jetstream.StreamConfig{MaxMsgs: 1, Discard: jetstream.DiscardNew}, relay.ClassPublished, relay.ClassUnavailable, "maximum messages exceeded"},
		"full of bytes":        {jetstream.StreamConfig{MaxBytes: 100, Discard: jetstream.DiscardNew}, relay.ClassPublished, relay.ClassUnavailable, "maximum bytes exceeded"},
		"full of the subject":  {jetstream.StreamConfig{MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true}, relay.ClassPublished, relay.ClassRetry, "per subject"},
		"for smaller messages": {jetstream.StreamConfig{MaxMsgSize: 20}, relay.ClassPermanent, relay.ClassPermanent, "message size exceeds maximum"},
		"of counters":          {jetstream.StreamConfig{AllowMsgCounter: true}, relay.ClassRetry, relay.ClassRetry, "counter"},
	} {
		t.Run(name, func(t *testing.T) {
			topic := newStream(t, js, test.stream).CachedInfo().Config.Name + ".events"
			for i, class := range []relay.Class{test.first, test.second} {
				o := publishOne(t, sink, newMessages(topic, 2)[i])
				if o.Class != class {
					t.Errorf("event %d is %s, want %s: %v", i, o.Class, class, o.Err)
				}
				if o.Class != relay.ClassPublished {
					wantOutcome(t, o, class, topic, test.words)
				}
			}
		})
	}
}

func TestSealedStream(t *testing.T) {
	address := serverURL(t)
	js := client(t, address)
	c := newStream(t, js, jetstream.StreamConfig{}).CachedInfo().Config
	c.Sealed = true
	if _, err := js.UpdateStream(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	o := publishOne(t, open(t, Config{Servers: []string{address}}), newMessages(c.Name+".events", 1)[0])
	wantOutcome(t, o, relay.ClassRetry, c.Name, "sealed")
}

// TestHeadersAreTooLarge is about their own limit, which is below the one of the message.
func TestHeadersAreTooLarge(t *testing.T) {
	address := serverURL(t)
	topic := newStream(t, client(t, address), jetstream.StreamConfig{}).CachedInfo().Config.Name + ".events"
	m := newMessages(topic, 1)[0]
	m.Headers = []relay.Header{{Name: "X-Large", Value: strings.Repeat("x", 1<<16)}}
	wantOutcome(t, publishOne(t, open(t, Config{Servers: []string{address}}), m), relay.ClassPermanent, topic, "header size")
}

// TestMessageLargerThanAFile is below max_payload, and larger than any stream on disk takes.
func TestMessageLargerThanAFile(t *testing.T) {
	s := runServer(t, server.Options{JetStream: true, MaxPayload: 64 << 20, MaxPending: 64 << 20})
	sink := open(t, Config{Servers: []string{s.ClientURL()}})
	if _, err := sink.js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events"}}); err != nil {
		t.Fatal(err)
	}
	m := newMessages("events", 1)[0]
	m.Payload = make([]byte, 33<<20)
	wantOutcome(t, publishOne(t, sink, m), relay.ClassPermanent, "too large")
}

// TestShortOfResources has a server and an account that may store less than the stream would.
func TestShortOfResources(t *testing.T) {
	const limit = 10_000
	for name, test := range map[string]struct {
		options server.Options
		account map[string]server.JetStreamAccountLimits
		words   string
	}{
		"server":  {options: server.Options{JetStreamMaxStore: limit}, words: "insufficient resources"},
		"account": {account: map[string]server.JetStreamAccountLimits{"": {MaxMemory: -1, MaxStore: limit, MaxStreams: -1, MaxConsumers: -1}}, words: "limits exceeded for account"},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.JetStream = true
			s := runServer(t, test.options)
			if test.account != nil {
				if err := s.GlobalAccount().UpdateJetStreamLimits(test.account); err != nil {
					t.Fatal(err)
				}
			}
			sink := open(t, Config{Servers: []string{s.ClientURL()}})
			if _, err := sink.js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events"}}); err != nil {
				t.Fatal(err)
			}
			var last relay.Outcome
			for _, m := range newMessages("events", 10) {
				m.Payload = make([]byte, limit/5)
				if last = publishOne(t, sink, m); last.Class != relay.ClassPublished {
					break
				}
			}
			wantOutcome(t, last, relay.ClassUnavailable, test.words)
		})
	}
}
