package wiring

import (
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/rabbitmq"
	"github.com/postrider/postrider/relay"
)

// RelayConfig is what the configuration says about the relay of the outbox. The caller adds the sinks, hooks, logger and
// version.
func RelayConfig(c *config.Config, store relay.Store) relay.Config {
	cfg := settings(c, store)
	cfg.Routes = routes(c)
	return cfg
}

// settings is what all relays of a configuration have in common. Each has its share of what may be in flight, so that the memory
// of them all has the bound that is configured.
func settings(c *config.Config, store relay.Store) relay.Config {
	r := c.Relay
	relays := 1 + len(c.Destinations)
	inFlight := max(r.MaxInFlightEvents/relays, len(c.Sinks)+1) // one event for each sink, and one to hand over
	if relays == 1 {
		inFlight = r.MaxInFlightEvents
	}
	cfg := relay.Config{
		Store:            store,
		Name:             r.Name,
		Claim:            relay.Claim(r.Claim),
		VersionGap:       r.VersionGap,
		Shards:           r.Shards,
		Lease:            r.Lease,
		Batch:            min(r.Batch, inFlight),
		MaxInFlight:      inFlight,
		MaxInFlightBytes: max(r.MaxInFlightBytes/relays, 1),
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

// PlansOf tells where an event would go: to one sink, or to each of several. It opens no sink, and finds none when no route
// matches.
func PlansOf(c *config.Config, e relay.Event) ([]relay.Plan, error) {
	cfg := relay.Config{Routes: routes(c), Sinks: []relay.NamedSink{{Name: FanOut}}}
	for _, s := range c.Sinks {
		cfg.Sinks = append(cfg.Sinks, relay.NamedSink{Name: s.Name, Type: string(s.Type), Sink: unopened(s.Type)})
	}
	p, found, err := relay.PlanOf(cfg, e)
	if err != nil || !found {
		return nil, err
	}
	to := c.Routes[p.Route].To
	if to == nil {
		return []relay.Plan{p}, nil
	}
	var plans []relay.Plan
	for _, r := range to {
		cfg.Routes = []relay.Route{routeOf(r)}
		one, _, err := relay.PlanOf(cfg, e)
		if err != nil {
			return nil, err
		}
		one.Route = p.Route
		plans = append(plans, one)
	}
	return plans, nil
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

// routes are those of the outbox's own relay. It hands events over that go to several sinks.
func routes(c *config.Config) []relay.Route {
	list := make([]relay.Route, len(c.Routes))
	for i, r := range c.Routes {
		list[i] = routeOf(r)
		if r.To != nil {
			list[i].Sink, list[i].Topic, list[i].KeepTopic = FanOut, handOverTopic(c, r), true
		}
	}
	return list
}

func routeOf(r config.Route) relay.Route {
	retry := retryPolicy(r.Retry)
	return relay.Route{
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

func retryPolicy(r config.Retry) relay.RetryPolicy {
	p := relay.RetryPolicy{Schedule: r.Schedule, Jitter: r.Jitter}
	if b := r.Backoff; b != nil {
		p.Initial, p.Ceiling, p.Attempts = b.Initial, b.Max, b.Attempts
	}
	return p
}
