package dlt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// memory is a dead-letter topic, and the sink that leads out of it.
type memory struct {
	letters []dlt.Letter
	settled []string // event ids
	sent    []relay.Message
	times   []time.Time
	refuse  map[string]relay.Outcome // by event id
	onSend  func()
}

func (m *memory) Scan(ctx context.Context, visit func(dlt.Letter) error) error {
	for _, l := range m.letters {
		if err := errors.Join(ctx.Err(), visit(l)); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Settle(_ context.Context, letters []dlt.Letter, _ operator.Action) error {
	for _, l := range letters {
		m.settled = append(m.settled, l.Message.EventID())
	}
	return nil
}

func (m *memory) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	if m.onSend != nil {
		m.onSend()
	}
	outcomes := make([]relay.Outcome, len(batch))
	stopped := make(map[string]bool)
	for i, b := range batch {
		id, _, _ := strings.Cut(b.EventID, ":")
		refusal, refused := m.refuse[id]
		switch {
		case ctx.Err() != nil:
			outcomes[i] = relay.Unavailable(ctx.Err())
		case stopped[b.Key]:
			outcomes[i] = relay.Skipped()
		case refused:
			outcomes[i], stopped[b.Key] = refusal, true
		default:
			outcomes[i] = relay.Published("memory:1")
			m.sent, m.times = append(m.sent, b), append(m.times, time.Now())
		}
	}
	return outcomes
}

func (m *memory) Close() error { return nil }

func letter(n int, key string, headers ...string) dlt.Letter {
	m := inbox.Message{Key: key, Coordinates: fmt.Sprint("memory:orders.dlt@", n), Payload: []byte("p")}
	headers = append([]string{"X-Event-Id", fmt.Sprint(n), consumer.HeaderOriginTopic, "orders"}, headers...)
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, inbox.Header{Name: headers[i], Value: headers[i+1]})
	}
	return dlt.Letter{Message: m}
}

func idsOf(sent []relay.Message) (ids []string) {
	for _, m := range sent {
		id, _, _ := strings.Cut(m.EventID, ":")
		ids = append(ids, id)
	}
	return ids
}

func TestFilter(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	l := letter(7, "k", "X-Event-Type", "OrderPaid", consumer.HeaderFailureClass, "permanent", consumer.HeaderFailureConsumer, "billing",
		consumer.HeaderFailureMessage, "no account 17", consumer.HeaderFailureLastAt, "2026-05-01T12:00:00.000Z")
	unkeyed := l
	unkeyed.Message.Key = ""
	unkeyed.Message.Headers = append(slices.Clone(l.Message.Headers), inbox.Header{Name: "X-Aggregate-Id", Value: "a"})
	for _, test := range []struct {
		l       dlt.Letter
		yes, no dlt.Filter
		what    string
	}{
		{l, dlt.Filter{}, dlt.Filter{Refs: []string{"8"}}, "all"},
		{l, dlt.Filter{Refs: []string{"8", "7"}}, dlt.Filter{Refs: []string{"memory:orders.dlt@8"}}, "event id"},
		{l, dlt.Filter{Refs: []string{"memory:orders.dlt@7"}}, dlt.Filter{Refs: []string{"7"}, Key: "j"}, "coordinates"},
		{l, dlt.Filter{OriginTopic: "orders"}, dlt.Filter{OriginTopic: "other"}, "origin"},
		{l, dlt.Filter{Consumer: "billing"}, dlt.Filter{Consumer: "other"}, "consumer"},
		{l, dlt.Filter{EventType: "OrderPaid"}, dlt.Filter{EventType: "OrderSent"}, "type"},
		{l, dlt.Filter{Class: inbox.ClassPermanent}, dlt.Filter{Class: inbox.ClassRetry}, "class"},
		{l, dlt.Filter{ErrorContains: "account"}, dlt.Filter{ErrorContains: "balance"}, "error"},
		{l, dlt.Filter{Key: "k"}, dlt.Filter{Key: "a"}, "key"},
		{unkeyed, dlt.Filter{Key: "a"}, dlt.Filter{Key: "k"}, "aggregate id"},
		{l, dlt.Filter{Since: at}, dlt.Filter{Since: at.Add(1)}, "since"},
		{l, dlt.Filter{Until: at.Add(1)}, dlt.Filter{Until: at}, "until"},
	} {
		if !test.yes.Matches(test.l) || test.no.Matches(test.l) {
			t.Errorf("%s: %+v and %+v do not tell the letter from others", test.what, test.yes, test.no)
		}
	}
}

func TestGroups(t *testing.T) {
	var groups dlt.Groups
	for i, failure := range []string{"no account 1", "timeout", "no account 23", "no account 4"} {
		groups.Add(letter(i, "", consumer.HeaderFailureMessage, failure, consumer.HeaderFailureClass, "permanent", "X-Event-Type", "OrderPaid",
			consumer.HeaderFailureLastAt, fmt.Sprintf("2026-05-0%dT12:00:00.000Z", 5-i)))
	}
	list := groups.List()
	day := func(d int) time.Time { return time.Date(2026, 5, d, 12, 0, 0, 0, time.UTC) }
	want := dlt.Group{Letters: 3, OriginTopic: "orders", EventType: "OrderPaid", Class: "permanent", Error: "no account <n>", Oldest: day(2), Newest: day(5),
		Sample: "memory:orders.dlt@0"}
	if len(list) != 2 || list[0] != want || list[1].Letters != 1 {
		t.Errorf("groups %+v, want %+v and another one", list, want)
	}
}

