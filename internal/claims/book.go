// Package claims is the bookkeeping of a relay that claims events one by one, whatever database holds them: which claims it
// holds, and the tokens that they have.
package claims

import (
	"slices"
	"sync"
	"time"
)

// Claim is the right to settle one event.
type Claim struct {
	ID    any    `json:"id"` // the event's id as the database takes it
	Token string `json:"token"`
	Event string `json:"-"` // the event's id as the relay knows it
}

// Book knows the claims of one relay. It holds no more than what the relay has in flight, and what one read brings. It is
// safe for concurrent use.
type Book struct {
	mu    sync.Mutex
	held  map[string]heldClaim // by event id
	spare map[string]Claim     // by event id: claims that nobody looks after; they are given back and not renewed
	lease time.Time            // end of the lease that the last renewal was made for
}

type heldClaim struct {
	Claim
	until    time.Time // its end, no later than that in the database
	settling bool      // an outcome is being written
}

// Lasts is how long a claim lasts of a relay whose lease lasts the given time: a fifth longer, so that renewals can pass
// over what was claimed a short time ago. Most events are published before any renewal has to write their rows again.
func Lasts(lease time.Duration) time.Duration { return lease + lease/5 }

// NewBook returns an empty Book.
func NewBook() *Book {
	return &Book{held: make(map[string]heldClaim), spare: make(map[string]Claim)}
}

// Forget empties the book. What it held runs out.
func (b *Book) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.held)
	clear(b.spare)
}

// Add enters claims that last until the given time or longer. It reports whether they must be prolonged: a renewal that did
// not know them has begun meanwhile, and its lease ends after them.
func (b *Book) Add(claims []Claim, until time.Time) (short bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range claims {
		b.held[c.Event] = heldClaim{Claim: c, until: until}
	}
	return until.Before(b.lease)
}

// Doubt notes claims of which nothing is certain.
func (b *Book) Doubt(claims []Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range claims {
		if b.held[c.Event].Token == c.Token {
			delete(b.held, c.Event)
		}
		b.spare[c.Event] = c
	}
}

// Surplus returns the claims that are to be given back: all but those of the events in flight.
func (b *Book) Surplus(inFlight []string) []Claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	flying := make(map[string]bool, len(inFlight))
	for _, id := range inFlight {
		flying[id] = true
	}
	for id, h := range b.held {
		if !flying[id] {
			delete(b.held, id)
			b.spare[id] = h.Claim
		}
	}
	claims := make([]Claim, 0, len(b.spare))
	for _, c := range b.spare {
		claims = append(claims, c)
	}
	return claims
}

// Released notes claims that were given back.
func (b *Book) Released(claims []Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range claims {
		if b.spare[c.Event].Token == c.Token {
			delete(b.spare, c.Event)
		}
	}
}

// Renewable begins a renewal for a lease that ends at the given time, and returns the claims that it is to prolong: those
// that would end before.
func (b *Book) Renewable(lease time.Time) []Claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lease = lease
	var claims []Claim
	for _, h := range b.held {
		if h.until.Before(lease) {
			claims = append(claims, h.Claim)
		}
	}
	return claims
}

// Prolonged notes what became of claims that were to last until the given time or longer: ours has the events of those that
// were found. It reports whether there are any that were lost. One that was settled meanwhile is none of them, nor is one
// of which that cannot be told yet.
func (b *Book) Prolonged(tried []Claim, ours map[string]bool, until time.Time) (lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range tried {
		h := b.held[c.Event]
		switch {
		case h.Token != c.Token:
		case ours[c.Event]:
			h.until = until
			b.held[c.Event] = h
		case !h.settling:
			delete(b.held, c.Event)
			lost = true
		}
	}
	return lost
}

// Settle marks an event's claim as being settled and returns it.
func (b *Book) Settle(event string) (c Claim, held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, held := b.held[event]
	if held {
		h.settling = true
		b.held[event] = h
	}
	return h.Claim, held
}

// Settled ends the settling of events. Without an error their claims are gone, whether they were written or lost; with
// one, only those that were written.
func (b *Book) Settled(tried, written []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range tried {
		h, held := b.held[id]
		switch {
		case !held:
		case err == nil || slices.Contains(written, id):
			delete(b.held, id)
		default:
			h.settling = false
			b.held[id] = h
		}
	}
}

// HoldsSuspect says whether one of the events must be claimed alone.
func (b *Book) HoldsSuspect() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.held {
		if IsSuspect(h.Token) {
			return true
		}
	}
	return false
}
