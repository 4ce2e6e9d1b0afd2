package postrider_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

func TestAddRefusesBadEvents(t *testing.T) {
	long := strings.Repeat("x", postrider.MaxField+1)
	for name, c := range map[string]struct {
		field string
		spoil func(*postrider.Event)
	}{
		"no aggregate type":         {"aggregate_type", func(e *postrider.Event) { e.AggregateType = "" }},
		"no key":                    {"aggregate_id", func(e *postrider.Event) { e.AggregateID = "" }},
		"no type":                   {"event_type", func(e *postrider.Event) { e.Type = "" }},
		"long aggregate type":       {"aggregate_type", func(e *postrider.Event) { e.AggregateType = long }},
		"long key":                  {"aggregate_id", func(e *postrider.Event) { e.AggregateID = long }},
		"long type":                 {"event_type", func(e *postrider.Event) { e.Type = long }},
		"long topic":                {"topic", func(e *postrider.Event) { e.Topic = long }},
		"long content type":         {"content_type", func(e *postrider.Event) { e.ContentType = long }},
		"long dedup key":            {"dedup_key", func(e *postrider.Event) { e.DedupKey = long }},
		"key not UTF-8":             {"aggregate_id", func(e *postrider.Event) { e.AggregateID = "a\xff" }},
		"topic not UTF-8":           {"topic", func(e *postrider.Event) { e.Topic = "a\xff" }},
		"NUL in key":                {"aggregate_id", func(e *postrider.Event) { e.AggregateID = "a\x00" }},
		"line break in type":        {"event_type", func(e *postrider.Event) { e.Type = "a\nb" }},
		"NUL in dedup key":          {"dedup_key", func(e *postrider.Event) { e.DedupKey = "a\x00" }},
		"id no UUID":                {"event_id", func(e *postrider.Event) { e.ID = "17" }},
		"id in braces":              {"event_id", func(e *postrider.Event) { e.ID = "{01890a5d-ac96-774b-bcce-b302099a8057}" }},
		"nil id":                    {"event_id", func(e *postrider.Event) { e.ID = "00000000-0000-0000-0000-000000000000" }},
		"negative version":          {"aggregate_version", func(e *postrider.Event) { e.AggregateVersion = -1 }},
		"empty payload":             {"payload", func(e *postrider.Event) { e.Payload = nil }},
		"blank payload":             {"payload", func(e *postrider.Event) { e.Payload = []byte(" \n") }},
		"payload not JSON":          {"payload", func(e *postrider.Event) { e.Payload = []byte(`{"a":}`) }},
		"two JSON values":           {"payload", func(e *postrider.Event) { e.Payload = []byte(`{} {}`) }},
		"payload not UTF-8":         {"payload", func(e *postrider.Event) { e.Payload = []byte("\"\xff\"") }},
		"NUL in payload":            {"payload", func(e *postrider.Event) { e.Payload = []byte("\"\x00\"") }},
		"payload too large":         {"payload", func(e *postrider.Event) { e.Payload = make([]byte, postrider.DefaultMaxPayload+1) }},
		"nameless header":           {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"": "v"} }},
		"blank in header name":      {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"a b": "v"} }},
		"colon in header name":      {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"a:b": "v"} }},
		"header name not ASCII":     {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"ä": "v"} }},
		"header name not UTF-8":     {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"\xff": "v"} }},
		"long header name":          {"headers", func(e *postrider.Event) { e.Headers = map[string]string{long: "v"} }},
		"NUL in header":             {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"a": "\x00"} }},
		"line break in header":      {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"a": "b\r\nc: d"} }},
		"header not UTF-8":          {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"a": "\xff"} }},
		"headers differing in case": {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"Abc": "1", "aBC": "2"} }},
		"headers too large": {"headers", func(e *postrider.Event) {
			e.Headers = map[string]string{"a": strings.Repeat("x", postrider.MaxHeaders)}
		}},
		"reserved header": {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"x-EVENT-id": "v"} }},
		"broker's header": {"headers", func(e *postrider.Event) { e.Headers = map[string]string{"Nats-Msg-Id": "v"} }},
		"year above":      {"next_attempt_at", func(e *postrider.Event) { e.At = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"year below":      {"next_attempt_at", func(e *postrider.Event) { e.At = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) }},
	} {
		t.Run(name, func(t *testing.T) {
			var tx execTx
			bad := event()
			c.spoil(&bad)
			_, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &tx, event(), bad)
			var problems postrider.EventErrors
			if !errors.As(err, &problems) {
				t.Fatalf("error %v, want EventErrors", err)
			}
			if len(problems) != 1 || problems[0].Index != 1 || problems[0].Field != c.field {
				t.Errorf("problems %v, want one of event 1 with %s", problems, c.field)
			}
			if len(tx.statements) > 0 {
				t.Error("something was written")
			}
		})
	}
}

