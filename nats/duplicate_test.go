package nats

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

func TestRepeatedEventIsPublishedOnce(t *testing.T) {
	address := serverURL(t)
	stream := newStream(t, client(t, address), jetstream.StreamConfig{})
	sink := open(t, Config{Servers: []string{address}})
	batch := newMessages(stream.CachedInfo().Config.Name+".events", 300)
	first, second := sink.Publish(testContext(t), batch), sink.Publish(testContext(t), batch)
	for i := range batch {
		wantOutcome(t, first[i], relay.ClassPublished)
		wantOutcome(t, second[i], relay.ClassPublished)
		if first[i].Coordinates != second[i].Coordinates {
			t.Errorf("the repetition is said to be at %s, the first at %s", second[i].Coordinates, first[i].Coordinates)
		}
	}
	if stored := readAll(t, stream); len(stored) != len(batch) {
		t.Errorf("%d messages are stored, want %d", len(stored), len(batch))
	}
}

// TestEventThatTheStreamHasLost is sent again within the duplicate window: it must be stored again, once.
func TestEventThatTheStreamHasLost(t *testing.T) {
	address := serverURL(t)
	js := client(t, address)
	sink := open(t, Config{Servers: []string{address}})
	for name, test := range map[string]struct {
		config jetstream.StreamConfig
		lose   func(t *testing.T, stream jetstream.Stream, topic string)
	}{
		"purged": {lose: func(t *testing.T, stream jetstream.Stream, _ string) {
			must(t, stream.Purge(testContext(t)))
		}},
		"deleted": {lose: func(t *testing.T, stream jetstream.Stream, _ string) {
			info, err := stream.Info(testContext(t))
			must(t, err)
			must(t, stream.DeleteMsg(testContext(t), info.State.LastSeq))
		}},
		"pushed out": {config: jetstream.StreamConfig{MaxMsgs: 1}, lose: func(t *testing.T, _ jetstream.Stream, topic string) {
			_, err := js.Publish(testContext(t), topic, nil)
			must(t, err)
		}},
		"read from replicas": {config: jetstream.StreamConfig{AllowDirect: true}, lose: func(t *testing.T, stream jetstream.Stream, _ string) {
			must(t, stream.Purge(testContext(t)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stream := newStream(t, js, test.config)
			m := newMessages(stream.CachedInfo().Config.Name+".events", 1)[0]
			m.Headers = []relay.Header{{Name: relay.HeaderEventID, Value: m.EventID}}
			before := publishOne(t, sink, m)
			wantOutcome(t, before, relay.ClassPublished)
			for range 2 { // what was stored again can be lost again
				test.lose(t, stream, m.Topic)
				again, repeated := publishOne(t, sink, m), publishOne(t, sink, m)
				wantOutcome(t, again, relay.ClassPublished)
				wantOutcome(t, repeated, relay.ClassPublished)
				if again.Coordinates == before.Coordinates || repeated.Coordinates != again.Coordinates {
					t.Errorf("the lost event was at %s, its repetitions are said to be at %s and %s", before.Coordinates, again.Coordinates, repeated.Coordinates)
				}
				stored := readAll(t, stream)
				if len(stored) != 1 || stored[0].Coordinates != again.Coordinates || !slices.Contains(stored[0].Headers, m.Headers[0]) {
					t.Errorf("the stream holds %+v, want the event at %s", stored, again.Coordinates)
				}
				before = again
			}
		})
	}
}

// TestLostAndHeldEventsOfABatch keeps apart what must be sent again, and the order of a key.
func TestLostAndHeldEventsOfABatch(t *testing.T) {
	address := serverURL(t)
	stream := newStream(t, client(t, address), jetstream.StreamConfig{})
	sink := open(t, Config{Servers: []string{address}})
	batch := newMessages(stream.CachedInfo().Config.Name+".events", 100)
	for i := range batch {
		batch[i].Key = fmt.Sprint(i % 25)
		batch[i].Headers = []relay.Header{{Name: relay.HeaderEventID, Value: batch[i].EventID}}
	}
	first := sink.Publish(testContext(t), batch)
	lost := make(map[int]bool)
	for i := 0; i < len(batch); i += 3 {
		var sequence uint64
		if _, err := fmt.Sscanf(first[i].Coordinates, "nats:"+stream.CachedInfo().Config.Name+"@%d", &sequence); err != nil {
			t.Fatal(err)
		}
		must(t, stream.DeleteMsg(testContext(t), sequence))
		lost[i] = true
	}
	where := make(map[string]int)
	for i, o := range sink.Publish(testContext(t), batch) {
		wantOutcome(t, o, relay.ClassPublished)
		if moved := o.Coordinates != first[i].Coordinates; moved != lost[i] {
			t.Errorf("event %d, lost: %t, is at %s and was at %s", i, lost[i], o.Coordinates, first[i].Coordinates)
		}
		where[o.Coordinates] = i
	}
	stored := readAll(t, stream)
	if len(stored) != len(batch) {
		t.Errorf("%d messages are stored, want %d", len(stored), len(batch))
	}
	last := make(map[string]int) // of the events that were sent again, by key
	for _, s := range stored {
		i := where[s.Coordinates]
		if !lost[i] {
			continue
		}
		if before, found := last[batch[i].Key]; found && i < before {
			t.Errorf("key %s: event %d was sent again after event %d", batch[i].Key, i, before)
		}
		last[batch[i].Key] = i
	}
}

// TestConsumedEventIsNotSentAgain has streams that drop what was consumed.
func TestConsumedEventIsNotSentAgain(t *testing.T) {
	address := serverURL(t)
	js := client(t, address)
	sink := open(t, Config{Servers: []string{address}})
	for _, retention := range []jetstream.RetentionPolicy{jetstream.WorkQueuePolicy, jetstream.InterestPolicy} {
		t.Run(retention.String(), func(t *testing.T) {
			stream := newStream(t, js, jetstream.StreamConfig{Retention: retention})
			consumer, err := stream.CreateConsumer(testContext(t), jetstream.ConsumerConfig{Durable: "consumer", AckPolicy: jetstream.AckExplicitPolicy})
			must(t, err)
			batch := newMessages(stream.CachedInfo().Config.Name+".events", 50)
			first := sink.Publish(testContext(t), batch)
			messages, err := consumer.Fetch(len(batch))
			must(t, err)
			for m := range messages.Messages() {
				must(t, m.DoubleAck(testContext(t)))
			}
			for i, o := range sink.Publish(testContext(t), batch) {
				wantOutcome(t, o, relay.ClassPublished)
				if o.Coordinates != first[i].Coordinates {
					t.Errorf("event %d was consumed at %s, and sent again to %s", i, first[i].Coordinates, o.Coordinates)
				}
			}
			info, err := stream.Info(testContext(t))
			must(t, err)
			if info.State.Msgs != 0 {
				t.Errorf("%d messages are stored that were consumed before", info.State.Msgs)
			}
		})
	}
}

// TestForbiddenToAsk blames the event, not the sink: other events can be published.
func TestForbiddenToAsk(t *testing.T) {
	sink := denying(t, "$JS.API.STREAM.MSG.GET.EVENTS")
	batch := newMessages("events.a", 3)
	for _, o := range sink.Publish(testContext(t), batch[:2]) {
		wantOutcome(t, o, relay.ClassPublished)
	}
	outcomes := sink.Publish(testContext(t), batch)
	for _, o := range outcomes[:2] {
		wantOutcome(t, o, relay.ClassRetry, "events.a", "EVENTS", "$JS.API.STREAM.MSG.GET.EVENTS", "permissions")
	}
	wantOutcome(t, outcomes[2], relay.ClassPublished)
	if findings := sink.Check(testContext(t), []string{"events.a"}); !hasFinding(findings, operator.LevelError, "still holds") {
		t.Errorf("Check found %+v, want an error about what the login may not ask", findings)
	}
}

// TestStreamOfAnotherAccount can be published to, and not be asked.
func TestStreamOfAnotherAccount(t *testing.T) {
	for name, jetStream := range map[string]string{"without JetStream": "disabled", "with JetStream": "enabled"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "server.conf")
			must(t, os.WriteFile(file, fmt.Appendf(nil, `
				jetstream: {}
				accounts: {
					OWNER: {jetstream: enabled, users: [{user: owner, password: secret}], exports: [{service: "events.>"}]}
					RELAY: {jetstream: %s, users: [{user: relay, password: secret}], imports: [{service: {account: OWNER, subject: "events.>"}}]}
				}`, jetStream), 0o600))
			options, err := server.ProcessConfigFile(file)
			must(t, err)
			s := runServer(t, *options)
			js := client(t, "nats://owner:secret@"+s.Addr().String())
			_, err = js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events.>"}})
			must(t, err)
			sink := open(t, Config{Servers: []string{s.ClientURL()}, User: "relay", Password: "secret"})
			m := newMessages("events.a", 1)[0]
			wantOutcome(t, publishOne(t, sink, m), relay.ClassPublished)
			wantOutcome(t, publishOne(t, sink, m), relay.ClassRetry, "events.a", "EVENTS", "still holds")
		})
	}
}

// TestAnotherMessageIsNotOurs has answers that no server of today gives about a message that it acknowledges.
func TestAnotherMessageIsNotOurs(t *testing.T) {
	for text, want := range map[string]bool{"Nats-Msg-Id: mine\r\n": true, "Nats-Msg-Id: other\r\n": false, "X-Event-Id: mine\r\n": false, "": false} {
		answer, err := json.Marshal(map[string]any{"message": map[string]any{"seq": 1, "hdrs": []byte("NATS/1.0\r\n" + text + "\r\n")}})
		must(t, err)
		if held, err := (&question{answer: answer}).holds("mine"); err != nil || held != want {
			t.Errorf("a message with header %q is ours: %t, %v, want %t", text, held, err, want)
		}
	}
}
