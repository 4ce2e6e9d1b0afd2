package relay

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// engine is one life of a relay: from its first lease until its orderly stop, or until one of its loops panics.
// Nothing of it outlives that, so a panic leaves no event behind that no loop looks after.
type engine struct {
	*Relay
	member      Member
	leases      *leases
	router      *router
	flight      *flight
	settleQueue *settleQueue
	room        chan struct{}   // has a token when something was settled
	suspicion   chan struct{}   // has a token when a renewal should come at once
	work        context.Context // ends when the grace period is over; publishing runs under it
	sending     atomic.Int64    // Publish calls under way
	panics      chan error
}

// panicError is what a loop's panic becomes.
type panicError struct {
	loop  string
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("%s loop panicked: %v\n%s", e.loop, e.value, e.stack)
}

func newEngine(work context.Context, r *Relay) *engine {
	return &engine{
		Relay: r,
		member: Member{
			Name: r.cfg.Name, ID: rand.Text(), Host: r.cfg.Host, Version: r.cfg.Version,
			Claim: r.cfg.Claim, Shards: r.cfg.Shards, LeaseTTL: r.cfg.Lease,
		},
		leases:      newLeases(r.cfg.Lease),
		router:      newRouter(r.routes),
		flight:      newFlight(r.cfg.Claim, len(r.cfg.Sinks)),
		settleQueue: newSettleQueue(),
		room:        make(chan struct{}, 1),
		suspicion:   make(chan struct{}, 1),
		work:        work,
		panics:      make(chan error, 1),
	}
}

// loops runs functions until their context ends.
type loops struct {
	engine *engine
	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

func (e *engine) newLoops() *loops {
	ctx, cancel := context.WithCancel(context.Background())
	return &loops{engine: e, ctx: ctx, cancel: cancel}
}

// run starts one loop. Its panic ends the engine.
func (l *loops) run(name string, loop func(context.Context)) {
	l.wait.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				select {
				case l.engine.panics <- &panicError{name, p, debug.Stack()}:
				default: // another one has ended the engine
				}
			}
		}()
		loop(l.ctx)
	})
}

// stop ends the loops, and waits for them up to the limit.
func (l *loops) stop(limit time.Duration) {
	l.cancel()
	ended := make(chan struct{})
	go func() {
		l.wait.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(limit):
	}
}

// run works until ctx ends and then stops in order: reading ends, what is being sent comes to its end within the
// grace period, outcomes are settled, the leases are released. endWork ends e.work.
func (e *engine) run(ctx context.Context, endWork context.CancelFunc) error {
	keeping, settling, intake := e.newLoops(), e.newLoops(), e.newLoops()
	defer func() {
		for _, l := range []*loops{keeping, settling, intake} {
			l.cancel()
		}
	}()
	keeping.run(loopLease, e.keepLeases)
	settling.run(loopSettle, e.settleEvents)
	intake.run(loopRead, e.readEvents)
	intake.run(loopClean, e.cleanEvents)
	intake.run(loopMeasure, e.measureBacklog)
	intake.run(loopJobs, e.stepJobs)
	for _, d := range e.sinks {
		for range d.Concurrency {
			intake.run("publish "+d.Name, func(ctx context.Context) { e.publishEvents(ctx, d) })
		}
	}
	select {
	case err := <-e.panics:
		return err
	case <-ctx.Done():
	}
	e.log.Info("stopping: what is being sent comes to its end", "in_flight", e.flight.count(), "grace", e.cfg.Grace)
	intake.cancel()
	drained := e.drain()
	endWork()
	intake.stop(stopTimeout)
	drained = drained || e.drain()
	settling.stop(settleTimeout)
	keeping.stop(stopTimeout)
	e.leave()
	if !drained {
		return fmt.Errorf("stopped with %d events in flight after the grace period of %v: they are not settled and may be sent twice", e.flight.count(), e.cfg.Grace)
	}
	return nil
}

const (
	stopTimeout = 5 * time.Second
	drainPoll   = 5 * time.Millisecond
)

// drain drops what is only read and waits until what was sent is settled. It gives up when the grace period is
// over; called again, it waits for stopTimeout.
func (e *engine) drain() bool {
	limit := e.cfg.Grace
	if e.work.Err() != nil {
		limit = stopTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		e.flight.dropLeases(func(Lease) bool { return true })
		if e.flight.count() == 0 {
			return true
		}
		if !sleep(ctx, drainPoll) {
			return false
		}
	}
}

// roomChanged tells the reader that something was settled.
func (e *engine) roomChanged() {
	select {
	case e.room <- struct{}{}:
	default:
	}
}

// sleep waits for d and reports false when ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
