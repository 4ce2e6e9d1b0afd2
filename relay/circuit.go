package relay

import (
	"sync"
	"time"
)

// Circuit states as they appear in SinkState, metrics and logs.
const (
	CircuitClosed   = "closed"
	CircuitOpen     = "open"
	CircuitHalfOpen = "half-open"
)

const (
	circuitFirstPause = 200 * time.Millisecond
	circuitMaxPause   = 15 * time.Second
)

// circuit keeps a sink that takes nothing from being asked more than one probe at a time, with pauses that double.
// It spends no attempt of any event.
type circuit struct {
	mu       sync.Mutex
	state    string
	since    time.Time
	failures int // in a row
	until    time.Time
	probing  bool
	lastErr  string
	changed  func(state string) // called under mu; must not call back
}

func newCircuit(now time.Time, changed func(string)) *circuit {
	return &circuit{state: CircuitClosed, since: now, changed: changed}
}

// permit says how many events may be sent at once now: all of limit when closed, one when a probe is due, none
// while open. wait is the time until the next probe when none may be sent.
func (c *circuit) permit(now time.Time, limit int) (allowed int, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state == CircuitClosed:
		return limit, 0
	case c.probing:
		return 0, circuitMaxPause
	case now.Before(c.until):
		return 0, c.until.Sub(now)
	}
	c.probing = true
	c.move(CircuitHalfOpen, now)
	return 1, 0
}

// abandon gives a permit back of which no use was made.
func (c *circuit) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

// succeeded notes that the sink answered for at least one event.
func (c *circuit) succeeded(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures, c.probing, c.lastErr = 0, false, ""
	c.move(CircuitClosed, now)
}

// failed notes that the sink as a whole took nothing.
func (c *circuit) failed(now time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	c.probing = false
	c.until = now.Add(pause(c.failures, circuitFirstPause, circuitMaxPause))
	c.lastErr = err.Error()
	c.move(CircuitOpen, now)
}

func (c *circuit) move(state string, now time.Time) {
	if c.state == state {
		return
	}
	// An outage is one period: since keeps its start through the probes.
	if c.state == CircuitClosed || state == CircuitClosed {
		c.since = now
	}
	c.state = state
	c.changed(state)
}

// snapshot returns what people and readiness see.
func (c *circuit) snapshot() (state string, since time.Time, lastErr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.since, c.lastErr
}

// pause returns the wait after the n-th failure in a row: first, doubled each time, up to ceiling.
func pause(n int, first, ceiling time.Duration) time.Duration {
	d := first
	for i := 1; i < n && d < ceiling; i++ {
		d *= 2
	}
	return min(d, ceiling)
}
