package outboxtest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/outboxtest"
)

// recorder keeps failures instead of failing.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failure returns what f fails its test with, or "".
func failure(t *testing.T, f func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return strings.Join(r.failures, "\n")
}

func event(eventType, id, payload string) postrider.Event {
	return postrider.Event{AggregateType: "order", AggregateID: id, Type: eventType, Payload: []byte(payload)}
}

func TestDiff(t *testing.T) {
	full := postrider.Event{
		AggregateType: "order", AggregateID: "1", Type: "Placed", AggregateVersion: 3, Topic: "orders", DedupKey: "d",
		Headers: map[string]string{"tenant": "a", "other": "x"}, Payload: []byte(`{"n": 9007199254740993, "o": {"b": 1, "a": [1, 2]}}`),
	}
	placed, paid, shipped := event("Placed", "1", `{}`), event("Paid", "1", `{}`), event("Shipped", "1", `{}`)
	list := func(events ...postrider.Event) []postrider.Event { return events }
	wants := func(types ...string) (all []outboxtest.Want) {
		for _, name := range types {
			all = append(all, outboxtest.Want{Type: name})
		}
		return all
	}
	for _, test := range []struct {
		name string
		got  []postrider.Event
		want []outboxtest.Want
		diff string
	}{
		{"nothing", nil, nil, ""},
		{"all fields", list(full), []outboxtest.Want{{
			Type: "Placed", AggregateType: "order", AggregateID: "1", AggregateVersion: 3, Topic: "orders", DedupKey: "d",
			Headers: map[string]string{"tenant": "a"}, JSON: `{"o":{"a":[1,2],"b":1},"n":9007199254740993}`,
			Includes: `{"o":{"b":1}}`, Payload: full.Payload,
		}}, ""},
		{"every field differs", list(full), []outboxtest.Want{{
			Type: "Paid", AggregateType: "cart", AggregateID: "2", AggregateVersion: 4, Topic: "carts", DedupKey: "e",
			Headers: map[string]string{"tenant": "b", "lost": "y"}, Payload: []byte("x"),
		}}, `  Placed of order 1, payload {"n": 9007199254740993, "o": {"b": 1, "a": [1, 2]}}:
    type is "Placed", want "Paid"
    aggregate type is "order", want "cart"
    aggregate id is "1", want "2"
    aggregate version is "3", want "4"
    topic is "orders", want "carts"
    dedup key is "d", want "e"
    header lost is missing, want "y"
    header tenant is "a", want "b"
    payload is "{\"n\": 9007199254740993, \"o\": {\"b\": 1, \"a\": [1, 2]}}", want "x"`},
		{"JSON", list(full), []outboxtest.Want{{JSON: `{"n":9007199254740992,"o":{"a":[2,1]},"p":null}`}},
			`  Placed of order 1, payload {"n": 9007199254740993, "o": {"b": 1, "a": [1, 2]}}:
    payload/n is 9007199254740993, want 9007199254740992
    payload/o/a is [1,2], want [2,1]
    payload/o/b is 1, want none
    payload/p is missing, want null`},
		{"part of JSON", list(full), []outboxtest.Want{{Includes: `{"o":{"b":2,"c":3}}`}},
			`  Placed of order 1, payload {"n": 9007199254740993, "o": {"b": 1, "a": [1, 2]}}:
    payload/o/b is 1, want 2
    payload/o/c is missing, want 3`},
		{"no JSON", list(event("A", "1", "{} {}")), []outboxtest.Want{{JSON: `{}`}}, `  A of order 1, payload "{} {}":
    payload is not valid JSON: invalid character '{' after top-level value: "{} {}"`},
		{"wrong want", list(placed), []outboxtest.Want{{JSON: `{`}}, `  Placed of order 1, payload {}:
    what is wanted is not valid JSON: unexpected end of JSON input: {`},
		{"one too many", list(placed, paid, shipped), wants("Placed", "Shipped"), "  not wanted: Paid of order 1, payload {}"},
		{"one missing", list(placed, shipped), wants("Placed", "Paid", "Shipped"), "  missing: type Paid"},
		{"another order", list(paid, placed), wants("Placed", "Paid"), "  not wanted: Paid of order 1, payload {}\n  missing: type Paid"},
		{"twice", list(placed, placed), wants("Placed"), "  not wanted: Placed of order 1, payload {}"},
		{"missing ones are described", nil, []outboxtest.Want{{}, {AggregateVersion: 2, Headers: map[string]string{"h": "v"}, Includes: "{}"}},
			"  missing: any event\n  missing: aggregate version 2, header h v, payload with {}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := outboxtest.Diff(test.got, test.want...); diff != test.diff {
				t.Errorf("got\n%s\nwant\n%s", diff, test.diff)
			}
		})
	}
}

func TestRequireFails(t *testing.T) {
	placed := event("Placed", "1", `{}`)
	if text := failure(t, func(t testing.TB) { outboxtest.Require(t, []postrider.Event{placed}, outboxtest.Want{Type: "Placed"}) }); text != "" {
		t.Errorf("what is wanted fails with %s", text)
	}
	const none = "1 events were added, want none:\n  not wanted: Placed of order 1, payload {}"
	if text := failure(t, func(t testing.TB) { outboxtest.Require(t, []postrider.Event{placed}) }); text != none {
		t.Errorf("got %s", text)
	}
	const two = "1 events were added, want 2:\n  missing: type Paid"
	if text := failure(t, func(t testing.TB) {
		outboxtest.Require(t, []postrider.Event{placed}, outboxtest.Want{Type: "Placed"}, outboxtest.Want{Type: "Paid"})
	}); text != two {
		t.Errorf("got %s", text)
	}
}

func TestTableTellsMistakes(t *testing.T) {
	for _, test := range []struct {
		table outboxtest.Table
		want  string
	}{
		{outboxtest.Table{}, `Dialect is "": it must be`},
		{outboxtest.Table{Dialect: postrider.PostgreSQL, Name: "a.b.c"}, "Name "},
	} {
		if text := failure(t, func(t testing.TB) { test.table.Added(t, nil, outboxtest.Mark{}) }); !strings.Contains(text, test.want) {
			t.Errorf("%+v fails with %q, want %s", test.table, text, test.want)
		}
	}
}
