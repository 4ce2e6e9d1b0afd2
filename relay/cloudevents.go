package relay

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// CloudEventsBinding says how a destination carries the attributes of a CloudEvent as headers.
type CloudEventsBinding struct {
	Prefix        string // stands before the name of an attribute
	PercentEncode bool   // values are percent-encoded, so that they are ASCII
}

// CloudEventsSink is a Sink whose destination has a protocol binding of its own. Every other sink gets that of HTTP, which
// NATS shares.
type CloudEventsSink interface {
	Sink
	CloudEvents() CloudEventsBinding
}

var httpBinding = CloudEventsBinding{Prefix: "ce-", PercentEncode: true}

func bindingOf(s Sink) CloudEventsBinding {
	if s, ok := s.(CloudEventsSink); ok {
		return s.CloudEvents()
	}
	return httpBinding
}

// headers gives the attributes of an event in binary mode, as CloudEvents 1.0 has it: the message's payload is the data.
func (b CloudEventsBinding) headers(e *Event) []Header {
	headers := make([]Header, 0, 9+len(e.Headers))
	add := func(attribute, value string) {
		if value == "" {
			return // an attribute that is there must not be empty
		}
		if b.PercentEncode {
			value = percentEncode(value)
		}
		headers = append(headers, Header{b.Prefix + attribute, value})
	}
	add("specversion", "1.0")
	add("id", e.EventID)
	add("source", "/"+url.PathEscape(e.AggregateType))
	add("type", e.EventType)
	add("subject", e.AggregateID)
	add("partitionkey", e.Key())
	if e.AggregateVersion != nil {
		add("aggregateversion", strconv.FormatInt(*e.AggregateVersion, 10))
	}
	return append(headers, Header{HeaderContentType, e.ContentType})
}

// percentEncode writes what section 3.1.3.2 of the HTTP binding names: blanks, the double quote, the percent sign and
// everything but printable ASCII.
func percentEncode(value string) string {
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c > '~' || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
