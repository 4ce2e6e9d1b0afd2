package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/inbox"
)

const (
	consumerName   = "fulfilment"
	applyTimeout   = 10 * time.Second
	redeliverAfter = time.Second
)

// consumer applies each event of the stream once: the effect and the receipt of an event are one transaction.
type consumer struct {
	db    *sql.DB
	inbox *inbox.Inbox
	log   *slog.Logger
}

// start consumes in the background until stop is called, which waits for the event that is being applied.
func (c *consumer) start(ctx context.Context, stream jetstream.Stream) (stop func(), err error) {
	durable, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy,
	})
	if err != nil {
		return nil, fmt.Errorf("create consumer %s: %w", consumerName, err)
	}
	consuming, err := durable.Consume(c.receive)
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	return func() {
		consuming.Stop()
		<-consuming.Closed()
	}, nil
}

// receive acknowledges a message after it was applied, or found to have been applied before.
func (c *consumer) receive(m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), applyTimeout)
	defer cancel()
	if err := c.apply(ctx, received(m)); err != nil {
		c.log.Warn("an event was not applied and is delivered again", "error", errors.Join(err, m.NakWithDelay(redeliverAfter)))
		return
	}
	if err := m.Ack(); err != nil {
		c.log.Warn("an event was applied but not acknowledged; the inbox finds out when it comes again", "error", err)
	}
}

func (c *consumer) apply(ctx context.Context, m inbox.Message) error {
	_, err := c.inbox.Process(ctx, c.db, m, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO shipments (event_id, order_id, what) VALUES (?, ?, ?)`,
			m.EventID(), m.AggregateID(), m.EventType())
		return err
	})
	return err
}

// received is a message of JetStream as the inbox reads it.
func received(m jetstream.Msg) inbox.Message {
	message := inbox.Message{Topic: m.Subject(), Coordinates: "nats:" + m.Subject(), Payload: m.Data()}
	if place, err := m.Metadata(); err == nil { // there is none on what did not come from a stream
		message.Offset = strconv.FormatUint(place.Sequence.Stream, 10)
		message.Coordinates = "nats:" + place.Stream + "@" + message.Offset
	}
	for name, values := range m.Headers() {
		for _, value := range values {
			message.Headers = append(message.Headers, inbox.Header{Name: name, Value: value})
		}
	}
	return message
}

// header returns a header as it was sent: NATS keeps the case of names.
func header(headers natsgo.Header, name string) string {
	if values := headers[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}
