package mainjob_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
)

// outage is how long a server stays away: the test waits for its end, not for a condition.
func outage() time.Duration { return full(2*time.Minute, 20*time.Second) }

// underLoad commits events at a rate that lasts through the outage.
func underLoad(t *testing.T, s *stage) (running producers) {
	const rate = 200
	total := rate * int(outage().Seconds()+10)
	running = s.produce(t, total, 0, "-rate", fmt.Sprint(rate))
	s.awaitPublished(t, 3*rate)
	return running
}

// awaitNotReady waits until a relay answers at /readyz that something keeps it from its work, with a reason that
// contains one of the words.
func awaitNotReady(t *testing.T, p *daemon.Process, words ...string) {
	t.Helper()
	await.True(t, soon, fmt.Sprintf("/readyz gives a reason with one of %q", words), func() bool {
		h, status, ok := p.Health()
		if !ok || h.Ready || status != http.StatusServiceUnavailable {
			return false
		}
		for _, word := range words {
			if strings.Contains(strings.Join(h.Reasons, "\n"), word) {
				return true
			}
		}
		return false
	})
}

func awaitReady(t *testing.T, relays ...*daemon.Process) {
	t.Helper()
	for _, p := range relays {
		await.True(t, time.Minute, "the relay is ready again", func() bool {
			h, status, ok := p.Health()
			return ok && h.Ready && status == http.StatusOK
		})
	}
}

// Promises P7 and P10 for the broker.
func TestKafkaOutageSpendsNoAttemptAndIsTold(t *testing.T) {
	kafka := servers.Launch(t, "kafka")
	s := stageOn(t, servers.Address(t, "POSTRIDER_TEST_POSTGRES"), fmt.Sprintf("127.0.0.1:%d", kafka.Port()), nil)
	relays := s.startReady(t, "one", "two")
	running := underLoad(t, s)

	kafka.Stop(t, syscall.SIGINT)
	end := time.Now().Add(outage())
	for _, p := range relays {
		awaitNotReady(t, p, "sink main is unavailable")
	}
	await.True(t, soon, "status tells of the open circuit", func() bool {
		now := s.status(t)
		return len(now.Sinks) == 1 && now.Sinks[0].Name == "main" && now.Sinks[0].Circuit != "closed" && now.Sinks[0].LastError != ""
	})
	first := s.status(t)
	time.Sleep(time.Until(end))
	if last := s.status(t); last.OldestPendingSeconds <= first.OldestPendingSeconds || last.OldestPendingSeconds < outage().Seconds()/2 {
		t.Errorf("status told that the oldest event waits for %.1fs at first and %.1fs at the end of the outage of %v",
			first.OldestPendingSeconds, last.OldestPendingSeconds, outage())
	}
	kafka.Start(t)

	checkAfterKafkaOutage(t, s, relays, running)
}

// checkAfterKafkaOutage checks what all outages of the broker have in common: no relay died or lost its lease, so nothing
// may arrive twice.
func checkAfterKafkaOutage(t *testing.T, s *stage, relays []*daemon.Process, running producers) {
	t.Helper()
	awaitReady(t, relays...)
	report := s.check(t, running.wait(t))
	s.checkNoAttempts(t)
	if report.Duplicates != 0 {
		t.Errorf("%d duplicates although no relay died or lost its lease", report.Duplicates)
	}
}

// A broker that shuts down answers some requests with a refusal although it keeps their records. Sent again by another
// producer they would arrive twice. Small batches make sure that many are under way.
func TestKafkaRestartsUnderABacklogCauseNoDuplicate(t *testing.T) {
	const total, restarts = 18_000, 3
	kafka := servers.Launch(t, "kafka")
	s := stageOn(t, servers.Address(t, "POSTRIDER_TEST_POSTGRES"), fmt.Sprintf("127.0.0.1:%d", kafka.Port()), nil)
	s.relay["batch"], s.relay["max_in_flight_events"] = "20", "400"
	var b batch
	for i := range total {
		b.event(fmt.Sprintf("w-%d", i%wallets), payload(i))
	}
	all := b.commit(t, s)
	relays := []*daemon.Process{s.start(t, "one"), s.start(t, "two")}
	for i := range restarts {
		s.awaitPublished(t, (i+1)*total/(restarts+2))
		kafka.Stop(t, syscall.SIGINT)
		all = append(all, oneForEachWallet(b.versions).commit(t, s)...) // a relay that has nothing to send would not be told
		for _, p := range relays {
			awaitNotReady(t, p, "sink main is unavailable")
		}
		kafka.Start(t)
	}
	if report := s.check(t, all); report.Duplicates != 0 {
		t.Errorf("%d duplicates although no relay died or lost its lease", report.Duplicates)
	}
	s.checkNoAttempts(t)
}

