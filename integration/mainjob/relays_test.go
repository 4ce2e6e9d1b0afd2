package mainjob_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/integration/internal/ledger"
	"github.com/postrider/postrider/internal/await"
)

// Promises P1 to P3, and P5 without a fault.
func TestThreeRelaysDeliverEveryCommittedEventOnceInOrderPerKey(t *testing.T) {
	s := newStage(t)
	total := full(100_000, 20_000)
	s.startReady(t, "one", "two", "three")
	plainly := total / 20
	events := s.produce(t, total-2*plainly, plainly).wait(t)

	report := s.check(t, events)
	// The producers draw each transaction's wallet at random: in one run of twenty they never draw one of them.
	if report.Committed != total || report.RolledBack < total/100 || keys(events) < wallets*99/100 {
		t.Errorf("%d events of %d keys were committed and %d rolled back: the run was to have %d events of nearly %d keys, and rollbacks",
			report.Committed, keys(events), report.RolledBack, total, wallets)
	}
	if report.Duplicates != 0 {
		t.Errorf("%d duplicates although no relay died", report.Duplicates)
	}
	if now := s.status(t); now.OldestPendingSeconds != 0 || now.States["PENDING"]+now.States["DEAD"] != 0 {
		t.Errorf("status tells of %+v although all was published", now)
	}
}

// Promise P5: an orderly stop causes no duplicate.
func TestStoppedRelayLeavesNoDuplicate(t *testing.T) {
	s := newStage(t)
	total := full(100_000, 10_000)
	relays, running := s.startOnBacklog(t, total)
	relays[0].Signal(t, syscall.SIGTERM)
	if code := relays[0].Wait(t, soon); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	s.awaitPublished(t, 3*total/4)
	relays[1].Signal(t, syscall.SIGINT)
	if code := relays[1].Wait(t, soon); code != 0 {
		t.Errorf("exit code %d after SIGINT, want 0", code)
	}
	if report := s.check(t, running()); report.Duplicates != 0 {
		t.Errorf("%d duplicates after orderly stops", report.Duplicates)
	}
}

// Promises P1, P3 and P5 when a relay dies.
func TestKilledRelayLosesNothingAndKeepsOrder(t *testing.T) {
	s := newStage(t)
	total := full(100_000, 10_000)
	relays, running := s.startOnBacklog(t, total)
	relays[0].Signal(t, syscall.SIGKILL)
	if code := relays[0].Wait(t, soon); code != -1 {
		t.Fatalf("exit code %d, want the end by a signal", code)
	}
	report := s.check(t, running())
	if report.Duplicates > maxInFlight {
		t.Errorf("%d duplicates, and no more than %d events can have been in flight", report.Duplicates, maxInFlight)
	}
}

// startOnBacklog commits half of the events, starts three relays on them and lets producers go on. It returns when the
// relays are busy; finish waits for the producers and returns all that was added.
func (s *stage) startOnBacklog(t *testing.T, total int) (relays []*daemon.Process, finish func() []ledger.Event) {
	t.Helper()
	backlog := s.produce(t, total/2, 0).wait(t)
	running := s.produce(t, total-total/2, 0)
	for _, name := range []string{"one", "two", "three"} {
		relays = append(relays, s.start(t, name))
	}
	s.awaitPublished(t, total/8)
	return relays, func() []ledger.Event { return append(backlog, running.wait(t)...) }
}

// Promise P4: the relay that slept longer than its lease comes back when others have published all, so whatever it
// still writes to an event would be wrong.
func TestRelayThatSleptBeyondItsLeaseChangesNothingAndSaysSo(t *testing.T) {
	s := newStage(t)
	total := full(50_000, 10_000)
	s.execute(t, `CREATE TABLE audit (id bigint, status text, writer text)`)
	s.execute(t, `CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO audit VALUES (old.id, new.status, current_setting('application_name')); RETURN NULL; END $$`)
	events := s.produce(t, total, 0).wait(t)
	s.execute(t, `CREATE TRIGGER audit AFTER UPDATE OR DELETE ON outbox_events FOR EACH ROW EXECUTE FUNCTION audit()`)

	// While nothing can be settled, outcomes pile up in the sleeper.
	settling, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := settling.ExecContext(t.Context(), "LOCK TABLE outbox_events IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	relays := s.startReady(t, "sleeper", "other")
	sleeper := relays[0]
	await.True(t, soon, "the sleeper has published more than one settle holds", func() bool {
		return sleeper.Metric(t, "postrider_events_total", `outcome="published"`) >= maxInFlight/2
	})
	sleeper.Signal(t, syscall.SIGSTOP)
	if err := settling.Rollback(); err != nil {
		t.Fatal(err)
	}
	writtenBySleeper := func() int { return s.count("SELECT count(*) FROM audit WHERE writer = 'sleeper'") }
	await.True(t, drainLimit, "the other relay publishes all", func() bool { return s.inState("PENDING") == 0 })
	before := writtenBySleeper()
	sleeper.Signal(t, syscall.SIGCONT)

	await.True(t, soon, "the sleeper counts fenced outcomes", func() bool {
		return sleeper.Metric(t, "postrider_fenced_events_total") > 0
	})
	if !strings.Contains(sleeper.Output(), "fenced") {
		t.Error("the sleeper's log does not tell of fenced outcomes")
	}
	await.True(t, soon, "the sleeper is ready again, with nothing in flight", func() bool {
		h, _, ok := sleeper.Health()
		return ok && h.Ready && h.InFlight == 0
	})
	if after := writtenBySleeper(); after != before {
		t.Errorf("the sleeper changed %d rows after it had lost its leases", after-before)
	}
	if n := s.count("SELECT count(*) FROM (SELECT FROM audit GROUP BY id HAVING count(*) > 1) twice"); n != 0 {
		t.Errorf("%d events were settled more than once", n)
	}
	report := s.check(t, events)
	limit := 0 // a machine under load can make the other relay lose its leases as well
	for _, relay := range relays {
		if strings.Contains(relay.Output(), "leases lost") {
			limit += maxInFlight
		}
	}
	if report.Duplicates > limit {
		t.Errorf("%d duplicates, and no more than %d events can have been in flight with the relays that lost their leases", report.Duplicates, limit)
	}
}
