package wiring

import (
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/rabbitmq"
	"github.com/postrider/postrider/relay"
)

// RelayConfig is what the configuration says about the relay. The caller adds the sinks, hooks, logger and version.
func RelayConfig(c *config.Config, store relay.Store) relay.Config {
	r := c.Relay
	cfg := relay.Config{
		Store:            store,
		Name:             r.Name,
		Routes:           routes(c),
		Claim:            relay.Claim(r.Claim),
		VersionGap:       r.VersionGap,
		Shards:           r.Shards,
		Lease:            r.Lease,
		Batch:            r.Batch,
		MaxInFlight:      r.MaxInFlightEvents,
		MaxInFlightBytes: r.MaxInFlightBytes,
		PollMin:          r.Poll.Min,
		PollMax:          r.Poll.Max,
		Retry:            retryPolicy(r.Retry),
		OnDead:           relay.OnDead(r.OnDead),
		PublishTimeout:   r.PublishTimeout,
		Grace:            r.Grace,
		CleanEvery:       r.Cleanup.Interval,
		CleanChunk:       r.Cleanup.Chunk,
	}
	if r.OnPublished == config.KeepPublished {
		cfg.Retention = r.Retention
	}
	return cfg
}

// PlanOf tells where an event would go. It opens no sink; found is false when no route matches.
func PlanOf(c *config.Config, e relay.Event) (p relay.Plan, found bool, err error) {
	cfg := relay.Config{Routes: routes(c)}
	for _, s := range c.Sinks {
		cfg.Sinks = append(cfg.Sinks, relay.NamedSink{Name: s.Name, Type: string(s.Type), Sink: unopened(s.Type)})
	}
	return relay.PlanOf(cfg, e)
}

// unopened is a sink of the type that can only tell how it writes the headers of a message.
func unopened(t config.SinkType) relay.Sink {
	switch t {
	case config.SinkKafka:
		return (*kafka.Sink)(nil)
	case config.SinkRabbitMQ:
		return (*rabbitmq.Sink)(nil)
	default:
		return nil
	}
}

func routes(c *config.Config) []relay.Route {
	list := make([]relay.Route, len(c.Routes))
	for i, r := range c.Routes {
		retry := retryPolicy(r.Retry)
		list[i] = relay.Route{
			AggregateType: r.AggregateType,
			EventType:     r.EventType,
			Sink:          r.Sink,
			Topic:         r.Topic,
			Key:           r.Key,
			SetHeaders:    r.SetHeaders,
			Headers:       relay.HeaderStyle(r.Headers),
			Retry:         &retry,
			OnDead:        relay.OnDead(r.OnDead),
		}
	}
	return list
}

func retryPolicy(r config.Retry) relay.RetryPolicy {
	p := relay.RetryPolicy{Schedule: r.Schedule, Jitter: r.Jitter}
	if b := r.Backoff; b != nil {
		p.Initial, p.Ceiling, p.Attempts = b.Initial, b.Max, b.Attempts
	}
	return p
}
