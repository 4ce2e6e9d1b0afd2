package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/relay"
)

// maxLanes is how many calls of Publish send at the same time. A wave that a broker keeps waiting holds only its lane.
const maxLanes = 4

// Sink publishes to a Kafka cluster. It implements relay.Sink.
type Sink struct {
	config Config
	extra  []kgo.Opt
	client *kgo.Client // for questions; lanes send
	topics *topics

	free chan struct{} // one token for each lane that is not in use
	mu   sync.Mutex
	idle []*lane // lanes that were used and wait for the next use
}

var (
	_ relay.Sink            = (*Sink)(nil)
	_ relay.CloudEventsSink = (*Sink)(nil)
)

// Open checks the configuration and prepares a sink. It does not connect: a cluster that is not reachable shows as
// unavailable when something is published, and with Check. The error reports every mistake of the configuration.
func Open(c Config) (*Sink, error) { return open(c) }

func open(c Config, extra ...kgo.Opt) (*Sink, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("kafka sink: %w", err)
	}
	client, err := kgo.NewClient(append(c.clientOptions(), extra...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka sink: %w", err)
	}
	s := &Sink{
		config: c,
		extra:  extra,
		client: client,
		topics: newTopics(client),
		free:   make(chan struct{}, maxLanes),
	}
	for range maxLanes {
		s.free <- struct{}{}
	}
	return s, nil
}

// CloudEvents says how CloudEvents' Kafka protocol binding names attributes.
func (s *Sink) CloudEvents() relay.CloudEventsBinding { return relay.CloudEventsBinding{Prefix: "ce_"} }

// Publish sends the batch and waits for the acknowledgement of all in-sync replicas. See relay.Sink and the package
// comment. It may take minutes when a broker stops answering after it may have taken a message.
func (s *Sink) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	names := make(map[string]bool)
	for _, m := range batch {
		names[m.Topic] = true
	}
	topics, err := s.topics.lookup(ctx, names)
	if err != nil {
		return unavailable(batch, fmt.Errorf("kafka: asking for topics: %w", err))
	}
	lane, err := s.takeLane(ctx)
	if err != nil {
		return unavailable(batch, err)
	}
	defer s.returnLane(lane)
	d := newDelivery(batch, topics, &s.config)
	for wave := d.nextWave(); len(wave) > 0; wave = d.nextWave() {
		err := lane.send(ctx, wave)
		if err == nil {
			err = d.settle(wave)
		}
		if err != nil {
			d.SettleRest(relay.Unavailable(err))
		}
		s.forgetFailed(wave)
	}
	return d.Outcomes()
}

// forgetFailed makes the next Publish ask again about topics that took nothing: they may have been deleted, or have
// other partitions now.
func (s *Sink) forgetFailed(wave []*flight) {
	for _, f := range wave {
		if err := f.err(); err != nil && !isRefusal(err) {
			s.topics.forget(f.partition.topic.name)
		}
	}
}

// takeLane waits for a lane that is not in use.
func (s *Sink) takeLane(ctx context.Context) (*lane, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	select {
	case <-s.free:
	case <-ctx.Done():
		return nil, fmt.Errorf("kafka: all %d connections wait for brokers to tell what became of earlier messages: %w", maxLanes, context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		l := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return l, nil
	}
	return &lane{config: &s.config, extra: s.extra}, nil
}

func (s *Sink) returnLane(l *lane) {
	s.mu.Lock()
	s.idle = append(s.idle, l)
	s.mu.Unlock()
	s.free <- struct{}{}
}

// Close ends the connections. It is called once, after the last Publish has returned.
func (s *Sink) Close() error {
	for _, lane := range s.idle {
		lane.close()
	}
	s.client.Close()
	return nil
}
