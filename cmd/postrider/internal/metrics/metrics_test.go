package metrics

import (
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/relay"
)

var update = flag.Bool("update", false, "write testdata/names.golden")

// healthy is the health of a relay at work.
func healthy() relay.Health {
	return relay.Health{
		Ready: true, Shards: 64, InFlight: 7,
		Sinks: []relay.SinkState{{Name: "main", Circuit: relay.CircuitOpen}},
	}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}

// Dashboards and alerts are built on the names, types and labels.
func TestNames(t *testing.T) {
	m := New("v1.2.3", []string{"main"}, []string{"main"}, healthy)
	m.Hooks().Measured(relay.Backlog{})
	m.HooksOf("main").Measured(relay.Backlog{})
	types := regexp.MustCompile(`(?m)^# TYPE postrider_.*\n`).FindAllString(scrape(t, m), -1)
	got := strings.ReplaceAll(strings.Join(types, ""), "# TYPE ", "")
	const golden = "testdata/names.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("names are not those of %s (go test -update writes them anew):\n%s", golden, got)
	}
}

func TestHooksFeedTheMetrics(t *testing.T) {
	m := New("v1.2.3", []string{"main"}, nil, healthy)
	h := m.Hooks()
	h.Read(20, 3*time.Millisecond)
	h.Published("main", map[relay.Class]int{relay.ClassPublished: 5, relay.ClassRetry: 2}, 30*time.Millisecond)
	h.Published("main", map[relay.Class]int{relay.ClassPublished: 1, relay.ClassUnavailable: 4}, 30*time.Millisecond)
	h.Delivered("main", 40*time.Second)
	h.Settled(6, 3, 2*time.Millisecond)
	h.Dead("main", &relay.Event{}, "refused")
	h.Dead("", &relay.Event{}, "no route")
	h.LeaseLost(4)
	h.LeaseLost(5)
	h.Measured(relay.Backlog{Pending: 12, Dead: 3})
	h.Cleaned(100)
	h.Failed("settle", errors.New("boom"))
	wantLines(t, scrape(t, m),
		`postrider_events_total{outcome="published",sink="main"} 6`,
		`postrider_events_total{outcome="retry",sink="main"} 2`,
		`postrider_events_total{outcome="unavailable",sink="main"} 4`,
		`postrider_events_total{outcome="permanent",sink="main"} 0`,
		`postrider_dead_events_total{sink="main"} 1`,
		`postrider_dead_events_total{sink="none"} 1`,
		`postrider_delivery_age_seconds_bucket{sink="main",le="30"} 0`,
		`postrider_delivery_age_seconds_bucket{sink="main",le="60"} 1`,
		`postrider_settled_events_total 6`,
		`postrider_fenced_events_total 3`,
		`postrider_cleaned_events_total 100`,
		`postrider_leases_lost_total 2`,
		`postrider_loop_errors_total{loop="settle"} 1`,
		`postrider_loop_errors_total{loop="read"} 0`,
		`postrider_read_events_total 20`,
		`postrider_read_duration_seconds_count 1`,
		`postrider_publish_duration_seconds_count{sink="main"} 2`,
		`postrider_settle_duration_seconds_count 1`,
		`postrider_backlog_pending_events 12`,
		`postrider_backlog_dead_events 3`,
		`postrider_backlog_oldest_pending_seconds 0`,
	)
}

func TestHealthIsReadAtTheScrape(t *testing.T) {
	now := healthy()
	m := New("v1.2.3", []string{"main"}, nil, func() relay.Health { return now })
	wantLines(t, scrape(t, m),
		`postrider_ready 1`, `postrider_in_flight_events 7`, `postrider_leases_held 64`,
		`postrider_circuit_state{sink="main",state="open"} 1`,
		`postrider_circuit_state{sink="main",state="closed"} 0`,
	)
	now = relay.Health{}
	wantLines(t, scrape(t, m), `postrider_ready 0`, `postrider_in_flight_events 0`, `postrider_leases_held 0`)
}

// An alert on the age of the oldest event must not go quiet because the outbox cannot be asked any more.
func TestOldestPendingGrowsWithoutMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("v1.2.3", nil, nil, healthy)
		if text := scrape(t, m); strings.Contains(text, "postrider_backlog_") {
			t.Error("there are figures of the backlog before it was measured")
		}
		m.Hooks().Measured(relay.Backlog{Pending: 1, OldestPending: time.Minute})
		time.Sleep(30 * time.Second) //nolint:forbidigo // virtual time
		wantLines(t, scrape(t, m), `postrider_backlog_oldest_pending_seconds 90`)
	})
}

// What waits at a destination shows by itself, and in the figures of the whole, so that an alert on these misses nothing.
func TestBacklogsOfDestinations(t *testing.T) {
	m := New("v1.2.3", []string{"main", "hooks"}, []string{"main", "hooks"}, healthy)
	m.HooksOf("hooks").Measured(relay.Backlog{Pending: 5, Dead: 1})
	if text := scrape(t, m); strings.Contains(text, "postrider_backlog_") {
		t.Error("there are figures of the whole before the outbox was measured")
	}
	m.Hooks().Measured(relay.Backlog{Pending: 12, Dead: 3})
	wantLines(t, scrape(t, m),
		`postrider_backlog_pending_events 17`, `postrider_backlog_dead_events 4`, `postrider_backlog_oldest_pending_seconds 0`,
		`postrider_destination_pending_events{sink="hooks"} 5`, `postrider_destination_dead_events{sink="hooks"} 1`,
		`postrider_destination_oldest_pending_seconds{sink="hooks"} 0`,
	)
	m.HooksOf("main").Measured(relay.Backlog{Pending: 1, OldestPending: time.Hour})
	text := scrape(t, m)
	if !strings.Contains(text, `postrider_destination_oldest_pending_seconds{sink="main"} 3600`) || !strings.Contains(text, `postrider_backlog_oldest_pending_seconds 3600`) {
		t.Errorf("the oldest event of a destination does not show:\n%s", text)
	}
	m.HooksOf("hooks").Settled(2, 0, time.Millisecond)
	m.Hooks().Settled(3, 0, time.Millisecond)
	wantLines(t, scrape(t, m), `postrider_settled_events_total 5`)
}
