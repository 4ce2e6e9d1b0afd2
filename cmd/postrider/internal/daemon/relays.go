package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/metrics"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// relays are the relay of the outbox and those of its destinations, in one process.
type relays struct {
	main         *relay.Relay
	destinations []destination
}

// destination is a relay with one sink, which gets its events from the outbox's own relay.
type destination struct {
	wiring.Destination
	relay *relay.Relay
}

func (d *daemon) makeRelays() error {
	sinks := d.mainSinks()
	if len(d.outbox.Destinations) > 0 {
		fanOut, err := d.outbox.OpenFanOut(d.hint)
		if err != nil {
			return err
		}
		sinks = append(sinks, fanOut)
	}
	d.makeMetrics(sinks)
	cfg := wiring.RelayConfig(d.config, d.outbox.ForRelay(d.config.Relay.Claim))
	cfg.Sinks = sinks
	cfg.Hooks = d.metrics.Hooks()
	made, err := d.makeRelay("relay", cfg)
	if err != nil {
		return err
	}
	d.relays.main = made
	for _, to := range d.outbox.Destinations {
		if made, err = d.makeDestination(to); err != nil {
			return err
		}
		d.relays.destinations = append(d.relays.destinations, destination{to, made})
	}
	return nil
}

// mainSinks are the sinks to which the outbox's own relay sends. One that gets its events only from an outbox of its own would
// hold a share of the places for nothing.
func (d *daemon) mainSinks() []relay.NamedSink {
	return slices.DeleteFunc(slices.Clone(d.sinks.Named), func(s relay.NamedSink) bool {
		return len(d.config.RoutesTo(s.Name)) > 0 && !d.config.IsDirect(s.Name)
	})
}

func (d *daemon) makeMetrics(mainSinks []relay.NamedSink) {
	var names, destinations []string
	for _, s := range mainSinks {
		names = append(names, s.Name)
	}
	for _, to := range d.outbox.Destinations {
		destinations = append(destinations, to.Sink)
		if !slices.Contains(names, to.Sink) {
			names = append(names, to.Sink)
		}
	}
	d.metrics = metrics.New(d.Version, names, destinations, d.health)
}

func (d *daemon) makeDestination(to wiring.Destination) (*relay.Relay, error) {
	cfg := to.RelayConfig(d.config)
	i := slices.IndexFunc(d.sinks.Named, func(s relay.NamedSink) bool { return s.Name == to.Sink })
	cfg.Sinks = d.sinks.Named[i : i+1]
	cfg.Hooks = d.metrics.HooksOf(to.Sink)
	cfg.Grace -= lead(cfg.Grace)
	cfg.Logger = d.Logger.With("destination", to.Sink)
	return d.makeRelay("routes", cfg)
}

func (d *daemon) makeRelay(path string, cfg relay.Config) (*relay.Relay, error) {
	cfg.Version = d.Version
	if cfg.Logger == nil {
		cfg.Logger = d.Logger
	}
	made, err := relay.New(cfg)
	if err != nil {
		return nil, &wiring.ConfigError{Path: path, Err: err}
	}
	return made, nil
}

// hint tells the relay of a destination that events were handed over to it.
func (d *daemon) hint(table string) {
	for _, to := range d.relays.destinations {
		if to.Table == table {
			to.relay.Hint()
		}
	}
}

// lead is by how much the relay of the outbox stops before those of the destinations at most, so that all have stopped within
// the grace period. It takes a moment, unless a sink of its own is slow.
func lead(grace time.Duration) time.Duration { return grace / 10 }

// run relays until ctx ends. Then it stops the relay that feeds the others, and these when it has stopped, or after lead. When
// one cannot go on, all stop.
func (r *relays) run(ctx context.Context, lead time.Duration) error {
	feeding, stopFeeding := context.WithCancel(ctx)
	defer stopFeeding()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	context.AfterFunc(feeding, func() { time.AfterFunc(lead, stopServing) })

	errs := make([]error, 1+len(r.destinations))
	var running sync.WaitGroup
	for i, d := range r.destinations {
		running.Go(func() {
			defer stopFeeding()
			if err := d.relay.Run(serving); err != nil {
				errs[1+i] = fmt.Errorf("destination %s: %w", d.Sink, err)
			}
		})
	}
	errs[0] = r.main.Run(feeding)
	stopFeeding()
	stopServing()
	running.Wait()
	return errors.Join(errs...)
}

// health is that of all relays together. Each must be ready.
func (r *relays) health() relay.Health {
	h := r.main.Health()
	sinks := [][]relay.SinkState{h.Sinks}
	for _, d := range r.destinations {
		its := d.relay.Health()
		h.Ready = h.Ready && its.Ready
		for _, reason := range its.Reasons {
			h.Reasons = append(h.Reasons, "destination "+d.Sink+": "+reason)
		}
		h.Shards += its.Shards
		h.InFlight += its.InFlight
		h.OldestPendingSeconds = max(h.OldestPendingSeconds, its.OldestPendingSeconds)
		sinks = append(sinks, its.Sinks)
	}
	if len(r.destinations) > 0 {
		h.Sinks = operator.WorstSinks(sinks)
	}
	return h
}
