package relay

import (
	"reflect"
	"slices"
	"testing"
)

func TestHeadersOfAMessage(t *testing.T) {
	version := int64(3)
	e := &Event{
		ID: "7", EventID: "e-7", AggregateType: "order", AggregateID: "17", EventType: "OrderPlaced",
		AggregateVersion: &version, ContentType: "application/json", Payload: []byte(`{"total": 1.0}`),
		Headers: map[string]string{
			"zone": "eu", "tracestate": "b", "traceparent": "a", "alpha": "1",
			"x-event-id": "forged", "Content-Type": "text/plain",
		},
	}
	m := messageOf(t, Route{Sink: "main", Topic: "orders"}, e)
	want := []Header{
		{"X-Event-Id", "e-7"}, {"X-Idempotency-Key", "e-7"}, {"X-Event-Type", "OrderPlaced"},
		{"X-Aggregate-Type", "order"}, {"X-Aggregate-Id", "17"}, {"X-Outbox-Id", "7"}, {"X-Aggregate-Version", "3"},
		{"content-type", "application/json"},
		{"traceparent", "a"}, {"tracestate", "b"}, {"alpha", "1"}, {"zone", "eu"},
	}
	if !slices.Equal(m.Headers, want) {
		t.Errorf("headers\n%v, want\n%v", m.Headers, want)
	}
	if m.EventID != "e-7" || m.Key != "17" || m.Topic != "orders" || string(m.Payload) != `{"total": 1.0}` {
		t.Errorf("message %+v", m)
	}
}

func TestAMessageHasThePartitionKeyAndTheAggregateIDApart(t *testing.T) {
	m := messageOf(t, Route{Sink: "main"}, &Event{AggregateID: "17", PartitionKey: "customer-7"})
	if m.Key != "customer-7" || !slices.Contains(m.Headers, Header{HeaderAggregateID, "17"}) {
		t.Errorf("message %+v", m)
	}
}

func messageOf(t *testing.T, r Route, e *Event) Message {
	t.Helper()
	return resolve(t, r).find(e.Kind()).message(e)
}

func TestHeadersWithoutAVersion(t *testing.T) {
	for _, h := range messageOf(t, Route{Sink: "main"}, &Event{}).Headers {
		if h.Name == HeaderAggregateVersion {
			t.Error("an event without a version has the header")
		}
	}
}

func TestHeadersAsDebeziumsRouterWritesThem(t *testing.T) {
	version := int64(3)
	e := &Event{
		ID: "7", EventID: "e-7", AggregateType: "order", AggregateID: "17", EventType: "OrderPlaced",
		AggregateVersion: &version, ContentType: "application/json", Payload: []byte(`{"total": 1.0}`),
		Headers: map[string]string{"zone": "eu", "traceparent": "a", "ID": "forged", "eventtype": "forged"},
	}
	m := messageOf(t, Route{Sink: "main", Topic: "outbox.event.{aggregate_type}", Headers: HeadersDebezium}, e)
	want := Message{
		EventID: "e-7", Key: "17", Topic: "outbox.event.order", Payload: []byte(`{"total": 1.0}`),
		Headers: []Header{{"id", "e-7"}, {"eventType", "OrderPlaced"}, {"traceparent", "a"}, {"zone", "eu"}},
		Event:   e,
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("message\n%+v, want\n%+v", m, want)
	}
}

func TestHeadersOfACloudEvent(t *testing.T) {
	version := int64(3)
	e := &Event{
		ID: "7", EventID: "e-7", AggregateType: "shop order", AggregateID: "ä 1%", EventType: "OrderPlaced",
		AggregateVersion: &version, ContentType: "application/json", Payload: []byte(`{"total": 1.0}`),
		Headers: map[string]string{"zone": "eu", "traceparent": "a", "CE-ID": "forged", "ce_type": "forged"},
	}
	for name, test := range map[string]struct {
		sink Sink
		want []Header
	}{
		"as HTTP has them": {struct{ Sink }{}, []Header{
			{"ce-specversion", "1.0"}, {"ce-id", "e-7"}, {"ce-source", "/shop%2520order"}, {"ce-type", "OrderPlaced"},
			{"ce-subject", "%C3%A4%201%25"}, {"ce-partitionkey", "%C3%A4%201%25"}, {"ce-aggregateversion", "3"},
			{"content-type", "application/json"}, {"traceparent", "a"}, {"ce_type", "forged"}, {"zone", "eu"},
		}},
		"as the sink has them": {boundSink{}, []Header{
			{"ce_specversion", "1.0"}, {"ce_id", "e-7"}, {"ce_source", "/shop%20order"}, {"ce_type", "OrderPlaced"},
			{"ce_subject", "ä 1%"}, {"ce_partitionkey", "ä 1%"}, {"ce_aggregateversion", "3"},
			{"content-type", "application/json"}, {"traceparent", "a"}, {"CE-ID", "forged"}, {"zone", "eu"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Sinks: []NamedSink{{Name: "main", Sink: test.sink}}, Routes: []Route{{Sink: "main", Headers: HeadersCloudEvents}}}
			routes, err := c.resolveRoutes()
			if err != nil {
				t.Fatal(err)
			}
			if got := routes[0].message(e).Headers; !slices.Equal(got, test.want) {
				t.Errorf("headers\n%q, want\n%q", got, test.want)
			}
		})
	}
}

// An attribute must not be empty, and optional ones may be missing.
func TestACloudEventHasNoEmptyAttribute(t *testing.T) {
	for _, h := range httpBinding.headers(&Event{EventID: "e-7", AggregateType: "order", EventType: "OrderPlaced"}) {
		if h.Value == "" && h.Name != HeaderContentType {
			t.Errorf("%s is empty", h.Name)
		}
	}
}

type boundSink struct{ Sink }

func (boundSink) CloudEvents() CloudEventsBinding { return CloudEventsBinding{Prefix: "ce_"} }
