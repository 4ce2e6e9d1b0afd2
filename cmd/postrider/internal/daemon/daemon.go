// Package daemon runs the relays of an outbox and its destinations, with their sinks, metrics and admin server.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"

	"github.com/postrider/postrider/cmd/postrider/internal/admin"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/metrics"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/relay"
)

// Options is what a configuration does not say. All fields but Listener must be set.
type Options struct {
	Version  string
	Stdout   io.Writer // where sinks of type stdout write
	Logger   *slog.Logger
	Listener net.Listener // of the admin server; nil for none. Run closes it
}

// daemon is one running relay process.
type daemon struct {
	Options
	config  *config.Config
	outbox  *wiring.Outbox
	sinks   *wiring.Sinks
	relays  relays
	metrics *metrics.Metrics
	waiting atomic.Value // string: why the relay has not started yet; empty once it has
}

// Run relays until ctx ends and then stops in order. It returns early with an error that tells what waiting cannot
// mend; see also relay.Relay.Run. The error is a *wiring.ConfigError when the configuration is to blame.
func Run(ctx context.Context, c *config.Config, o Options) (err error) {
	limitMemory(c.Relay.MaxInFlightBytes)
	d := &daemon{Options: o, config: c}
	d.waiting.Store("the relay starts")
	if o.Listener != nil {
		defer o.Listener.Close()
	}
	if d.outbox, err = wiring.OpenOutbox(c); err != nil {
		return err
	}
	defer d.outbox.Close()
	if d.sinks, err = wiring.OpenSinks(ctx, c.Sinks, o.Stdout, o.Logger); err != nil {
		return err
	}
	defer d.closeSinks()
	if err := d.makeRelays(); err != nil {
		return err
	}
	return d.run(ctx)
}

func (d *daemon) closeSinks() {
	if err := d.sinks.Close(); err != nil {
		d.Logger.Warn("a sink could not be closed", "error", err)
	}
}

// run relays, and serves until the relay has stopped. Neither goes on without the other.
func (d *daemon) run(ctx context.Context) error {
	relaying, stopRelay := context.WithCancel(ctx)
	defer stopRelay()
	serving, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	served := make(chan error, 1)
	go func() {
		defer stopRelay()
		served <- d.serve(serving)
	}()
	err := d.work(relaying)
	stopServing()
	if serveErr := <-served; serveErr != nil {
		err = errors.Join(err, fmt.Errorf("admin server: %w", serveErr))
	}
	return err
}

func (d *daemon) work(ctx context.Context) error {
	d.Logger.Info("postrider starts", "version", d.Version, "relay", d.config.Relay.Name, "outbox", d.outbox.Address)
	if err := d.awaitOutbox(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	checking, stop := context.WithCancel(ctx)
	defer stop()
	go d.warnOfSinks(checking)
	err := d.relays.run(ctx, lead(d.config.Relay.Grace))
	if err == nil {
		d.Logger.Info("stopped in order")
	}
	return err
}

func (d *daemon) serve(ctx context.Context) error {
	if d.Listener == nil {
		<-ctx.Done()
		return nil
	}
	d.Logger.Info("admin server listens", "url", "http://"+d.Listener.Addr().String()+"/")
	return admin.Serve(ctx, d.Listener, admin.Handler(admin.Config{
		Token:   d.config.Admin.Token.Reveal(),
		Relay:   d.config.Relay.Name,
		Version: d.Version,
		Health:  d.health,
		Hint:    d.relays.main.Hint,
		Metrics: d.metrics.Handler(),
		Store:   d.outbox,
		Jobs:    d.outbox.UnfinishedJobs,
		Logger:  d.Logger,
	}), d.Logger)
}

// health is the relays', with the reason why it has not started as long as it has not.
func (d *daemon) health() relay.Health {
	h := d.relays.health()
	if reason := d.waiting.Load().(string); reason != "" {
		h.Ready, h.Reasons = false, []string{reason}
	}
	return h
}
