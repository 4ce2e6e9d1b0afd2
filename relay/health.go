package relay

import (
	"fmt"
	"sync"
	"time"
)

// The loops of a relay as they appear in Hooks.Failed and in Health.
const (
	loopLease   = "lease"
	loopRead    = "read"
	loopSettle  = "settle"
	loopClean   = "clean"
	loopMeasure = "backlog"
	loopJobs    = "jobs"
)

// stuckAfter is how long events may be in flight without anything being settled before readiness turns red.
const stuckAfter = 30 * time.Second

// Health is what readiness and people see of a running relay.
type Health struct {
	Ready    bool        `json:"ready"`
	Reasons  []string    `json:"reasons"` // why it is not ready
	Relay    string      `json:"relay"`   // relay name
	ID       string      `json:"id"`      // member id
	Shards   int         `json:"shards"`  // leases held
	InFlight int         `json:"in_flight"`
	Sinks    []SinkState `json:"sinks"`

	// OldestPendingSeconds is the age of the outbox's oldest event that is due or has failed, in the shards of all
	// relays; 0 when there is none. It keeps growing while the outbox cannot be measured.
	OldestPendingSeconds float64 `json:"oldest_pending_seconds"`
}

// health collects what the loops report.
type health struct {
	mu       sync.Mutex
	failing  map[string]failure
	settled  time.Time // when something was last settled, or nothing was in flight
	onFailed func(loop string, err error)

	oldest   time.Duration // age of the oldest pending event when it was measured
	measured time.Time
}

type failure struct {
	since time.Time
	err   error
}

func newHealth(onFailed func(string, error)) *health {
	return &health{failing: make(map[string]failure), settled: time.Now(), onFailed: onFailed}
}

// note records the end of one round of a loop.
func (h *health) note(loop string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.failing, loop)
		return
	}
	first, known := h.failing[loop]
	if !known {
		first.since = time.Now()
	}
	h.failing[loop] = failure{since: first.since, err: err}
	h.onFailed(loop, err)
}

// progressed records that something was settled.
func (h *health) progressed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled = time.Now()
}

// measure records the backlog's age.
func (h *health) measure(oldest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oldest, h.measured = oldest, time.Now()
}

// oldestPending is the backlog's age at now, by the last measurement.
func (h *health) oldestPending(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.oldest == 0 {
		return 0
	}
	return h.oldest + now.Sub(h.measured)
}

// reasons lists what is wrong at now with inFlight events on their way.
func (h *health) reasons(now time.Time, inFlight int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var reasons []string
	for _, loop := range []string{loopLease, loopRead, loopSettle, loopClean, loopMeasure, loopJobs} {
		if f, ok := h.failing[loop]; ok {
			reasons = append(reasons, fmt.Sprintf("%s fails since %v: %v", loop, now.Sub(f.since).Round(time.Second), f.err))
		}
	}
	if inFlight == 0 {
		h.settled = now
	} else if idle := now.Sub(h.settled); idle > stuckAfter {
		reasons = append(reasons, fmt.Sprintf("%d events are in flight and nothing was settled for %v", inFlight, idle.Round(time.Second)))
	}
	return reasons
}
