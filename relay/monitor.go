package relay

import (
	"context"
	"time"
)

const (
	measureEvery   = 10 * time.Second
	measureTimeout = 10 * time.Second
)

// measureBacklog keeps the backlog's figures fresh until ctx ends.
func (e *engine) measureBacklog(ctx context.Context) {
	for {
		b, err := e.measure(ctx)
		if ctx.Err() != nil {
			return
		}
		e.health.note(loopMeasure, err)
		if err == nil {
			e.health.measure(b.OldestPending)
			e.cfg.Hooks.measured(b)
		}
		if !sleep(ctx, measureEvery) {
			return
		}
	}
}

func (e *engine) measure(ctx context.Context) (Backlog, error) {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	return e.cfg.Store.Backlog(ctx)
}
