package fanout_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/postrider/postrider/internal/await"
)

// status is what `postrider status --json` promises of destinations.
type status struct {
	States               map[string]int64 `json:"states"`
	OldestPendingSeconds float64          `json:"oldest_pending_seconds"`
	Destinations         []struct {
		Sink                 string           `json:"sink"`
		Table                string           `json:"table"`
		States               map[string]int64 `json:"states"`
		OldestPendingSeconds float64          `json:"oldest_pending_seconds"`
	} `json:"destinations"`
}

func (s *stage) status(t *testing.T) (now status) {
	t.Helper()
	must(t, json.Unmarshal([]byte(s.command(t, 0, "status", "--json")), &now))
	return now
}

// RabbitMQ is cut off and the webhook answers 500: Kafka gets every event of every key nevertheless. When each is back, it gets what
// it has missed, once and in order, and the others get nothing again.
func TestADestinationThatIsDownHoldsUpNoOther(t *testing.T) {
	s := newStage(t, threeSinks)
	p := s.start(t)
	keys := keysOf(20)
	s.add(t, keys, 1, 5)
	for _, table := range []string{toMain, toRabbit, toHooks} {
		s.published(t, table, 100)
	}

	s.proxy.Cut()
	s.hooksAnswer(always(http.StatusInternalServerError))
	s.add(t, keys, 6, 20)
	s.published(t, toMain, 400)
	s.published(t, "outbox_events", 400) // which means that all were handed over
	checkOnce(t, "kafka", s.kafkaArrivals(t), keys, 20)

	await.True(t, soon, "readiness tells of RabbitMQ", func() bool {
		h, code, ok := p.Health()
		return ok && code == http.StatusServiceUnavailable && strings.Contains(fmt.Sprint(h.Reasons), "destination rabbit: sink rabbit is unavailable")
	})
	now := s.status(t)
	for i, want := range []int64{0, 300, 300} {
		d := now.Destinations[i]
		if d.States["PENDING"] != want || (d.OldestPendingSeconds > 0) != (want > 0) || d.OldestPendingSeconds > now.OldestPendingSeconds {
			t.Errorf("status of %s in %s: %v, oldest %v; of all %v; want %d pending", d.Sink, d.Table, d.States, d.OldestPendingSeconds, now.OldestPendingSeconds, want)
		}
	}
	if now.States["PENDING"] != 0 {
		t.Errorf("states of the outbox itself: %v", now.States)
	}

	s.hooksAnswer(always(http.StatusOK))
	s.published(t, toHooks, 400)
	if n := s.inState(t, toRabbit, "PUBLISHED"); n != 100 {
		t.Errorf("rabbit has got %d events, although it is cut off", n)
	}
	s.proxy.Heal()
	s.published(t, toRabbit, 400)
	await.True(t, soon, "RabbitMQ has delivered all", func() bool { return len(s.rabbit.all()) >= 400 })
	checkOnce(t, "kafka", s.kafkaArrivals(t), keys, 20)
	checkOnce(t, "rabbit", s.rabbit.all(), keys, 20)
	checkOnce(t, "hooks", s.hooks.all(), keys, 20)
	if n := s.count(t, "SELECT count(*) FROM outbox_events_to_rabbit WHERE retry_count > 0"); n > 0 {
		t.Errorf("the outage of RabbitMQ spent attempts of %d events", n)
	}
	await.True(t, soon, "the daemon is ready again", func() bool { h, _, ok := p.Health(); return ok && h.Ready })
	if published := p.Metric(t, "postrider_events_total", `sink="rabbit"`, `outcome="published"`); published != 400 {
		t.Errorf("the metrics count %v events published to rabbit", published)
	}
	p.Signal(t, syscall.SIGTERM)
	if code := p.Wait(t, soon); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// An event that one destination refuses for good is a dead letter of that destination, and is redriven to it alone.
func TestARefusedEventIsDeadForOneDestination(t *testing.T) {
	s := newStage(t, threeSinks)
	s.start(t)
	keys := keysOf(3)
	s.hooksAnswer(func(a arrival) int {
		if a.Key == "key-1" && a.N == 2 {
			return http.StatusUnprocessableEntity
		}
		return http.StatusOK
	})
	s.add(t, keys, 1, 4)
	s.published(t, toMain, 12)
	s.published(t, toRabbit, 12)
	s.published(t, toHooks, 11)

	var dead struct {
		Groups []struct {
			Count       int    `json:"count"`
			Sample      string `json:"sample"`
			Error       string `json:"error"`
			Destination string `json:"destination"`
		} `json:"groups"`
	}
	must(t, json.Unmarshal([]byte(s.command(t, 0, "dead", "list", "--json")), &dead))
	if len(dead.Groups) != 1 || dead.Groups[0].Count != 1 || dead.Groups[0].Destination != "hooks" {
		t.Fatalf("dead letters: %+v", dead)
	}
	id := dead.Groups[0].Sample
	trace := s.command(t, 0, "trace", id)
	for _, part := range []string{
		"outbox:" + toMain + "," + toRabbit + "," + toHooks, "to main: published", "kafka:" + s.topic, "to rabbit: published", "rabbitmq:", "to hooks: dead", "422",
	} {
		if !strings.Contains(trace, part) {
			t.Errorf("the trace lacks %q:\n%s", part, trace)
		}
	}

	s.hooksAnswer(always(http.StatusOK))
	s.command(t, 1, "dead", "redrive", id) // it is no dead letter of the outbox itself
	s.command(t, 0, "dead", "redrive", id, "--to", "hooks")
	s.published(t, toHooks, 12)
	if got := len(s.hooks.all()); got != 12 {
		t.Errorf("the webhook has got %d events, want 12", got)
	}
	if last := s.hooks.all()[11]; last.ID != id || last.Key != "key-1" || last.N != 2 {
		t.Errorf("the webhook got %+v last", last)
	}
	checkOnce(t, "kafka", s.kafkaArrivals(t), keys, 4)
	checkOnce(t, "rabbit", s.rabbit.all(), keys, 4)
}

// A daemon that is killed while it hands over and publishes loses nothing, and makes no second copy. What it had sent without
// having noted it comes again, in order.
func TestAKilledDaemonLosesNothing(t *testing.T) {
	s := newStage(t, threeSinks)
	keys := keysOf(50)
	const last = 60
	added := make(chan struct{})
	go func() {
		defer close(added)
		s.add(t, keys, 1, last)
	}()
	for _, enough := range []int{300, 1200} {
		p := s.start(t)
		await.True(t, soon, fmt.Sprintf("%d events are at Kafka", enough), func() bool { return s.inState(t, toMain, "PUBLISHED") >= enough })
		p.Signal(t, syscall.SIGKILL)
		p.Wait(t, soon)
	}
	<-added
	s.start(t)
	const all = 50 * last
	for _, table := range []string{"outbox_events", toMain, toRabbit, toHooks} {
		s.published(t, table, all)
		if n := s.count(t, "SELECT count(*) FROM "+table); n != all {
			t.Errorf("%s has %d events, want %d", table, n, all)
		}
	}
	await.True(t, soon, "RabbitMQ has delivered all", func() bool { return len(s.rabbit.all()) >= all })
	for where, arrivals := range map[string][]arrival{"kafka": s.kafkaArrivals(t), "rabbit": s.rabbit.all(), "hooks": s.hooks.all()} {
		t.Logf("%s got %d events again", where, check(t, where, arrivals, keys, last))
	}
}
