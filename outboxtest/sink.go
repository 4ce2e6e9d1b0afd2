package outboxtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/postrider/postrider/relay"
)

// Sink returns a sink that publishes to b. Coordinates are such as memory:orders/2@17: topic, partition, offset.
func (b *Broker) Sink() relay.Sink { return &sink{broker: b} }

type sink struct {
	broker *Broker
	closed bool // guarded by the broker's mutex
}

func (s *sink) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	outcomes := make([]relay.Outcome, len(batch))
	stopped := make(map[string]bool) // by key
	for i, m := range batch {
		if stopped[m.Key] {
			outcomes[i] = relay.Skipped()
			continue
		}
		outcomes[i] = s.publish(ctx, m)
		stopped[m.Key] = outcomes[i].Class != relay.ClassPublished
	}
	return outcomes
}

func (s *sink) publish(ctx context.Context, m relay.Message) relay.Outcome {
	b := s.broker
	switch {
	case s.closed:
		return relay.Unavailable(errors.New("the sink is closed"))
	case ctx.Err() != nil:
		return relay.Unavailable(ctx.Err())
	case b.broken != nil:
		return relay.Unavailable(b.broken)
	case len(b.fail) > 0:
		outcome := b.fail[0]
		b.fail = b.fail[1:]
		return outcome
	}
	if size := sizeOf(m); b.cfg.MaxMessage > 0 && size > b.cfg.MaxMessage {
		return relay.Permanent(fmt.Errorf("the message has %d bytes: the broker takes at most %d", size, b.cfg.MaxMessage))
	}
	t := b.topic(m.Topic)
	if t == nil {
		return relay.Retry(fmt.Errorf("there is no topic %q", m.Topic))
	}
	coordinates := b.store(t, m)
	if b.confirms > 0 {
		b.confirms--
		return relay.Unavailable(errors.New("the broker's confirmation was lost"))
	}
	return relay.Published(coordinates)
}

func sizeOf(m relay.Message) int {
	n := len(m.Key) + len(m.Payload)
	for _, h := range m.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return n
}

func (s *sink) Close() error {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	s.closed = true
	return nil
}
