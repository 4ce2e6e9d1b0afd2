// Package demo shows Postrider at work with everything inside one process: an application that takes orders, its
// outbox in a SQLite file, the relay, a JetStream server, and a consumer with an inbox. In the end it holds what was
// committed against what was published and applied.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/daemon"
)

// Options says what the demo does.
type Options struct {
	Dir     string       // where its files stay; empty for a temporary folder that is removed in the end
	Events  int          // commit so many events at once; 0 for a gentle load until ctx ends
	Exit    bool         // end after Events instead of when ctx ends
	Listen  string       // address of the admin server; when it is taken, another port is used
	Version string       // of Postrider
	Out     io.Writer    // tells people what is going on
	Logger  *slog.Logger // of the relay
}

const (
	gentlePause   = 200 * time.Millisecond // between two changes when no number of events is asked for
	progressPause = 50 * time.Millisecond
	patience      = 30 * time.Second // without progress
)

// Run runs the demo and returns its ledger. Nothing of it is left running, and nothing on disk but Options.Dir. When
// ctx ends before the events asked for are through, the error is ctx's.
func Run(ctx context.Context, o Options) (Ledger, error) {
	dir, remove, err := o.directory()
	if err != nil {
		return Ledger{}, err
	}
	defer remove()
	s, err := build(ctx, dir)
	if err != nil {
		return Ledger{}, err
	}
	defer s.close()
	listener, err := listen(ctx, o.Listen)
	if err != nil {
		return Ledger{}, err
	}
	o.introduce(s, listener.Addr())
	return o.play(ctx, s, listener)
}

func (o *Options) directory() (dir string, remove func(), err error) {
	if o.Dir == "" {
		dir, err = os.MkdirTemp("", "postrider-demo-")
		return dir, func() {
			if err := os.RemoveAll(dir); err != nil {
				o.Logger.Warn("the demo's folder could not be removed", "error", err)
			}
		}, err
	}
	if dir, err = filepath.Abs(o.Dir); err != nil {
		return "", nil, err
	}
	return dir, func() {}, os.MkdirAll(dir, 0o750)
}

// listen takes a free port where the address has one that is taken.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var tcp net.ListenConfig
	listener, err := tcp.Listen(ctx, "tcp", address)
	if err == nil {
		return listener, nil
	}
	host, _, splitErr := net.SplitHostPort(address)
	if splitErr != nil {
		return nil, err
	}
	return tcp.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
}

func (o *Options) introduce(s *stage, admin net.Addr) {
	fmt.Fprintf(o.Out, `An application takes orders and adds an event to its outbox in every transaction.
The relay publishes the events to JetStream, and a consumer applies each of them once.

  status page   http://%[1]s/
  metrics       http://%[1]s/metrics
  database      %[2]s
  JetStream     %[3]s, stream %[4]s

From another terminal, try:

  postrider status -c %[5]s
  postrider events list -c %[5]s --limit 5
  postrider trace 1 -c %[5]s
  postrider run -c %[5]s      (a second relay, which takes half of the shards)

`, admin, s.databaseFile(), s.server.URL(), streamName, s.configFile())
	if !o.Exit {
		fmt.Fprintln(o.Out, "Ctrl-C ends the demo and prints its ledger.")
	}
}

// play runs the relay and the consumer under the load, waits until all is applied, and stops in order.
func (o *Options) play(ctx context.Context, s *stage, listener net.Listener) (Ledger, error) {
	stopConsumer, err := s.consumer(o.Logger).start(ctx, s.stream)
	if err != nil {
		return Ledger{}, errors.Join(err, listener.Close())
	}
	defer stopConsumer()
	relay := startRelay(func(ctx context.Context) error {
		return daemon.Run(ctx, s.config, daemon.Options{
			Version: o.Version, Stdout: io.Discard, Logger: o.Logger, Listener: listener,
		})
	})
	start := time.Now()
	err = o.load(ctx, s)
	if err == nil {
		err = s.awaitApplied(o.interruptible(ctx), relay)
	}
	took := time.Since(start)
	if err == nil && o.Events > 0 && !o.Exit {
		fmt.Fprintf(o.Out, "All %d events are applied.\n", o.Events)
		<-ctx.Done()
	}
	if err := errors.Join(err, relay.stop()); err != nil {
		return Ledger{}, err
	}
	ledger, err := audit(context.WithoutCancel(ctx), s.outbox.DB, s.stream)
	ledger.Seconds = took.Seconds()
	return ledger, err
}

// interruptible is ctx, unless its end is what the demo has worked for.
func (o *Options) interruptible(ctx context.Context) context.Context {
	if o.Events == 0 {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// load makes the application work. What it has begun it brings to an end.
func (o *Options) load(ctx context.Context, s *stage) error {
	app, err := s.application()
	if err != nil {
		return err
	}
	pause := gentlePause
	if o.Events > 0 {
		pause = 0
	}
	for n := 0; o.Events == 0 || n < o.Events; n++ {
		if err := app.work(context.WithoutCancel(ctx), n); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return o.interruptible(ctx).Err()
		case <-time.After(pause):
		}
	}
	return nil
}

// relayRun is the relay in the background.
type relayRun struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once ended
}

func startRelay(run func(context.Context) error) *relayRun {
	ctx, cancel := context.WithCancel(context.Background())
	r := &relayRun{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = run(ctx)
	}()
	return r
}

func (r *relayRun) stop() error {
	r.cancel()
	<-r.ended
	return r.err
}
