package consumer

import (
	"context"

	"github.com/postrider/postrider/inbox"
)

// Source is where a Consumer gets its messages: the subscription of one consumer group at one broker. Package consumertest
// holds the conformance suite.
//
// A delivery that was fetched is kept from being delivered elsewhere, for as long as the source lives, until it is finished
// or returned: heartbeats and extensions are the source's own work and need no call. All methods may be called
// concurrently, but Close, which comes last.
type Source interface {
	// Fetch waits until there are messages, and returns between one and limit of them, each lane's in its order. It
	// returns the error of ctx when that ends first, and any other error when the broker cannot be reached or refuses us; then
	// it may be called again, and goes on where it was once the broker answers.
	Fetch(ctx context.Context, limit int) ([]*Delivery, error)

	// Finish says that nothing is left to do for these deliveries: they are applied, or durably stored elsewhere. It does not
	// block on the broker. The source acknowledges each as soon as the broker's rules allow: where a position is kept, only
	// once everything before it in the lane is finished.
	Finish(deliveries ...*Delivery)

	// Return gives deliveries back that were not finished, because the consumer stops or their lane is revoked: they are to be
	// delivered again, to this group. It does not block on the broker.
	Return(deliveries ...*Delivery)

	// Pause stops the lane from being fetched, until Resume; others go on, also when nothing of the lane is settled meanwhile. What
	// the lane had delivered stays as it is, and so does what the source has read of it and nobody fetched. It does not block on the
	// broker.
	Pause(lane string)
	Resume(lane string)

	// Flush waits until the broker has the acknowledgement of everything that was finished and may be acknowledged.
	Flush(ctx context.Context) error

	// Close leaves the group and releases the connections. What was fetched and not finished is delivered again, to others.
	Close() error
}

// Delivery is one message on loan from a Source.
type Delivery struct {
	Message inbox.Message

	// Lane names what can be held back, and taken away, as a whole: topic and partition at Kafka, else the queue or the
	// stream. Retry topics are lanes of their own, so that messages which wait there for their time do not take the room of others.
	Lane string

	// Revoked is closed when the lane is about to go to another member of the group: nothing more of it is to be begun, what
	// runs is to come to its end, and the rest to be returned. The source holds the lane back until each of its deliveries
	// was finished or returned, for as long as the broker allows. It is nil where no lane is ever revoked.
	Revoked <-chan struct{}

	// Deliveries counts how often the broker has delivered the message, this time included; 0 where it does not count.
	Deliveries int

	// Ref is the source's own.
	Ref any
}
