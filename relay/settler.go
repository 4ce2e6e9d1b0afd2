package relay

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	settleTimeout  = 10 * time.Second
	maxSettleChunk = 2000
)

// settleQueue holds the events whose outcome is known and not yet written.
type settleQueue struct {
	mu     sync.Mutex
	events []*flying
	kick   chan struct{}
}

func newSettleQueue() *settleQueue {
	return &settleQueue{kick: make(chan struct{}, 1)}
}

func (q *settleQueue) add(events ...*flying) {
	if len(events) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events = append(q.events, events...)
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// take removes up to limit events, the oldest first.
func (q *settleQueue) take(limit int) []*flying {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(limit, len(q.events))
	chunk := append([]*flying(nil), q.events[:n]...)
	q.events = append(q.events[:0], q.events[n:]...)
	return chunk
}

// settleEvents writes outcomes back until ctx ends. An outcome is never given up while the process lives: a store
// that fails is asked again. Failing makes the chunks smaller, down to single events, and a failing chunk goes to
// the end of the queue, so that one event that cannot be written does not hold up the others.
func (e *engine) settleEvents(ctx context.Context) {
	chunk, failures := maxSettleChunk, 0
	for {
		events := e.settleQueue.take(chunk)
		if len(events) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-e.settleQueue.kick:
			}
			continue
		}
		unwritten, err := e.settle(ctx, events)
		e.health.note(loopSettle, err)
		if err == nil {
			chunk, failures = min(2*chunk, maxSettleChunk), 0
			continue
		}
		if len(unwritten) < len(events) {
			failures = 0 // some were written: it is single rows that cannot be
		} else {
			chunk = max(1, chunk/2)
		}
		failures++
		e.settleQueue.add(unwritten...)
		if !sleep(ctx, pause(failures, loopFirstPause, loopMaxPause)) {
			return
		}
	}
}

// settle writes the outcomes of events. With an error, unwritten holds those of which nothing is known yet.
func (e *engine) settle(ctx context.Context, events []*flying) (unwritten []*flying, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	settlements := make([]Settlement, len(events))
	for i, f := range events {
		settlements[i] = f.settlement
	}
	start := time.Now()
	ids, err := e.cfg.Store.Settle(ctx, e.member, settlements)
	written := make(map[string]bool, len(ids))
	for _, id := range ids {
		written[id] = true
	}
	if err != nil {
		unwritten = withoutWritten(events, written)
		events = slices.DeleteFunc(events, func(f *flying) bool { return !written[f.event.ID] })
	}
	e.fence(events, written)
	e.flight.settled(events, written)
	if len(events) > 0 {
		e.health.progressed()
		e.cfg.Hooks.settled(len(ids), len(events)-len(ids), time.Since(start))
		e.roomChanged()
	}
	return unwritten, err
}

func withoutWritten(events []*flying, written map[string]bool) []*flying {
	var unwritten []*flying
	for _, f := range events {
		if !written[f.event.ID] {
			unwritten = append(unwritten, f)
		}
	}
	return unwritten
}

// fence deals with outcomes that changed nothing, because another relay owns the events by now.
func (e *engine) fence(events []*flying, written map[string]bool) {
	const shown = 5
	var fenced []Lease
	var sample []string
	for _, f := range events {
		if written[f.event.ID] {
			continue
		}
		if fenced = append(fenced, f.lease); len(sample) < shown {
			sample = append(sample, f.event.EventID)
		}
	}
	if len(fenced) == 0 {
		return
	}
	if e.cfg.Claim == ClaimRow { // the claims of other events say nothing about one that was lost
		e.log.Warn("lost claims: outcomes were not written because the claims of their events ran out before",
			"events", len(fenced), "event_ids", sample)
		return
	}
	e.suspect(fenced)
	e.log.Warn("fenced: outcomes were not written because another relay owns their shards, or the events were settled before",
		"events", len(fenced), "event_ids", sample)
}