func TestAddTakesUnusualEvents(t *testing.T) {
	for name, shape := range map[string]func(*postrider.Event){
		"longest texts":      func(e *postrider.Event) { e.AggregateID = strings.Repeat("x", postrider.MaxField) },
		"texts beyond ASCII": func(e *postrider.Event) { e.AggregateID, e.Topic = "Ключ 鍵 🔑", "ä/b.c:d" },
		"largest payload": func(e *postrider.Event) {
			e.Payload = []byte(`"` + strings.Repeat("x", postrider.DefaultMaxPayload-2) + `"`)
		},
		"JSON null":            func(e *postrider.Event) { e.Payload = []byte("null") },
		"escaped NUL":          func(e *postrider.Event) { e.Payload = []byte(`"\u0000"`) },
		"id in upper case":     func(e *postrider.Event) { e.ID = "01890A5D-AC96-774B-BCCE-B302099A8057" },
		"header with a tab":    func(e *postrider.Event) { e.Headers = map[string]string{"a!#$%&'*+-.^_`|~0": "b\tc"} },
		"empty header":         func(e *postrider.Event) { e.Headers = map[string]string{"a": ""} },
		"time in another zone": func(e *postrider.Event) { e.At = time.Date(1970, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600)) },
	} {
		t.Run(name, func(t *testing.T) {
			var tx execTx
			e := event()
			shape(&e)
			if _, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &tx, e); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAddReportsEveryProblemOfEveryEvent(t *testing.T) {
	bad := postrider.Event{Payload: []byte("{}"), AggregateVersion: -2}
	_, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &execTx{}, bad, event(), bad)
	var problems postrider.EventErrors
	if !errors.As(err, &problems) {
		t.Fatalf("error %v, want EventErrors", err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, string(rune('0'+p.Index))+" "+p.Field)
	}
	want := []string{
		"0 aggregate_type", "0 aggregate_id", "0 event_type", "0 aggregate_version",
		"2 aggregate_type", "2 aggregate_id", "2 event_type", "2 aggregate_version",
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems %v, want %v", got, want)
	}
	var first *postrider.EventError
	if !errors.As(err, &first) || first.Index != 0 {
		t.Errorf("errors.As finds %v", first)
	}
}

func TestTextOfEventErrorsIsBounded(t *testing.T) {
	_, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &execTx{}, make([]postrider.Event, 500)...)
	var problems postrider.EventErrors
	if !errors.As(err, &problems) || len(problems) != 2000 {
		t.Fatalf("%d problems, want 2000", len(problems))
	}
	if text := err.Error(); len(text) > 2000 || !strings.HasSuffix(text, "and 1990 more") {
		t.Errorf("text of %d bytes ends %q", len(text), text[len(text)-30:])
	}
}

func TestErrorsDoNotShowPayload(t *testing.T) {
	bad := event()
	bad.Payload = []byte(`{"card": "4111111111111111"`)
	_, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &execTx{}, bad)
	if err == nil || strings.Contains(err.Error(), "4111") {
		t.Errorf("error %v", err)
	}
}

func TestBinaryOutbox(t *testing.T) {
	outbox := newOutbox(t, postrider.Config{Binary: true})
	e := event()
	e.Payload, e.ContentType = nil, "application/x-protobuf"
	var tx execTx
	if _, err := outbox.Add(t.Context(), &tx, e); err != nil {
		t.Fatal(err)
	}
	if payload := tx.column("payload")[0]; payload != "" {
		t.Errorf("payload %#v, want an empty one", payload)
	}

	e.ContentType = ""
	_, err := outbox.Add(t.Context(), &tx, e)
	var problem *postrider.EventError
	if !errors.As(err, &problem) || problem.Field != "content_type" {
		t.Errorf("error %v, want one of content_type", err)
	}
}

func TestEveryHeaderOfTheRelayIsReserved(t *testing.T) {
	for _, name := range []string{
		relay.HeaderEventID, relay.HeaderIdempotencyKey, relay.HeaderEventType, relay.HeaderAggregateType,
		relay.HeaderAggregateID, relay.HeaderOutboxID, relay.HeaderAggregateVersion, relay.HeaderContentType,
	} {
		e := event()
		e.Headers = map[string]string{name: "v"}
		if _, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &execTx{}, e); err == nil {
			t.Errorf("header %s was taken", name)
		}
	}
}
