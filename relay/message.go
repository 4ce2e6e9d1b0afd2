package relay

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Names of the headers of the style HeadersPostrider.
const (
	HeaderEventID          = "X-Event-Id"
	HeaderIdempotencyKey   = "X-Idempotency-Key"
	HeaderEventType        = "X-Event-Type"
	HeaderAggregateType    = "X-Aggregate-Type"
	HeaderAggregateID      = "X-Aggregate-Id"
	HeaderOutboxID         = "X-Outbox-Id"
	HeaderAggregateVersion = "X-Aggregate-Version"
	HeaderContentType      = "content-type"
)

// traceHeaders go before an event's other headers.
var traceHeaders = []string{"traceparent", "tracestate"}

// Names of the headers of the style HeadersDebezium.
const (
	HeaderDebeziumID        = "id"
	HeaderDebeziumEventType = "eventType"
)

// HeaderStyle is a layout of message headers.
type HeaderStyle string

// The layouts of message headers. In each of them the event's own headers follow, the trace context first.
const (
	// HeadersPostrider is the layout of the Header constants, X-Event-Id and so on.
	HeadersPostrider HeaderStyle = "postrider"

	// HeadersDebezium is that of Debezium's outbox event router: id is the event id, eventType the event type.
	HeadersDebezium HeaderStyle = "debezium"

	// HeadersCloudEvents is the binary mode of CloudEvents 1.0: id is the event id, source a slash and the aggregate type,
	// type the event type, subject the aggregate id, and the extensions partitionkey and aggregateversion. How they are
	// written depends on the sink, see CloudEventsSink.
	HeadersCloudEvents HeaderStyle = "cloudevents"
)

var headerStyles = []HeaderStyle{HeadersPostrider, HeadersDebezium, HeadersCloudEvents}

// message makes the message that a sink sends for an event of the route.
func (r *route) message(e *Event) Message {
	return Message{EventID: e.EventID, Key: r.key(e), Topic: r.topic(e), Headers: r.headersOf(e), Payload: e.Payload, Event: e}
}

// headersOf gives the headers of the style first; a header of the event never overrides one of them. The route's come
// last, since those of the style and of the event go before them.
func (r *route) headersOf(e *Event) []Header {
	headers := r.styleHeaders(e)
	for _, name := range ownHeaderNames(e) {
		if !hasHeader(headers, name) {
			headers = append(headers, Header{name, e.Headers[name]})
		}
	}
	for _, own := range r.headers {
		if value := own.value.of(e); value != "" && !hasHeader(headers, own.name) {
			headers = append(headers, Header{own.name, value})
		}
	}
	return headers
}

func (r *route) styleHeaders(e *Event) []Header {
	switch r.Headers {
	case HeadersDebezium:
		return []Header{{HeaderDebeziumID, e.EventID}, {HeaderDebeziumEventType, e.EventType}}
	case HeadersCloudEvents:
		return r.binding.headers(e)
	default:
		return postriderHeaders(e)
	}
}

func postriderHeaders(e *Event) []Header {
	headers := append(make([]Header, 0, 8+len(e.Headers)),
		Header{HeaderEventID, e.EventID},
		Header{HeaderIdempotencyKey, e.EventID},
		Header{HeaderEventType, e.EventType},
		Header{HeaderAggregateType, e.AggregateType},
		Header{HeaderAggregateID, e.AggregateID},
	)
	if e.ID != "" { // no outbox had it
		headers = append(headers, Header{HeaderOutboxID, e.ID})
	}
	if e.AggregateVersion != nil {
		headers = append(headers, Header{HeaderAggregateVersion, strconv.FormatInt(*e.AggregateVersion, 10)})
	}
	return append(headers, Header{HeaderContentType, e.ContentType})
}

func ownHeaderNames(e *Event) []string {
	if len(e.Headers) == 0 {
		return nil
	}
	names := make([]string, 0, len(e.Headers))
	for _, name := range traceHeaders {
		if _, ok := e.Headers[name]; ok {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		if !slices.Contains(traceHeaders, name) {
			names = append(names, name)
		}
	}
	return names
}

func hasHeader(headers []Header, name string) bool {
	return slices.ContainsFunc(headers, func(h Header) bool { return strings.EqualFold(h.Name, name) })
}