func oneForEachWallet(versions map[string]int64) *batch {
	b := &batch{versions: versions}
	for i := range wallets {
		b.event(fmt.Sprintf("w-%d", i), payload(i))
	}
	return b
}

// Promises P7 and P10 for a broker that keeps its connections and answers nothing.
func TestKafkaThatHangsSpendsNoAttemptAndIsTold(t *testing.T) {
	kafka := servers.Launch(t, "kafka")
	s := stageOn(t, servers.Address(t, "POSTRIDER_TEST_POSTGRES"), fmt.Sprintf("127.0.0.1:%d", kafka.Port()), nil)
	relays := s.startReady(t, "one", "two")
	running := underLoad(t, s)

	kafka.Hang(t)
	end := time.Now().Add(outage())
	for _, p := range relays {
		awaitNotReady(t, p, "sink main is unavailable")
	}
	time.Sleep(time.Until(end))
	kafka.Resume(t)

	checkAfterKafkaOutage(t, s, relays, running)
}

// A stop ends although the broker tells nothing of what it was sent. What is in flight then may be sent again.
func TestStopWhileKafkaHangsEndsAfterTheGracePeriod(t *testing.T) {
	kafka := servers.Launch(t, "kafka")
	s := stageOn(t, servers.Address(t, "POSTRIDER_TEST_POSTGRES"), fmt.Sprintf("127.0.0.1:%d", kafka.Port()), nil)
	s.relay["grace"] = "3s"
	first := s.startReady(t, "first")[0]
	var b batch
	for i := range 1000 {
		b.event(fmt.Sprintf("w-%d", i%100), payload(i))
	}
	all := b.commit(t, s)
	s.awaitPublished(t, len(all))
	kafka.Hang(t)
	all = append(all, b.next().commit(t, s)...)
	awaitNotReady(t, first, "sink main is unavailable")

	first.Signal(t, syscall.SIGTERM)
	code := first.Wait(t, soon)
	told := strings.Contains(first.Output(), "in flight after the grace period")
	if code != 0 && code != 1 || told != (code == 1) {
		t.Errorf("exit code %d, and the log tells of events in flight: %v; both or none must say so", code, told)
	}
	kafka.Resume(t)
	s.start(t, "second")
	if report := s.check(t, all); code == 0 && report.Duplicates != 0 {
		t.Errorf("%d duplicates although nothing was in flight", report.Duplicates)
	}
	s.checkNoAttempts(t)
}

// Promise P7 for the database, when it is shut down in good order.
func TestPostgresRestartLosesNothingAndIsTold(t *testing.T) {
	testPostgresOutage(t, syscall.SIGINT)
}

// The same, when it crashes.
func TestPostgresCrashLosesNothingAndIsTold(t *testing.T) {
	testPostgresOutage(t, syscall.SIGKILL)
}

func testPostgresOutage(t *testing.T, signal syscall.Signal) {
	postgres := servers.Launch(t, "postgres")
	dsn := fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", postgres.Port())
	s := stageOn(t, dsn, servers.Address(t, "POSTRIDER_TEST_KAFKA"), nil)
	relays := s.startReady(t, "one", "two")
	running := underLoad(t, s)

	postgres.Stop(t, signal)
	end := time.Now().Add(outage())
	for _, p := range relays {
		awaitNotReady(t, p, "lease fails", "read fails")
	}
	r := s.command(t, 1, "status", "--json")
	if !strings.Contains(r.Stderr, "refused") {
		t.Errorf("status does not tell why it failed: %q", r.Stderr)
	}
	time.Sleep(time.Until(end))
	postgres.Start(t)

	awaitReady(t, relays...)
	report := s.check(t, running.wait(t))
	s.checkNoAttempts(t)
	if limit := len(relays) * maxInFlight; report.Duplicates > limit {
		t.Errorf("%d duplicates, and no more than %d events can have been in flight", report.Duplicates, limit)
	}
	for _, p := range relays {
		if !p.Running() {
			t.Error("a relay ended because the database went away")
		}
	}
}
