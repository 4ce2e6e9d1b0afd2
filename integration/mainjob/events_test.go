package mainjob_test

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/ledger"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
)

// batch makes events that the test adds itself.
type batch struct {
	events   []postrider.Event
	versions map[string]int64
}

func (b *batch) event(key string, payload []byte) *postrider.Event {
	if b.versions == nil {
		b.versions = make(map[string]int64)
	}
	b.versions[key]++
	b.events = append(b.events, postrider.Event{
		AggregateType: "wallet", AggregateID: key, AggregateVersion: b.versions[key], Type: "WalletDebited", Payload: payload,
	})
	return &b.events[len(b.events)-1]
}

// next returns a batch of the same keys and payloads whose events follow those of b.
func (b *batch) next() *batch {
	following := &batch{versions: b.versions}
	for _, e := range b.events {
		following.event(e.AggregateID, e.Payload)
	}
	return following
}

func payload(i int) []byte { return fmt.Appendf(nil, `{"n": %d}`, i) }

// add adds the events in tx and returns them as their ledger.
func (b *batch) add(t *testing.T, tx *sql.Tx) (lines []ledger.Event) {
	t.Helper()
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL})
	if err != nil {
		t.Fatal(err)
	}
	added, err := outbox.Add(t.Context(), tx, b.events...)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range b.events {
		lines = append(lines, ledger.Event{
			EventID: added[i].EventID, Key: e.AggregateID, Sequence: e.AggregateVersion, Type: e.Type,
			SHA256: ledger.Digest(e.Payload), Headers: e.Headers, Committed: true,
		})
	}
	return lines
}

// commit adds the events in one transaction and commits it.
func (b *batch) commit(t *testing.T, s *stage) []ledger.Event {
	t.Helper()
	tx := s.begin(t)
	lines := b.add(t, tx)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func (s *stage) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() }) // fails when it was committed
	return tx
}

// oversize makes 500 events in one transaction, of which one is larger than 300 KB. Its key has events before and
// after it.
func oversize(t *testing.T, s *stage) (all []ledger.Event, guilty string) {
	t.Helper()
	const at, size = 250, 300_000
	var b batch
	for i := range 500 {
		key := fmt.Sprintf("w-%d", i%50)
		if i == at {
			b.event(key, fmt.Appendf(nil, `{"long": %q}`, bytes.Repeat([]byte("x"), size)))
		} else {
			b.event(key, payload(i))
		}
	}
	all = b.commit(t, s)
	guilty = all[at].EventID
	all[at].Committed = false // it must not arrive
	return all, guilty
}

// Promise P8, when the broker refuses the event.
func TestEventOverTheTopicsLimitHarmsOnlyItself(t *testing.T) {
	s := stageOn(t, servers.Address(t, "POSTRIDER_TEST_POSTGRES"), servers.Address(t, "POSTRIDER_TEST_KAFKA"), map[string]string{"max.message.bytes": "200000"})
	testOversize(t, s)
}

// Promise P8, when our own limit refuses the event.
func TestEventOverOurLimitHarmsOnlyItself(t *testing.T) {
	s := newStage(t)
	s.sink["max_message_bytes"] = "200kB"
	testOversize(t, s)
}

func testOversize(t *testing.T, s *stage) {
	all, guilty := oversize(t, s)
	s.startReady(t, "one")
	if report := s.check(t, all); report.Duplicates != 0 || report.Committed != 499 {
		t.Errorf("%d of the 499 good events arrived, and %d duplicates", report.Committed, report.Duplicates)
	}
	if dead := s.inState("DEAD"); dead != 1 {
		t.Errorf("%d events are DEAD, want the one that is too large", dead)
	}
	r := s.command(t, 0, "events", "show", guilty, "--json")
	if text := strings.ToLower(r.Stdout); !strings.Contains(text, `"dead"`) || !strings.Contains(text, "message of 300") {
		t.Errorf("the event does not show as DEAD because it is too large: %s", r.Stdout)
	}
}

// Identity order is not commit order: a relay that continued behind the last id it saw would lose the event.
func TestLowerIDThatCommitsAfterAHigherOneIsDelivered(t *testing.T) {
	s := newStage(t)
	s.startReady(t, "one")
	var low, high batch
	low.event("w-low", payload(1))
	high.event("w-high", payload(2))
	late := s.begin(t)
	all := low.add(t, late)
	all = append(all, high.commit(t, s)...)
	s.awaitPublished(t, 1)
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	s.awaitPublished(t, 2)
	if n := s.count("SELECT count(*) FROM outbox_events WHERE aggregate_id = 'w-low' AND id < (SELECT id FROM outbox_events WHERE aggregate_id = 'w-high')"); n != 1 {
		t.Fatal("the event that was committed late has not the lower id: the test shows nothing")
	}
	s.check(t, all)
}

// Promise P8 for keys, and P10: the failing event goes to a topic that does not exist, and has many events of its key behind it.
func TestHotKeyWithAFailingEventDelaysNoOtherKey(t *testing.T) {
	s := newStage(t)
	s.relay["retry"] = "{schedule: [1h]}"
	s.relay["max_in_flight_events"] = "500" // fewer than the hot key has
	missing := "t" + strings.ToLower(rand.Text())
	var hot, others batch
	hot.event("hot", payload(0)).Topic = missing
	for i := range 2000 {
		hot.event("hot", payload(i))
	}
	for i := range 2000 {
		others.event(fmt.Sprintf("w-%d", i%500), payload(i))
	}
	failing := hot.commit(t, s)
	all := append(failing[1:], others.commit(t, s)...)
	relay := s.startReady(t, "one", "two")[0]

	s.awaitPublished(t, len(others.events))
	if n := s.count("SELECT count(*) FROM outbox_events WHERE aggregate_id = 'hot' AND status <> 'PENDING'"); n != 0 {
		t.Fatalf("%d events of the hot key left before its first", n)
	}
	await.True(t, soon, "the failing event tells that its topic does not exist", func() bool {
		return s.count("SELECT count(*) FROM outbox_events WHERE retry_count = 1 AND last_error LIKE '%topic does not exist%'") == 1
	})
	if now := s.status(t); now.OldestPendingSeconds <= 0 {
		t.Errorf("status does not tell that events wait: %+v", now)
	}
	await.True(t, soon, "the metrics tell that events wait", func() bool {
		return relay.Metric(t, "postrider_backlog_oldest_pending_seconds") > 0
	})

	broker.CreateTopic(t, s.kafka, missing, 1, nil)
	s.command(t, 0, "events", "retry", failing[0].EventID)
	if report := s.check(t, all); report.Duplicates != 0 {
		t.Errorf("%d duplicates", report.Duplicates)
	}
	if arrived := broker.Messages(t, s.kafka, missing); len(arrived) != 1 || arrived[0].Header("X-Event-Id") != failing[0].EventID {
		t.Errorf("%d messages are in the topic of the failing event, want that event", len(arrived))
	}
}
