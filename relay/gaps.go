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
	waits map[string]wait
}

type wait struct {
	since time.Time
	over  bool // the event goes on without the version, also when it comes again
}

const (
	// maxGaps bounds the memory. When it is reached, every wait counts from anew.
	maxGaps = 10_000

	gapFirstPause = time.Second
	gapMaxPause   = time.Minute
)

func newGaps(bound time.Duration) *gaps {
	return &gaps{bound: bound, waits: make(map[string]wait)}
}

// gapFinding is what a look at an event tells of the version before it.
type gapFinding uint8

const (
	gapNone   gapFinding = iota // the event may leave
	gapFound                    // it waits from now on
	gapStill                    // it goes on waiting
	gapPassed                   // it has waited long enough, and leaves without the version from now on
)

func (g *gaps) look(e *Event, now time.Time) gapFinding {
	w, known := g.waits[e.ID]
	switch {
	case e.After == nil:
		delete(g.waits, e.ID)
		return gapNone
	case w.over:
		return gapNone
	case known && g.bound > 0 && now.Sub(w.since) >= g.bound:
		g.waits[e.ID] = wait{w.since, true}
		return gapPassed
	case known:
		return gapStill
	}
	if len(g.waits) >= maxGaps {
		clear(g.waits)
	}
	g.waits[e.ID] = wait{since: now}
	return gapFound
}

// settlement lets the event wait, without spending an attempt, for longer the longer it has waited.
func (g *gaps) settlement(f *flying, now time.Time) Settlement {
	waited := now.Sub(g.waits[f.event.ID].since)
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
