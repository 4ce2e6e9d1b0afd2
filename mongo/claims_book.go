package mongo

import (
	"slices"
	"sync"
)

// claim is the right to settle one event.
type claim struct {
	id    any    // the document's _id
	event string // the id as the relay knows it
	token string
}

// claimBook knows the claims of one relay. It holds no more than what the relay has in flight, and what one read brings.
type claimBook struct {
	mu    sync.Mutex
	held  map[string]heldClaim // by event
	spare map[string]claim     // by event: claims that nobody looks after; they are given back and not renewed
	turns int                  // renewals that have begun
}

type heldClaim struct {
	claim
	settling bool // an outcome is being written
}

func newClaimBook() *claimBook {
	return &claimBook{held: make(map[string]heldClaim), spare: make(map[string]claim)}
}

// forget empties the book. What it held runs out.
func (b *claimBook) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.held)
	clear(b.spare)
}

// turn returns how many renewals have begun.
func (b *claimBook) turn() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.turns
}

// add enters claims that were made since the given turn. It reports whether a renewal has begun meanwhile, which did not
// know them.
func (b *claimBook) add(claims []claim, turn int) (missed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range claims {
		b.held[c.event] = heldClaim{claim: c}
	}
	return b.turns != turn
}

// doubt notes claims of which nothing is certain.
func (b *claimBook) doubt(claims []claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range claims {
		if b.held[c.event].token == c.token {
			delete(b.held, c.event)
		}
		b.spare[c.event] = c
	}
}

// surplus returns the claims that are to be given back: all but those of the events in flight.
func (b *claimBook) surplus(inFlight []string) (claims []claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	flying := make(map[string]bool, len(inFlight))
	for _, event := range inFlight {
		flying[event] = true
	}
	for event, h := range b.held {
		if !flying[event] {
			delete(b.held, event)
			b.spare[event] = h.claim
		}
	}
	for _, c := range b.spare {
		claims = append(claims, c)
	}
	return claims
}

// released notes claims that were given back.
func (b *claimBook) released(claims []claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range claims {
		if b.spare[c.event].token == c.token {
			delete(b.spare, c.event)
		}
	}
}

// renewable begins a renewal and returns the claims that it is to prolong.
func (b *claimBook) renewable() (claims []claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns++
	for _, h := range b.held {
		claims = append(claims, h.claim)
	}
	return claims
}

// lose removes the claims that a renewal did not find any more, and reports whether there were any. One that was settled
// meanwhile is none of them, nor is one of which that cannot be told yet.
func (b *claimBook) lose(renewed []claim, ours map[string]bool) (lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range renewed {
		if h := b.held[c.event]; !ours[c.event] && h.token == c.token && !h.settling {
			delete(b.held, c.event)
			lost = true
		}
	}
	return lost
}

// settle marks an event's claim as being settled and returns it.
func (b *claimBook) settle(event string) (c claim, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, held := b.held[event]
	if held {
		h.settling = true
		b.held[event] = h
	}
	return h.claim, held
}

// settled ends the settling of events. Without an error their claims are gone, whether they were written or lost; with
// one, only those that were written.
func (b *claimBook) settled(tried, written []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, event := range tried {
		h, held := b.held[event]
		switch {
		case !held:
		case err == nil || slices.Contains(written, event):
			delete(b.held, event)
		default:
			h.settling = false
			b.held[event] = h
		}
	}
}

// holdsSuspect says whether one of the events must be claimed alone.
func (b *claimBook) holdsSuspect() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.held {
		if isSuspect(h.token) {
			return true
		}
	}
	return false
}
