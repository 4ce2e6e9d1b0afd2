package relay

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Names of the headers that every message carries (design.md, "What consumers see").
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

// newMessage makes the message that a sink sends for an event.
func newMessage(e *Event, topic string) Message {
	return Message{EventID: e.EventID, Key: e.AggregateID, Topic: topic, Headers: headersOf(e), Payload: e.Payload}
}

// headersOf gives the relay's own headers first; a header of the event never overrides one of them.
func headersOf(e *Event) []Header {
	headers := make([]Header, 0, 8+len(e.Headers))
	headers = append(headers,
		Header{HeaderEventID, e.EventID},
		Header{HeaderIdempotencyKey, e.EventID},
		Header{HeaderEventType, e.EventType},
		Header{HeaderAggregateType, e.AggregateType},
		Header{HeaderAggregateID, e.AggregateID},
		Header{HeaderOutboxID, e.ID},
	)
	if e.AggregateVersion != nil {
		headers = append(headers, Header{HeaderAggregateVersion, strconv.FormatInt(*e.AggregateVersion, 10)})
	}
	headers = append(headers, Header{HeaderContentType, e.ContentType})
	if len(e.Headers) == 0 {
		return headers
	}
	for _, name := range ownHeaderNames(e) {
		if !hasHeader(headers, name) {
			headers = append(headers, Header{name, e.Headers[name]})
		}
	}
	return headers
}

func ownHeaderNames(e *Event) []string {
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
