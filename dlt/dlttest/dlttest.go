// Package dlttest is the conformance suite for dead-letter topics. What passes it against its real broker keeps the contract of dlt.Topic.
package dlttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// Broker is two topics that are empty and that nobody else uses.
type Broker struct {
	Sink   relay.Sink // publishes to both; the harness closes it
	Origin string
	Letter string // the dead-letter topic
	None   string // a topic that does not exist

	// Open opens a topic. The suite closes it.
	Open func(t testing.TB, topic string) dlt.Topic

	// Key says that the broker keeps the key of a message.
	Key bool
}

const patience = time.Minute

var by = operator.Action{Who: "tester", Reason: "cured"}

// Run runs the suite; open gives each case a broker of its own.
func Run(t *testing.T, open func(t testing.TB) Broker) {
	for _, c := range []struct {
		name  string
		check func(*testing.T, *fixture)
	}{
		{"LettersAreExact", lettersAreExact},
		{"ScanConsumesNothing", scanConsumesNothing},
		{"ScanThatStopsConsumesNothing", scanThatStopsConsumesNothing},
		{"ScanEnds", scanEnds},
		{"SettledIsGone", settledIsGone},
		{"NoSuchTopic", noSuchTopic},
		{"RedriveSendsBack", redriveSendsBack},
		{"RedriveKeepsHeaders", redriveKeepsHeaders},
		{"RedriveInventsNoEventID", redriveInventsNoEventID},
		{"RedriveAgainAfterACrash", redriveAgainAfterACrash},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			t.Cleanup(cancel)
			c.check(t, &fixture{t: t, ctx: ctx, Broker: open(t)})
		})
	}
}

type fixture struct {
	Broker
	t   testing.TB
	ctx context.Context
}

var lastID atomic.Int64

// letters returns n of three keys, of which none was published.
func (f *fixture) letters(n int) []relay.Message {
	batch := make([]relay.Message, n)
	for i := range batch {
		id := fmt.Sprintf("%08x-0000-4000-8000-%012x", time.Now().Unix()&0xffffffff, lastID.Add(1))
		batch[i] = relay.Message{
			EventID: id + ":dlt:billing:here",
			Key:     fmt.Sprint("key-", i%3),
			Topic:   f.Letter,
			Headers: []relay.Header{
				{Name: "X-Event-Id", Value: id}, {Name: "X-Event-Type", Value: "OrderPaid"}, {Name: "X-Aggregate-Id", Value: fmt.Sprint("key-", i%3)},
				{Name: consumer.HeaderOriginTopic, Value: f.Origin}, {Name: consumer.HeaderFailureClass, Value: "permanent"},
				{Name: consumer.HeaderFailureMessage, Value: "no such account"},
			},
			Payload: []byte(`{"number":` + fmt.Sprint(i) + `}`),
		}
	}
	return batch
}

// publish returns the event ids.
func (f *fixture) publish(batch []relay.Message) (ids []string) {
	f.t.Helper()
	for i, o := range f.Sink.Publish(f.ctx, batch) {
		if o.Class != relay.ClassPublished {
			f.t.Fatalf("message %d was not published: %s: %v", i, o.Class, o.Err)
		}
		ids = append(ids, batch[i].Headers[0].Value)
	}
	return ids
}

func (f *fixture) open(topic string) dlt.Topic {
	opened := f.Open(f.t, topic)
	f.t.Cleanup(func() { _ = opened.Close() }) // which tests may have closed
	return opened
}

func (f *fixture) close(topic dlt.Topic) {
	if err := topic.Close(); err != nil {
		f.t.Error(err)
	}
}

func scan(t testing.TB, ctx context.Context, topic dlt.Topic) (letters []dlt.Letter) {
	t.Helper()
	err := topic.Scan(ctx, func(l dlt.Letter) error {
		letters = append(letters, l)
		return nil
	})
	if err != nil {
		t.Fatalf("Scan: %v", err)
	}
	return letters
}

// wantLeft opens the topic anew, until it has these events. Brokers take a moment to give back what a scan has held.
func (f *fixture) wantLeft(topic string, want []string) (letters []dlt.Letter) {
	f.t.Helper()
	want = slices.Sorted(slices.Values(want))
	await.True(f.t, patience, fmt.Sprintf("%s has %d events", topic, len(want)), func() bool {
		opened := f.Open(f.t, topic)
		defer opened.Close()
		letters = scan(f.t, f.ctx, opened)
		return slices.Equal(slices.Sorted(slices.Values(idsOf(letters))), want)
	})
	return letters
}

func idsOf(letters []dlt.Letter) (ids []string) {
	for _, l := range letters {
		ids = append(ids, l.Message.EventID())
	}
	return ids
}

// wantOrder wants the events of each key in the order of ids, of which every third one has the same key.
func (f *fixture) wantOrder(letters []dlt.Letter, ids []string) {
	f.t.Helper()
	last := make(map[string]int)
	for _, l := range letters {
		key, at := l.Message.AggregateID(), slices.Index(ids, l.Message.EventID())
		if at < last[key] {
			f.t.Errorf("%s stands behind a later one of its key", l.Message)
		}
		last[key] = at
	}
}

