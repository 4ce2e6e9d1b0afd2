package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postrider/postrider/relay"
)

func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

func gauge(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

var (
	ready      = description("ready", "1 when the relay is ready, as /readyz tells; 0 when something keeps it from its work.")
	inFlight   = description("in_flight_events", "Events between read and settle.")
	leasesHeld = description("leases_held", "Shards that this relay owns.")
	circuit    = description("circuit_state", "1 for the state that the sink's circuit is in, 0 for the others.", "sink", "state")
)

// healthCollector tells what the relay says of itself at the moment of the scrape.
type healthCollector struct{ health func() relay.Health }

// Describe implements prometheus.Collector.
func (healthCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{ready, inFlight, leasesHeld, circuit} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c healthCollector) Collect(ch chan<- prometheus.Metric) {
	h := c.health()
	ch <- gauge(ready, truth(h.Ready))
	ch <- gauge(inFlight, float64(h.InFlight))
	ch <- gauge(leasesHeld, float64(h.Shards))
	for _, s := range h.Sinks {
		for _, state := range []string{relay.CircuitClosed, relay.CircuitOpen, relay.CircuitHalfOpen} {
			ch <- gauge(circuit, truth(s.Circuit == state), s.Name, state)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var (
	pending = description("backlog_pending_events", "Events PENDING; counting stops at 100000.")
	dead    = description("backlog_dead_events", "Events DEAD; counting stops at 100000.")
	oldest  = description("backlog_oldest_pending_seconds", "Age of the oldest event that is due or has failed; 0 when there is none. It keeps growing while the outbox cannot be measured.")
)

// backlog is the last measurement of what waits. Before the first one it has no metrics.
type backlog struct {
	mu   sync.Mutex
	last relay.Backlog
	at   time.Time
}

func (b *backlog) measured(now relay.Backlog) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.at = now, time.Now()
}

// Describe implements prometheus.Collector.
func (*backlog) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pending, dead, oldest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (b *backlog) Collect(ch chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		return
	}
	age := b.last.OldestPending
	if age > 0 {
		age += time.Since(b.at)
	}
	ch <- gauge(pending, float64(b.last.Pending))
	ch <- gauge(dead, float64(b.last.Dead))
	ch <- gauge(oldest, age.Seconds())
}
