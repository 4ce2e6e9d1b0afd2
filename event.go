package postrider

import "time"

// Limits of an event, in bytes. They are what every supported database and broker can carry.
const (
	// MaxField bounds each text of an event: types, key, topic, content type, dedup key and header names.
	MaxField = 255
	// MaxHeaders bounds the names and values of an event's headers together.
	MaxHeaders = 32 << 10
	// DefaultMaxPayload bounds payloads unless Config.MaxPayload says otherwise. With it a message fits, headers
	// included, into the 1 MiB that brokers take unless they are set up for more.
	DefaultMaxPayload = 960 << 10
)

// Event is one event to be added. AggregateType, AggregateID, Type and Payload must be set. Texts are valid UTF-8
// without control characters.
type Event struct {
	// ID identifies the event for every sink and consumer. Empty: Add makes a version 7 UUID. Otherwise a UUID in
	// the form of 36 characters; adding an id that the table has already fails.
	ID string

	// AggregateType and AggregateID name the thing that the event is about. AggregateID is the key: events of one
	// key are published in outbox order.
	AggregateType string
	AggregateID   string

	// Type says what happened. Together with AggregateType it decides the route.
	Type string

	// AggregateVersion counts the events of one aggregate, from 1. 0 means that it is not set.
	AggregateVersion int64

	// Topic overrides the topic of the route. Empty leaves it to the route.
	Topic string

	// Payload is published byte for byte. It is one JSON value, or anything, also nothing, when Config.Binary is set.
	Payload []byte

	// ContentType describes the payload. Empty means application/json; when Config.Binary is set it is required.
	ContentType string

	// Headers travel with the message. A name is a token as in HTTP, and differs from the others by more than case.
	// The names that the relay or a broker sets itself are refused: X-Event-Id, X-Idempotency-Key, X-Event-Type,
	// X-Aggregate-Type, X-Aggregate-Id, X-Outbox-Id, X-Aggregate-Version, Content-Type, Nats-Msg-Id, Webhook-Id.
	Headers map[string]string

	// DedupKey, when set, lets only one event with this key into the table: an event whose key is there already,
	// or comes earlier in the same Add, is dropped, which Added reports. The key is free again once the table
	// no longer holds the event.
	DedupKey string

	// At is the earliest time of publication by the database's clock, rounded up to milliseconds. Zero, and a time
	// that is past, mean at once. Later events of the key do not wait for it.
	At time.Time
}

// Added tells what became of one event.
type Added struct {
	EventID string // empty when the event was dropped
	Dropped bool   // an event with the same dedup key is in the table already; nothing was written
}
