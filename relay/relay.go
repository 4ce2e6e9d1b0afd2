package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Relay moves the events of one outbox to their sinks. Make one with New; Run does the work.
type Relay struct {
	cfg     Config
	log     *slog.Logger
	routes  []*route
	sinks   []*destination
	health  *health
	hinted  chan struct{}
	engine  atomic.Pointer[engine]
	running atomic.Bool
}

// New checks the whole configuration and reports every mistake in it. It opens nothing.
func New(cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	routes, routeErr := cfg.resolveRoutes()
	if err := errors.Join(cfg.validate(), routeErr); err != nil {
		return nil, fmt.Errorf("relay configuration: %w", err)
	}
	r := &Relay{
		cfg:    cfg,
		log:    cfg.Logger.With("relay", cfg.Name),
		routes: routes,
		hinted: make(chan struct{}, 1),
	}
	r.health = newHealth(r.loopFailed)
	for i, s := range cfg.Sinks {
		d := &destination{NamedSink: s, index: i}
		d.circuit = newCircuit(time.Now(), func(state string) { r.circuitChanged(d, state) })
		r.sinks = append(r.sinks, d)
	}
	return r, nil
}

// Run is New followed by Relay.Run, for programs that need no handle on the relay.
func Run(ctx context.Context, cfg Config) error {
	r, err := New(cfg)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// Run publishes events until ctx ends, then stops in order and returns nil; it returns an error when events were
// still in flight at the end of the grace period. It blocks. While the database or a sink cannot be reached it
// keeps trying; it returns early only for what waiting cannot mend: *ShardCountError, *NameConflictError,
// *ClaimConflictError and ErrSchema at its start. A Relay runs once at a time.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("the relay is running already")
	}
	defer r.running.Store(false)
	for failures := 1; ; failures++ {
		err := r.live(ctx)
		var crash *panicError
		if !errors.As(err, &crash) {
			return err
		}
		r.log.Error("the relay starts again after a panic; its leases lapse by themselves", "error", err)
		r.loopFailed(crash.loop, err)
		if !sleep(ctx, pause(failures, time.Second, time.Minute)) {
			return err
		}
	}
}

// live is one life of the relay.
func (r *Relay) live(ctx context.Context) error {
	work, endWork := context.WithCancel(context.Background())
	defer endWork()
	e := newEngine(work, r)
	r.engine.Store(e)
	if err := e.enter(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	r.log.Info("relay started", "id", e.member.ID, "shards", r.cfg.Shards, "lease", r.cfg.Lease)
	return e.run(ctx, endWork)
}

// enter does the first renewal. It keeps trying while the database cannot be reached.
func (e *engine) enter(ctx context.Context) error {
	for failures := 1; ; failures++ {
		_, err := e.renew(ctx)
		e.health.note(loopLease, err)
		var shards *ShardCountError
		var name *NameConflictError
		var claim *ClaimConflictError
		switch {
		case err == nil, ctx.Err() != nil:
			return nil //nolint:nilerr // a stop is no failure
		case errors.Is(err, ErrSchema), errors.As(err, &shards), errors.As(err, &name), errors.As(err, &claim):
			return err
		}
		if !sleep(ctx, pause(failures, loopFirstPause, loopMaxPause)) {
			return nil
		}
	}
}

// Hint tells the relay that events were committed, so that it reads at once instead of at its next poll. It never
// blocks and may be called from anywhere, before Run as well.
func (r *Relay) Hint() {
	select {
	case r.hinted <- struct{}{}:
	default:
	}
}

// Health describes the relay now.
func (r *Relay) Health() Health {
	h := Health{Relay: r.cfg.Name, Sinks: r.sinkStates(), Reasons: []string{}}
	e := r.engine.Load()
	if e == nil || !r.running.Load() {
		h.Reasons = append(h.Reasons, "the relay is not running")
		return h
	}
	h.ID, h.Shards, h.InFlight = e.member.ID, e.leases.count(), e.flight.count()
	h.OldestPendingSeconds = r.health.oldestPending(time.Now()).Seconds()
	h.Reasons = append(h.Reasons, r.health.reasons(time.Now(), h.InFlight)...)
	for i, s := range h.Sinks {
		if e.sinkShut(i) { // one without events has nothing to wait for, and nothing to be probed with
			h.Reasons = append(h.Reasons, fmt.Sprintf("sink %s is unavailable since %s: %s", s.Name, s.Since.Format(time.RFC3339), s.LastError))
		}
	}
	h.Ready = len(h.Reasons) == 0
	return h
}

func (r *Relay) sinkStates() []SinkState {
	states := make([]SinkState, len(r.sinks))
	for i, d := range r.sinks {
		state, since, lastErr := d.circuit.snapshot()
		states[i] = SinkState{Name: d.Name, Type: d.Type, Circuit: state, Since: since.UTC(), LastError: lastErr}
	}
	return states
}

func (r *Relay) circuitChanged(d *destination, state string) {
	r.log.Warn("circuit changed", "sink", d.Name, "circuit", state)
	r.cfg.Hooks.circuit(SinkState{Name: d.Name, Type: d.Type, Circuit: state, Since: time.Now().UTC()})
}

func (r *Relay) loopFailed(loop string, err error) {
	r.log.Warn("a loop of the relay failed and tries again", "loop", loop, "error", err)
	r.cfg.Hooks.failed(loop, err)
}
