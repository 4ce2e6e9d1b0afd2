package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

const (
	patience   = 3 * time.Second  // for a connection, and for questions to the server
	ackTimeout = 10 * time.Second // for a round of messages
	maxPending = 4096             // messages of all calls that wait for their acknowledgement

	// forgetAfter is when a message that is never answered, because the login may not send it, no longer counts as one
	// that waits.
	forgetAfter = ackTimeout + time.Second
)

// Sink publishes to JetStream. It implements relay.Sink.
type Sink struct {
	stream     string
	conn       *nats.Conn
	js         jetstream.JetStream
	complaints *complaints
}

var _ relay.Sink = (*Sink)(nil)

// Open checks the configuration and starts to connect in the background. A server that is not reachable or refuses
// the login shows as unavailable when something is published, and with Check. The error reports every mistake of the
// configuration.
func Open(c Config) (*Sink, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("nats sink: %w", err)
	}
	s := &Sink{stream: c.Stream, complaints: newComplaints()}
	options := append(c.options(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.complaints.hear(err) }))
	if s.conn, err = nats.Connect(c.url(), options...); err != nil {
		return nil, fmt.Errorf("nats sink: %w", err)
	}
	if s.js, err = jetstream.New(s.conn, jetstream.WithPublishAsyncMaxPending(maxPending), jetstream.WithPublishAsyncTimeout(forgetAfter)); err != nil {
		s.conn.Close()
		return nil, fmt.Errorf("nats sink: %w", err)
	}
	return s, nil
}

// Publish sends the batch in rounds: one message of each key, all at once, and the next ones after the acknowledgements.
// See relay.Sink and the package comment.
func (s *Sink) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	b := keyorder.New(batch)
	if err := connected(ctx, s.conn); err != nil {
		b.SettleRest(relay.Unavailable(err))
	}
	for messages := b.Round(); len(messages) > 0; messages = b.Round() {
		if err := s.publishRound(ctx, batch, b, messages); err != nil {
			b.SettleRest(relay.Unavailable(err))
		}
	}
	return b.Outcomes()
}

// fits refuses a message that is larger than the server takes.
func (s *Sink) fits(m *nats.Msg) error {
	size := m.Size() - len(m.Subject)
	if limit := s.conn.MaxPayload(); limit > 0 && int64(size) > limit {
		return fmt.Errorf("message of %d bytes with its headers is over the server's max_payload of %d", size, limit)
	}
	return nil
}

// connected waits for the connection.
func connected(ctx context.Context, conn *nats.Conn) error {
	changed := conn.StatusChanged(nats.CONNECTED)
	defer conn.RemoveStatusListener(changed)
	if conn.IsConnected() {
		return nil
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
	case <-timeout.C:
	}
	if err := conn.LastError(); err != nil {
		return fmt.Errorf("nats: no connection: %w", err)
	}
	return errors.New("nats: no connection")
}

// Close ends the connection. It is called once, after the last Publish has returned.
func (s *Sink) Close() error {
	s.conn.Close()
	return nil
}