func lettersAreExact(t *testing.T, f *fixture) {
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	batch := f.letters(2)
	batch[0].Payload, batch[1].Payload = everyByte, []byte{}
	ids := f.publish(batch)
	letters := scan(t, f.ctx, f.open(f.Letter))
	slices.SortFunc(letters, func(a, b dlt.Letter) int { return strings.Compare(a.Message.EventID(), b.Message.EventID()) })
	if !slices.Equal(idsOf(letters), ids) {
		t.Fatalf("got %q, want %q", idsOf(letters), ids)
	}
	for i, l := range letters {
		m := l.Message
		if !bytes.Equal(m.Payload, batch[i].Payload) || f.Key && m.Key != batch[i].Key || m.Topic != f.Letter || m.Coordinates == "" {
			t.Errorf("got %+v, want %+v", m, batch[i])
		}
		if l.OriginTopic() != f.Origin || l.Class() != "permanent" || l.Failure() != "no such account" || m.EventType() != "OrderPaid" {
			t.Errorf("headers %+v, want %+v", m.Headers, batch[i].Headers)
		}
	}
}

func scanConsumesNothing(t *testing.T, f *fixture) {
	ids := f.publish(f.letters(1500))
	topic := f.open(f.Letter)
	for range 2 {
		letters := scan(t, f.ctx, topic)
		if len(letters) != len(ids) {
			t.Errorf("a scan found %d letters, want %d", len(letters), len(ids))
		}
		f.wantOrder(letters, ids)
	}
	f.close(topic)
	f.wantOrder(f.wantLeft(f.Letter, ids), ids)
}

// scanThatStopsConsumesNothing stops within what a broker delivers at a time, and behind it, because it is interrupted. The first time nothing
// was delivered before, then the first letters: brokers may put them elsewhere.
func scanThatStopsConsumesNothing(t *testing.T, f *fixture) {
	ids := f.publish(f.letters(1500))
	stop := errors.New("stop")
	for _, most := range []int{1, 700, 1} {
		ctx, interrupt := context.WithCancel(f.ctx)
		visits := 0
		topic := f.open(f.Letter)
		err := topic.Scan(ctx, func(dlt.Letter) error {
			switch visits++; {
			case visits < most:
				return nil
			case most == 1:
				return stop
			}
			interrupt()
			return nil
		})
		interrupt()
		if !errors.Is(err, stop) && !errors.Is(err, context.Canceled) || visits != most {
			t.Errorf("Scan visited %d letters and returned %v, want that it stops at %d", visits, err, most)
		}
		if err := topic.Close(); err != nil {
			t.Error(err)
		}
	}
	f.wantOrder(f.wantLeft(f.Letter, ids), ids)
}

// scanEnds has the visitor publish: what comes after the begin is not visited, so that a redrive of what fails again ends.
func scanEnds(t *testing.T, f *fixture) {
	topic := f.open(f.Letter)
	if letters := scan(t, f.ctx, topic); len(letters) != 0 {
		t.Errorf("a scan of nothing found %d letters", len(letters))
	}
	ids := f.publish(f.letters(600)) // more than anybody reads at a time
	other := f.letters(1)
	other[0].Topic = f.Origin // which may be in the same stream
	f.publish(other)
	visits := 0
	stop := errors.New("stop")
	err := topic.Scan(f.ctx, func(dlt.Letter) error {
		if visits++; visits%100 == 1 {
			f.publish(f.letters(1))
		}
		return nil
	})
	if err != nil || visits != len(ids) {
		t.Errorf("Scan visited %d letters and returned %v, want the %d that were there", visits, err, len(ids))
	}
	if err := topic.Scan(f.ctx, func(dlt.Letter) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Scan returned %v, want the error of visit", err)
	}
	ended, end := context.WithCancel(f.ctx)
	err = topic.Scan(ended, func(dlt.Letter) error {
		end()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Scan returned %v, want the error of its context", err)
	}
}

func settledIsGone(t *testing.T, f *fixture) {
	ids := f.publish(f.letters(30))
	topic := f.open(f.Letter)
	var settled []dlt.Letter
	for _, l := range scan(t, f.ctx, topic) {
		if i := slices.Index(ids, l.Message.EventID()); i%2 == 0 {
			settled = append(settled, l)
		}
	}
	if err := topic.Settle(f.ctx, settled, by); err != nil {
		t.Fatal(err)
	}
	f.close(topic)
	var left []string
	for i, id := range ids {
		if i%2 == 1 {
			left = append(left, id)
		}
	}
	f.wantLeft(f.Letter, left)
	left = append(left, f.publish(f.letters(3))...) // what comes later is not taken for settled
	f.wantLeft(f.Letter, left)
}

func noSuchTopic(t *testing.T, f *fixture) {
	err := f.open(f.None).Scan(f.ctx, func(dlt.Letter) error { return nil })
	if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(f.None, "/")) {
		t.Errorf("Scan returned %v, want an error that names %s", err, f.None)
	}
}

