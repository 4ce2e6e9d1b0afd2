package rabbitmq

import (
	"context"
	"fmt"
	"time"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

const (
	maxCalls   = 8  // calls of Publish that send at the same time
	maxBundles = 32 // channels that a call uses at the same time
)

// Sink publishes to RabbitMQ. It implements relay.Sink.
type Sink struct {
	config Config
	calls  chan struct{} // one token for each call that is sending
	line   line
}

var (
	_ relay.Sink            = (*Sink)(nil)
	_ relay.CloudEventsSink = (*Sink)(nil)
)

// Open checks the configuration and prepares a sink. It does not connect: a server that is not reachable or refuses the
// login shows as unavailable when something is published, and with Check. The error reports every mistake of the
// configuration.
func Open(c Config) (*Sink, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rabbitmq sink: %w", err)
	}
	s := &Sink{config: c, calls: make(chan struct{}, maxCalls)}
	s.line.config = &s.config
	return s, nil
}

// CloudEvents says that headers carry the attributes of CloudEvents as in the binding for AMQP.
func (s *Sink) CloudEvents() relay.CloudEventsBinding {
	return relay.CloudEventsBinding{Prefix: prefixCloudEvents}
}

// Publish sends the batch in flights: at most one message of each key, and the next ones after the confirmations. It
// sends nothing any more once ctx has ended, but waits for what was sent, up to half a minute: sending that again would
// duplicate it. See relay.Sink and the package comment.
func (s *Sink) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	b := keyorder.New(batch)
	session, err := s.begin(ctx)
	if err != nil {
		b.SettleRest(relay.Unavailable(fmt.Errorf("rabbitmq: %w", err)))
		return b.Outcomes()
	}
	defer s.end()
	messages := s.encode(batch, session.conn.Config.FrameSize, b)
	suspects := make(map[int]bool)
	most := min(maxBundles, max(1, int(session.conn.Config.ChannelMax)/(2*maxCalls)))
	for round := b.Round(); len(round) > 0; round = b.Round() {
		err := context.Cause(ctx)
		if err == nil {
			err = newFlight(session, &s.config, round, messages, suspects, most).fly(messages, suspects, b)
		}
		if err != nil {
			b.SettleRest(relay.Unavailable(fmt.Errorf("rabbitmq: %w", err)))
		}
	}
	return b.Outcomes()
}

// encode settles the messages that RabbitMQ cannot carry.
func (s *Sink) encode(batch []relay.Message, frameMax int, b *keyorder.Batch) []message {
	messages := make([]message, len(batch))
	now := time.Now()
	for i, m := range batch {
		var err error
		if messages[i], err = encode(m, now); err == nil {
			err = messages[i].checkSize(s.config.MaxMessageBytes, frameMax)
		}
		if err != nil {
			b.Settle(i, relay.Permanent(fmt.Errorf("rabbitmq: %w", err)))
		}
	}
	return messages
}

// begin waits for its turn and for a connection that takes messages.
func (s *Sink) begin(ctx context.Context) (*session, error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case s.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timeout.C:
		return nil, fmt.Errorf("%d calls wait for the server to confirm earlier messages", maxCalls)
	}
	session, err := s.line.connect(ctx)
	if err == nil {
		err = session.state()
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return session, nil
}

func (s *Sink) end() { <-s.calls }

// Close ends the connection. It is called once, after the last Publish has returned.
func (s *Sink) Close() error {
	s.line.close()
	return nil
}
