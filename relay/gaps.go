package relay

import (
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// gaps knows since when events wait for a version of their aggregate that is missing. It belongs to the reader. The
// events themselves wait in the store, like those that failed, and come back from time to time to be looked at again.
type gaps struct {
	bound time.Duration // how long an event waits; 0 means until the version has left
	since map[string]time.Time
}

const (
	// maxGaps bounds the memory. When it is reached, every wait counts from anew.
	maxGaps = 10_000

	gapFirstPause = time.Second
	gapMaxPause   = time.Minute
)

func newGaps(bound time.Duration) *gaps {
	return &gaps{bound: bound, since: make(map[string]time.Time)}
}

// holds says whether the event must wait, and whether this is the first time.
func (g *gaps) holds(e *Event, now time.Time) (held, first bool) {
	since, known := g.since[e.ID]
	switch {
	case e.After == nil:
		delete(g.since, e.ID)
		return false, false
	case known && g.bound > 0 && now.Sub(since) >= g.bound:
		delete(g.since, e.ID)
		return false, false
	case !known:
		if len(g.since) >= maxGaps {
			clear(g.since)
		}
		g.since[e.ID] = now
	}
	return true, !known
}

// settlement lets the event wait, without spending an attempt, for longer the longer it has waited.
func (g *gaps) settlement(f *flying, now time.Time) Settlement {
	waited := now.Sub(g.since[f.event.ID])
	return Settlement{
		ID: f.event.ID, Lease: f.lease, State: postrider.StatePending, Held: true,
		RetryCount: f.event.RetryCount, RetryAfter: max(gapFirstPause, min(waited/4, gapMaxPause)),
		Error: waitsForVersion(f.event.AggregateType, f.event.AggregateID, *f.event.After),
	}
}

// waitsForVersion is the reason that an event shows while its key is held for a missing aggregate version.
func waitsForVersion(aggregateType, aggregateID string, version int64) string {
	return fmt.Sprintf("waits for aggregate_version %d of %s %q, which has not left and does not wait in the outbox before this event",
		version, aggregateType, aggregateID)
}
