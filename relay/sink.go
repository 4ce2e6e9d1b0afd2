package relay

import (
	"context"
	"time"
)

// Sink is a destination. sinktest holds the conformance suite.
//
// Publish sends a batch and returns one outcome for each message, in the order of the batch. The messages of one
// key stand in outbox order and never occur in two Publish calls at the same time. For every key, the sink
// delivers in that order, and once a message of a key was not published, none of the key's later messages of
// the batch reaches the destination: they come back as Skipped.
//
// Published means durably acknowledged by the destination, never "handed over" or "no error seen". An outcome
// other than Published means that the message is not known to be at the destination. When ctx ends, Publish
// returns as soon as that can be told for each message; a sink whose client may still deliver a message later
// keeps waiting for it, because sending it again would duplicate it. Publish may be called concurrently.
//
// Close releases the connections. It is called once, after the last Publish has returned.
type Sink interface {
	Publish(ctx context.Context, batch []Message) []Outcome
	Close() error
}

// Message is one event as a sink sends it.
type Message struct {
	EventID string // the broker's own deduplication id, where one exists
	Key     string // ordering and partition key
	Topic   string // topic, subject, stream or exchange
	Headers []Header
	Payload []byte

	// Event is what the message was made of, for sinks that hand the event itself on. Sinks must not change it. It is nil in
	// messages that no relay made.
	Event *Event
}

// Header is one header of a message. Names are unique within a message, without regard to case.
type Header struct{ Name, Value string }

// Class says what an outcome means for the event.
type Class uint8

// The classes of outcomes.
const (
	ClassPublished   Class = iota + 1 // durably acknowledged
	ClassRetry                        // this event failed in a way that may pass; spends an attempt
	ClassPermanent                    // this event can never be sent: DEAD at once
	ClassUnavailable                  // the sink as a whole takes nothing; spends no attempt
	ClassSkipped                      // not sent, because an earlier event of its key was not published
)

// String returns the word used in logs and metrics.
func (c Class) String() string {
	switch c {
	case ClassPublished:
		return "published"
	case ClassRetry:
		return "retry"
	case ClassPermanent:
		return "permanent"
	case ClassUnavailable:
		return "unavailable"
	case ClassSkipped:
		return "skipped"
	default:
		return "unknown"
	}
}

// Outcome is what became of one message. The zero value is not a valid outcome; use the functions below.
type Outcome struct {
	Class       Class
	Coordinates string        // ClassPublished: where it is, such as "kafka:orders/3@1042"
	After       time.Duration // ClassRetry: try again no sooner than this; 0 leaves it to the retry policy
	Err         error         // ClassRetry, ClassPermanent, ClassUnavailable: the reason
}

// Published reports a durable acknowledgement. coordinates start with the sink type and a colon.
func Published(coordinates string) Outcome {
	return Outcome{Class: ClassPublished, Coordinates: coordinates}
}

// Retry reports a failure of this one event that may pass.
func Retry(err error) Outcome { return Outcome{Class: ClassRetry, Err: err} }

// Permanent reports that this one event can never be sent.
func Permanent(err error) Outcome { return Outcome{Class: ClassPermanent, Err: err} }

// Unavailable reports that the sink as a whole takes nothing: unreachable, or refusing our credentials.
func Unavailable(err error) Outcome { return Outcome{Class: ClassUnavailable, Err: err} }

// Skipped reports that the message was not sent because an earlier one of its key was not published.
func Skipped() Outcome { return Outcome{Class: ClassSkipped} }
