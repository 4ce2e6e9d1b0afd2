// Package metrics turns what a relay tells about itself into Prometheus metrics.
package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/postrider/postrider/relay"
)

// noSink is the label of events that became DEAD before any sink was asked: malformed ones, and those that no route
// matches.
const noSink = "none"

var (
	callBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	ageBuckets  = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600}
)

// Metrics are the metrics of one process, in a registry of their own. What its relays do is added up.
type Metrics struct {
	registry *prometheus.Registry
	backlogs *backlogs

	events      *prometheus.CounterVec // by sink and outcome
	dead        *prometheus.CounterVec // by sink
	deliveryAge *prometheus.HistogramVec
	settled     prometheus.Counter
	fenced      prometheus.Counter
	cleaned     prometheus.Counter
	leasesLost  prometheus.Counter
	loopErrors  *prometheus.CounterVec // by loop

	readEvents      prometheus.Counter
	readDuration    prometheus.Histogram
	publishDuration *prometheus.HistogramVec // by sink
	settleDuration  prometheus.Histogram
}

// New returns the metrics of the relays of the given version with the given sinks. Their health is asked for at each scrape.
// destinations are those of the sinks that have an outbox of their own.
func New(version string, sinks, destinations []string, health func() relay.Health) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		backlogs: newBacklogs(destinations),

		events:      counterVec("events_total", "Outcomes of single events at their sink. A skipped event was not sent, because an earlier one of its key was not published.", "sink", "outcome"),
		dead:        counterVec("dead_events_total", "Events that became DEAD.", "sink"),
		deliveryAge: histogramVec("delivery_age_seconds", "Time from created_at to the sink's acknowledgement.", ageBuckets),
		settled:     counter("settled_events_total", "Outcomes written back to the outbox."),
		fenced:      counter("fenced_events_total", "Outcomes that changed nothing, because another relay owned the event by then."),
		cleaned:     counter("cleaned_events_total", "Published events deleted after their retention."),
		leasesLost:  counter("leases_lost_total", "Shards that another relay took from this one."),
		loopErrors:  counterVec("loop_errors_total", "Errors that a loop of the relay met and survived.", "loop"),

		readEvents:      counter("read_events_total", "Events read from the outbox."),
		readDuration:    prometheus.NewHistogram(histogramOpts("read_duration_seconds", "Time of one read.", callBuckets)),
		publishDuration: histogramVec("publish_duration_seconds", "Time of one call of a sink with a batch.", callBuckets),
		settleDuration:  prometheus.NewHistogram(histogramOpts("settle_duration_seconds", "Time of one settle of a batch.", callBuckets)),
	}
	m.registry.MustRegister(
		m.events, m.dead, m.deliveryAge, m.settled, m.fenced, m.cleaned, m.leasesLost, m.loopErrors,
		m.readEvents, m.readDuration, m.publishDuration, m.settleDuration,
		m.backlogs, healthCollector{health}, buildInfo(version),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.startAtZero(sinks)
	return m
}

// startAtZero makes every series exist from the start, so that a rate sees the first event.
func (m *Metrics) startAtZero(sinks []string) {
	for _, loop := range []string{"lease", "read", "settle", "clean", "backlog", "jobs"} {
		m.loopErrors.WithLabelValues(loop)
	}
	m.dead.WithLabelValues(noSink)
	for _, sink := range sinks {
		m.dead.WithLabelValues(sink)
		m.deliveryAge.WithLabelValues(sink)
		m.publishDuration.WithLabelValues(sink)
		for c := relay.ClassPublished; c <= relay.ClassSkipped; c++ {
			m.events.WithLabelValues(sink, c.String())
		}
	}
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// HooksOf returns what feeds the metrics from the relay of a destination.
func (m *Metrics) HooksOf(destination string) relay.Hooks {
	hooks := m.Hooks()
	hooks.Measured = m.backlogs.destinations[destination].measured
	return hooks
}

// Hooks returns what feeds the metrics from the relay of the outbox.
func (m *Metrics) Hooks() relay.Hooks {
	return relay.Hooks{
		Read: func(events int, took time.Duration) {
			m.readEvents.Add(float64(events))
			m.readDuration.Observe(took.Seconds())
		},
		Published: func(sink string, outcomes map[relay.Class]int, took time.Duration) {
			for class, n := range outcomes {
				m.events.WithLabelValues(sink, class.String()).Add(float64(n))
			}
			m.publishDuration.WithLabelValues(sink).Observe(took.Seconds())
		},
		Delivered: func(sink string, age time.Duration) {
			m.deliveryAge.WithLabelValues(sink).Observe(age.Seconds())
		},
		Settled: func(written, lost int, took time.Duration) {
			m.settled.Add(float64(written))
			m.fenced.Add(float64(lost))
			m.settleDuration.Observe(took.Seconds())
		},
		Dead: func(sink string, _ *relay.Event, _ string) {
			if sink == "" {
				sink = noSink
			}
			m.dead.WithLabelValues(sink).Inc()
		},
		LeaseLost: func(int) { m.leasesLost.Inc() },
		Measured:  m.backlogs.main.measured,
		Cleaned:   func(deleted int) { m.cleaned.Add(float64(deleted)) },
		Failed:    func(loop string, _ error) { m.loopErrors.WithLabelValues(loop).Inc() },
	}
}

const namespace = "postrider"

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
}

func histogramVec(name, help string, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogramOpts(name, help, buckets), []string{"sink"})
}

func buildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace:   namespace,
		Name:        "build_info",
		Help:        "Always 1; the labels tell what is running.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