// TestRefusedLettersStay has letters behind them of the same key stay as well, in the same batch and in later ones.
func TestRefusedLettersStay(t *testing.T) {
	m := &memory{refuse: map[string]relay.Outcome{"1": relay.Permanent(errors.New("too large")), "150": relay.Retry(errors.New("no leader"))}}
	for i := range 300 {
		m.letters = append(m.letters, letter(i, fmt.Sprint("key-", i%10)))
	}
	m.letters[2].Message.Headers = m.letters[2].Message.Headers[:1] // says no origin
	result, err := dlt.Redrive{Topic: m, Sink: m}.Run(t.Context())
	var want []string
	for i := range 300 {
		if i != 2 && i%10 != 1 && (i%10 != 0 || i < 150) {
			want = append(want, fmt.Sprint(i))
		}
	}
	if !slices.Equal(idsOf(m.sent), want) || !slices.Equal(m.settled, want) {
		t.Errorf("sent %q, settled %q, want %q", idsOf(m.sent), m.settled, want)
	}
	if err != nil || result.Redriven != len(want) || result.NoOrigin != 1 || result.Refused != 2 || result.Behind != 29+14 || result.Refusal == nil {
		t.Errorf("Run returned %+v and %v", result, err)
	}
}

func TestRedriveEndsWhenTheSinkIsUnavailable(t *testing.T) {
	m := &memory{refuse: map[string]relay.Outcome{"50": relay.Unavailable(errors.New("no connection"))}}
	for i := range 300 {
		m.letters = append(m.letters, letter(i, ""))
	}
	result, err := dlt.Redrive{Topic: m, Sink: m}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no connection") || result.Redriven != len(m.settled) || len(m.settled) > 101 || len(m.settled) < 50 {
		t.Errorf("Run returned %+v and %v, %d settled", result, err, len(m.settled))
	}
}

// TestInterruptedRedrive settles what is on its way.
func TestInterruptedRedrive(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	m := &memory{}
	for i := range 300 {
		m.letters = append(m.letters, letter(i, ""))
	}
	m.onSend = func() {
		if len(m.sent) > 0 {
			interrupt()
		}
	}
	result, err := dlt.Redrive{Topic: m, Sink: m}.Run(ctx)
	if !errors.Is(err, context.Canceled) || result.Redriven != 101 || len(m.settled) != 101 {
		t.Errorf("Run returned %+v and %v with %d settled, want 101 redriven", result, err, len(m.settled))
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		for i := range 1000 {
			m.letters = append(m.letters, letter(i, ""))
		}
		start := time.Now()
		if _, err := (dlt.Redrive{Topic: m, Sink: m, Rate: 100}).Run(t.Context()); err != nil {
			t.Error(err)
		}
		for i, at := range m.times {
			if most := 10 + 100*int(at.Sub(start)/time.Second+1); i >= most {
				t.Fatalf("letter %d was sent after %s", i, at.Sub(start))
			}
		}
		if took := time.Since(start); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("1000 letters at 100 a second took %s", took)
		}
	})
}

// TestHeadersAndIdsOfWhatGoesBack has a letter that went back before, and a message id that does not grow by that.
func TestHeadersAndIdsOfWhatGoesBack(t *testing.T) {
	l := letter(1, "k", "X-Own", "a", "x-own", "b", consumer.HeaderFailureMessage, "e", consumer.HeaderRetryAt, "never", "content-type", "text/plain")
	send := func(l dlt.Letter, keep bool) relay.Message {
		m := &memory{letters: []dlt.Letter{l}}
		if _, err := (dlt.Redrive{Topic: m, Sink: m, KeepHeaders: keep}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return m.sent[0]
	}
	plain, kept := send(l, false), send(l, true)
	names := func(m relay.Message) (names []string) {
		for _, h := range m.Headers {
			names = append(names, h.Name+"="+h.Value)
		}
		return names
	}
	if got, want := names(plain), []string{"X-Event-Id=1", "X-Own=a", "content-type=text/plain"}; !slices.Equal(got, want) {
		t.Errorf("headers %q, want %q", got, want)
	}
	if got := names(kept); !slices.Contains(got, "X-Failure-Message=e") || !slices.Contains(got, "X-Origin-Topic=orders") || slices.Contains(got, "X-Retry-At=never") {
		t.Errorf("kept headers %q", got)
	}
	long := l
	long.Message.Coordinates += strings.Repeat("x", 300)
	if a, b := send(l, false).EventID, send(long, false).EventID; a != plain.EventID || a == b || len(a) != len(b) || a == "1" {
		t.Errorf("ids %q, %q and %q, want two that are alike and one that is as long", plain.EventID, a, b)
	}
}
