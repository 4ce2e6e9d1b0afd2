package inbox

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Message is one message as a broker delivered it. Nobody may change its headers and payload.
type Message struct {
	// Topic is where it was read, in the form in which a sink of the same broker takes a topic: a topic of Kafka, a subject
	// of NATS, the key of a stream of Redis, and for RabbitMQ a slash and the name of a queue.
	Topic string

	// Partition and Offset are its place in the topic, as far as the broker tells one; else empty.
	Partition string
	Offset    string

	// Coordinates name it for people, in the form in which a sink of the same broker reports them, such as
	// kafka:orders/3@1042. They are never empty.
	Coordinates string

	Key     string // ordering and partition key; empty where the message has none
	Headers []Header
	Payload []byte
	At      time.Time // when the broker stored it, by the clock of the broker or of the sender; zero where it does not tell
}

// Header is one header of a message. A name may stand more than once.
type Header struct{ Name, Value string }

// Header returns the value of the first header with the name, without regard to case, or "".
func (m Message) Header(name string) string {
	value, _ := m.lookup(name)
	return value
}

func (m Message) lookup(name string) (string, bool) {
	for _, h := range m.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value, true
		}
	}
	return "", false
}

// Names under which the styles of headers carry an attribute, in the order in which they are looked for: Postrider's own,
// CloudEvents over HTTP and NATS (percent-encoded), Kafka, and AMQP (both forms of the specification), Debezium's.
var (
	eventIDHeaders       = []string{"X-Event-Id", "X-Idempotency-Key", "ce-id", "ce_id", "cloudEvents:id", "cloudEvents_id", "id"}
	eventTypeHeaders     = []string{"X-Event-Type", "ce-type", "ce_type", "cloudEvents:type", "cloudEvents_type", "eventType"}
	aggregateIDHeaders   = []string{"X-Aggregate-Id", "ce-subject", "ce_subject", "cloudEvents:subject", "cloudEvents_subject"}
	percentEncodedPrefix = "ce-"
)

// EventID returns the event id that the message carries in whichever style of headers the relay writes, or "".
func (m Message) EventID() string { return m.firstOf(eventIDHeaders) }

// EventType returns the event type that the message carries in whichever style of headers the relay writes, or "".
func (m Message) EventType() string { return m.firstOf(eventTypeHeaders) }

// AggregateID returns the aggregate id that the message carries, or "". Debezium's style has none but the key.
func (m Message) AggregateID() string { return m.firstOf(aggregateIDHeaders) }

func (m Message) firstOf(names []string) string {
	for _, name := range names {
		value, ok := m.lookup(name)
		if !ok {
			continue
		}
		if strings.HasPrefix(name, percentEncodedPrefix) {
			if decoded, err := url.PathUnescape(value); err == nil {
				return decoded
			}
		}
		return value
	}
	return ""
}

// String names the message for logs and errors.
func (m Message) String() string {
	if id := m.EventID(); id != "" {
		return fmt.Sprintf("event %.80q at %s", id, m.Coordinates)
	}
	return "message at " + m.Coordinates
}
