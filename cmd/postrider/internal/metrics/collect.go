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
	pending = description("backlog_pending_events", "Events PENDING, in the outbox and in those of all destinations; counting stops at 100000 in each.")
	dead    = description("backlog_dead_events", "Events DEAD, in the outbox and in those of all destinations; counting stops at 100000 in each.")
	oldest  = description("backlog_oldest_pending_seconds", "Age of the oldest event that is due or has failed, in the outbox and in those of all destinations; 0 when there is none. It keeps growing while the outbox cannot be measured.")

	destinationPending = description("destination_pending_events", "Events PENDING in the outbox of a destination; counting stops at 100000.", "sink")
	destinationDead    = description("destination_dead_events", "Events DEAD in the outbox of a destination; counting stops at 100000.", "sink")
	destinationOldest  = description("destination_oldest_pending_seconds", "Age of the oldest event in the outbox of a destination that is due or has failed, counted from when it was handed over; 0 when there is none.", "sink")
)

// backlogs are what waits in the outbox and in those of its destinations.
type backlogs struct {
	main         *backlog
	destinations map[string]*backlog // by sink
}

func newBacklogs(destinations []string) *backlogs {
	b := &backlogs{main: &backlog{}, destinations: make(map[string]*backlog)}
	for _, sink := range destinations {
		b.destinations[sink] = &backlog{}
	}
	return b
}

// Describe implements prometheus.Collector.
func (*backlogs) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pending, dead, oldest, destinationPending, destinationDead, destinationOldest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Before the first measurement of the outbox it has nothing to tell.
func (b *backlogs) Collect(ch chan<- prometheus.Metric) {
	all, measured := b.main.now()
	if !measured {
		return
	}
	for sink, d := range b.destinations {
		its, measured := d.now()
		if !measured {
			continue
		}
		ch <- gauge(destinationPending, float64(its.Pending), sink)
		ch <- gauge(destinationDead, float64(its.Dead), sink)
		ch <- gauge(destinationOldest, its.OldestPending.Seconds(), sink)
		all.Pending += its.Pending
		all.Dead += its.Dead
		all.OldestPending = max(all.OldestPending, its.OldestPending)
	}
	ch <- gauge(pending, float64(all.Pending))
	ch <- gauge(dead, float64(all.Dead))
	ch <- gauge(oldest, all.OldestPending.Seconds())
}

// backlog is the last measurement of what waits in one outbox.
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

// now is the last measurement with the oldest event as old as it is now; measured is false before the first one.
func (b *backlog) now() (last relay.Backlog, measured bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last = b.last
	if last.OldestPending > 0 {
		last.OldestPending += time.Since(b.at)
	}
	return last, !b.at.IsZero()
}
