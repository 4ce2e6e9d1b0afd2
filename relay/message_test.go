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
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("message\n%+v, want\n%+v", m, want)
	}
}
