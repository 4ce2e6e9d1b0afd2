package webhook

import (
	"sync"
	"time"
)

// maxSilent bounds the memory of a witness; beyond it, it forgets.
const maxSilent = 10_000

// witness knows from the answers that came whether a missing one is to be blamed on the event or on the receiver.
type witness struct {
	mu       sync.Mutex
	answered time.Time            // when the latest of the answered requests began
	silent   map[string]time.Time // by id of events without an answer: an answered request that began later blames them
}

func newWitness() *witness { return &witness{silent: make(map[string]time.Time)} }

// hear notes that the request that began then for the event was answered.
func (w *witness) hear(id string, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if began.After(w.answered) {
		w.answered = began
	}
	delete(w.silent, id)
}

// blames judges an event that got no answer. A receiver that answers requests that began after since is at work. An
// event that got no answer before is judged by its first time, and each answer counts once.
func (w *witness) blames(id string, since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, known := w.silent[id]
	if !known {
		first = since
	}
	blamed := w.answered.After(first)
	if blamed {
		first = since
	}
	if len(w.silent) >= maxSilent {
		clear(w.silent)
	}
	w.silent[id] = first
	return blamed
}
