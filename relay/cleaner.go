package relay

import (
	"context"
	"time"
)

const cleanTimeout = 30 * time.Second

// cleanEvents deletes old published events until ctx ends, or without a retention what is left of events that are gone. Only
// the owner of shard 0 cleans, so there is one cleaner for each relay name.
func (e *engine) cleanEvents(ctx context.Context) {
	clean := e.cleanOnce
	if e.cfg.Retention == 0 {
		tidier, tidies := e.cfg.Store.(Tidier)
		if !tidies {
			return
		}
		clean = func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
			defer cancel()
			return tidier.Tidy(ctx)
		}
	}
	for sleep(ctx, e.cfg.CleanEvery) {
		if e.holdsShard(0) {
			e.health.note(loopClean, clean(ctx))
		}
	}
}

func (e *engine) holdsShard(shard int) bool {
	for _, l := range e.leases.readable(time.Now(), 0) {
		if l.Shard == shard {
			return true
		}
	}
	return false
}

// cleanOnce walks once over what is old enough, chunk by chunk.
func (e *engine) cleanOnce(ctx context.Context) error {
	req := CleanRequest{Retention: e.cfg.Retention, Limit: e.cfg.CleanChunk}
	for ctx.Err() == nil {
		res, err := e.cleanChunk(ctx, req)
		if err != nil {
			return err
		}
		if res.Deleted > 0 {
			e.cfg.Hooks.cleaned(res.Deleted)
		}
		if res.Done {
			return nil
		}
		req.After = res.Last
	}
	return nil
}

func (e *engine) cleanChunk(ctx context.Context, req CleanRequest) (CleanResult, error) {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	return e.cfg.Store.Clean(ctx, req)
}
