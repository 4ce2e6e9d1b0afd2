package rabbitmq

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/relay"
)

var errNack = errors.New("a queue refused it (nack): it is full and rejects what is published, or has failed")

// errorAbout names the topic that an error is about.
func errorAbout(t target, err error) error { return fmt.Errorf("rabbitmq topic %s: %w", t, err) }

// refused classifies why the bundle's channel was closed. Some reasons are about the target, and hold for all of its
// messages. Others are about one message, and the outcome is zero while it is not known which.
func (f *flight) refused(b *bundle, reason error) relay.Outcome {
	var refusal *amqp.Error
	if f.session.conn.IsClosed() || !errors.As(reason, &refusal) {
		return relay.Unavailable(errorAbout(b.target, reason))
	}
	switch {
	case refusal.Code == amqp.NotFound, refusal.Code == amqp.AccessRefused:
		return relay.Retry(errorAbout(b.target, refusal))
	case len(b.messages) > 1:
		return relay.Outcome{}
	case refusal.Code == amqp.PreconditionFailed:
		return relay.Permanent(errorAbout(b.target, refusal))
	default:
		return relay.Retry(errorAbout(b.target, refusal))
	}
}

// unroutable treats a message that reached no queue.
func (f *flight) unroutable(t target, reason string) relay.Outcome {
	err := errorAbout(t, fmt.Errorf("%s: no queue is bound for this routing key", reason))
	if f.config.unroutable(t.exchange) == UnroutableDead {
		return relay.Permanent(err)
	}
	return relay.Retry(err)
}
