package consumer

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider/inbox"
)

// The loops of a consumer as they appear in Hooks.LoopFailed and in Health.
const (
	loopFetch  = "fetch"
	loopHandle = "handle"
	loopWrite  = "write"
	loopPark   = "park"
)

// Stats counts what has happened since the Consumer was made, and tells what is in hand.
type Stats struct {
	Fetched      int64 `json:"fetched"`
	Applied      int64 `json:"applied"`
	Duplicates   int64 `json:"duplicates"`
	Failures     int64 `json:"failures"`      // of attempts; a message may have several
	Retried      int64 `json:"retried"`       // attempts in place that followed a failure
	RetryTopics  int64 `json:"retry_topics"`  // written to a retry topic
	Parked       int64 `json:"parked"`        // stored in the database
	DeadLettered int64 `json:"dead_lettered"` // durably written
	Dropped      int64 `json:"dropped"`
	Foreign      int64 `json:"foreign"`  // acknowledged unread: on a retry topic for another consumer
	Returned     int64 `json:"returned"` // given back to the source, because their lane was revoked or the consumer stopped

	InFlight      int `json:"in_flight"` // messages in hand
	InFlightBytes int `json:"in_flight_bytes"`
	Waiting       int `json:"waiting"`      // of those: for their time on a retry topic
	Blocked       int `json:"blocked"`      // keys that wait for the next try of their first message
	Letters       int `json:"letters"`      // messages to be written to a retry or dead-letter topic
	Refused       int `json:"refused"`      // of those: refused for good by the sink, tried again every minute
	PausedLanes   int `json:"paused_lanes"` // because too much of them is in hand

	// AgeSeconds is how old the message was that was applied last, where the broker tells when it stored it.
	AgeSeconds float64 `json:"age_seconds"`
}

// Health is what readiness and people see of a running Consumer.
type Health struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons"` // why it is not ready
	Consumer string   `json:"consumer"`
	Stats    Stats    `json:"stats"`
}

// Stats returns the counts of now.
func (c *Consumer) Stats() Stats {
	stats := c.watch.counts()
	if e := c.current(); e != nil && c.running.Load() {
		e.measure(&stats)
	}
	return stats
}

// Health describes the consumer now.
func (c *Consumer) Health() Health {
	h := Health{Consumer: c.cfg.Name, Stats: c.Stats(), Reasons: []string{}}
	if !c.running.Load() {
		h.Reasons = append(h.Reasons, "the consumer is not running")
		return h
	}
	h.Reasons = append(h.Reasons, c.watch.reasons(time.Now())...)
	h.Reasons = append(h.Reasons, c.current().refusals()...)
	h.Ready = len(h.Reasons) == 0
	return h
}

// watch collects what the loops report.
type watch struct {
	cfg     *Config
	mu      sync.Mutex
	stats   Stats
	failing map[string]failing
}

type failing struct {
	since time.Time
	err   error
}

func newWatch(cfg *Config) *watch { return &watch{cfg: cfg, failing: make(map[string]failing)} }

// count changes the counts.
func (w *watch) count(change func(*Stats)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.stats)
}

func (w *watch) counts() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// applied counts a message that was applied, and calls the hook.
func (w *watch) applied(m inbox.Message, outcome inbox.Outcome) {
	w.count(func(s *Stats) {
		if outcome == inbox.Duplicate {
			s.Duplicates++
		} else {
			s.Applied++
		}
		if !m.At.IsZero() {
			s.AgeSeconds = time.Since(m.At).Seconds()
		}
	})
	w.cfg.Hooks.applied(m, outcome)
}

// failed counts a failure, logs it, and calls the hook.
func (w *watch) failed(m inbox.Message, err error, next step) {
	w.count(func(s *Stats) { s.Failures++ })
	w.cfg.Logger.Warn("a message was not applied", "message", m.String(), "class", inbox.ClassOf(err), "next", next, "error", err)
	w.cfg.Hooks.failed(m, err, next)
}

func (w *watch) dropped(m inbox.Message, err error) {
	w.count(func(s *Stats) { s.Dropped++ })
	w.cfg.Hooks.dropped(m, err)
}

func (w *watch) deadLettered(m inbox.Message, topic string) {
	w.count(func(s *Stats) { s.DeadLettered++ })
	w.cfg.Hooks.deadLettered(m, topic)
}

// note records the end of one round of a loop.
func (w *watch) note(loop string, err error) {
	w.mu.Lock()
	if err == nil {
		delete(w.failing, loop)
		w.mu.Unlock()
		return
	}
	first, known := w.failing[loop]
	if !known {
		first.since = time.Now()
	}
	w.failing[loop] = failing{since: first.since, err: err}
	w.mu.Unlock()
	w.cfg.Logger.Warn("a loop of the consumer failed and tries again", "loop", loop, "error", err)
	w.cfg.Hooks.loopFailed(loop, err)
}

// reasons lists what is wrong at now.
func (w *watch) reasons(now time.Time) (reasons []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, loop := range slices.Sorted(maps.Keys(w.failing)) {
		f := w.failing[loop]
		reasons = append(reasons, fmt.Sprintf("%s fails since %v: %v", loop, now.Sub(f.since).Round(time.Second), f.err))
	}
	return reasons
}