// redriveSendsBack has the events at the origin already, so that a broker that knows them could take them for duplicates.
func redriveSendsBack(t *testing.T, f *fixture) {
	batch := f.letters(250)
	first := slices.Clone(batch)
	for i := range first {
		first[i].EventID, first[i].Topic = first[i].Headers[0].Value, f.Origin
		first[i].Headers = first[i].Headers[:3]
	}
	ids := f.publish(first)
	f.publish(batch)
	topic := f.open(f.Letter)
	result, err := dlt.Redrive{Topic: topic, Sink: f.Sink, Action: by, Filter: dlt.Filter{Refs: ids[:240]}}.Run(f.ctx)
	if err != nil || result != (dlt.Result{Redriven: 240}) {
		t.Errorf("Run returned %+v and %v, want 240 redriven", result, err)
	}
	f.close(topic)
	f.wantLeft(f.Letter, ids[240:])
	back := f.wantLeft(f.Origin, slices.Concat(ids, ids[:240]))
	seen := make(map[string]int)
	var again []dlt.Letter
	for _, l := range back {
		if seen[l.Message.EventID()]++; seen[l.Message.EventID()] == 2 {
			again = append(again, l)
		}
		want := batch[slices.Index(ids, l.Message.EventID())]
		if !bytes.Equal(l.Message.Payload, want.Payload) || f.Key && l.Message.Key != want.Key || l.OriginTopic()+l.Failure()+string(l.Class()) != "" {
			t.Fatalf("got %+v, want %+v without headers of a failure", l.Message, want)
		}
	}
	f.wantOrder(again, ids)
}

func redriveKeepsHeaders(t *testing.T, f *fixture) {
	ids := f.publish(f.letters(1))
	topic := f.open(f.Letter)
	if _, err := (dlt.Redrive{Topic: topic, Sink: f.Sink, Action: by, KeepHeaders: true}).Run(f.ctx); err != nil {
		t.Error(err)
	}
	f.close(topic)
	if back := f.wantLeft(f.Origin, ids); back[0].Failure() != "no such account" {
		t.Errorf("headers %+v, want those of the failure among them", back[0].Message.Headers)
	}
}

// redriveInventsNoEventID has a message that a consumer could not apply because it has no event id. The id for the broker is none, there and back.
func redriveInventsNoEventID(t *testing.T, f *fixture) {
	m := f.letters(1)[0]
	m.EventID, m.Headers = ":dlt:billing:here", m.Headers[3:]
	if o := f.Sink.Publish(f.ctx, []relay.Message{m})[0]; o.Class != relay.ClassPublished {
		t.Fatal(o.Err)
	}
	topic := f.open(f.Letter)
	if letters := scan(t, f.ctx, topic); len(letters) != 1 || letters[0].Message.EventID() != "" {
		t.Errorf("letters %+v, want one without an event id", letters)
	}
	if _, err := (dlt.Redrive{Topic: topic, Sink: f.Sink, Action: by}).Run(f.ctx); err != nil {
		t.Error(err)
	}
	if back := scan(t, f.ctx, f.open(f.Origin)); len(back) != 1 || back[0].Message.EventID() != "" {
		t.Errorf("messages %+v are back, want one without an event id", back)
	}
}

// unsettled is a topic that fails after letters were sent.
type unsettled struct{ dlt.Topic }

var errCrash = errors.New("crash")

func (unsettled) Settle(context.Context, []dlt.Letter, operator.Action) error { return errCrash }

func redriveAgainAfterACrash(t *testing.T, f *fixture) {
	ids := f.publish(f.letters(20))
	topic := f.open(f.Letter)
	if _, err := (dlt.Redrive{Topic: unsettled{topic}, Sink: f.Sink, Action: by}).Run(f.ctx); !errors.Is(err, errCrash) {
		t.Errorf("Run returned %v, want the error of Settle", err)
	}
	f.close(topic)
	f.wantLeft(f.Letter, ids)
	topic = f.open(f.Letter)
	if result, err := (dlt.Redrive{Topic: topic, Sink: f.Sink, Action: by}).Run(f.ctx); err != nil || result.Redriven != len(ids) {
		t.Errorf("Run returned %+v and %v, want %d redriven", result, err, len(ids))
	}
	f.close(topic)
	f.wantLeft(f.Letter, nil)
	var back []string
	opened := f.open(f.Origin)
	for _, l := range scan(t, f.ctx, opened) {
		if id := l.Message.EventID(); !slices.Contains(back, id) {
			back = append(back, id)
		}
	}
	if slices.Sort(back); !slices.Equal(back, slices.Sorted(slices.Values(ids))) {
		t.Errorf("%d events are back, want %d", len(back), len(ids))
	}
}
