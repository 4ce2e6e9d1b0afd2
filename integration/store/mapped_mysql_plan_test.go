package store

import (
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// TestMappedReadsOfMySQLFollowTheirIndex bounds what reads and settles touch in tables with 200,000 published rows: with the
// index that check tells to create, what they return; with one of the word alone, what waits.
func TestMappedReadsOfMySQLFollowTheirIndex(t *testing.T) {
	eachPreset(t, "event-outbox", "event-outbox.sql", func(t *testing.T, m mapped) {
		m.db.SetMaxOpenConns(1) // the counters are those of a connection
		execute(t, m.db, "SET SESSION sql_log_bin = 0")
		fill := `INSERT INTO event_outbox (aggregate_type, aggregate_id, event_type, payload, status)
			SELECT 'order', concat('key-', n % 100), 'E', '{}', ? FROM JSON_TABLE(concat('[0', repeat(',0', ? - 1), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) numbers`
		execute(t, m.db, "ALTER TABLE event_outbox STATS_AUTO_RECALC = 0")
		execute(t, m.db, "ANALYZE TABLE event_outbox")
		execute(t, m.db, fill, "PUBLISHED", 100_000)
		execute(t, m.db, fill, "PUBLISHED", 100_000)
		execute(t, m.db, fill, "PENDING", 5000)
		work := func(most, perSettled int) {
			t.Helper()
			h := m.hold(t)
			defer func() {
				if err := h.Release(t.Context(), h.member, h.leases); err != nil {
					t.Error(err)
				}
			}()
			var failed, done []relay.Settlement
			for i, e := range readSome(t, h.Store, everything(10)) {
				one := relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StatePending, RetryAfter: time.Hour, Error: "no"}
				if i == 0 {
					one.State, one.HoldsKey = postrider.StateDead, true
				}
				failed = append(failed, one)
			}
			m.bound(t, "settle failed", effort{reads: perSettled * 10}, func() { h.settleAll(failed...) })
			req := everything(100)
			for i, e := range readSome(t, h.Store, everything(100)) {
				if i%2 == 0 {
					req.InFlight = append(req.InFlight, e.ID)
				}
			}
			m.bound(t, "read", effort{reads: most, sorted: most}, func() {
				for _, e := range readSome(t, h.Store, req) {
					done = append(done, relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StatePublished})
				}
			})
			m.bound(t, "settle published", effort{reads: perSettled * 100}, func() { h.settleAll(done...) })
			dead := relay.Settlement{ID: req.InFlight[0], State: postrider.StateDead, Error: "no"}
			for _, e := range readSome(t, h.Store, everything(100)) {
				if e.ID == dead.ID {
					dead.Lease = h.leases[e.Shard]
				}
			}
			h.settleAll(dead)
			m.bound(t, "measure the backlog", effort{reads: 60_000, sorted: 10_000}, func() {
				if _, err := h.Backlog(t.Context()); err != nil {
					t.Error(err)
				}
			})
			m.bound(t, "list dead letters", effort{reads: 1000, sorted: 10}, func() {
				if rows, err := h.Events(t.Context(), operator.Filter{State: postrider.StateDead}); err != nil || len(rows) == 0 {
					t.Error(err)
				}
			})
			m.bound(t, "clean", effort{reads: 17_000, sorted: 1100}, func() {
				if _, err := h.Clean(t.Context(), relay.CleanRequest{After: "1000", Limit: 1000, Retention: time.Hour}); err != nil {
					t.Error(err)
				}
			})
			m.bound(t, "redrive", effort{reads: 2000, sorted: 100}, func() {
				if n, err := h.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); err != nil || n != 2 {
					t.Error(n, err)
				}
			})
		}
		work(80_000, 100)
		created := false
		for _, f := range m.openMapped(t).Verify(t.Context()) {
			if statement, ok := strings.CutPrefix(f.Hint, "run: CREATE INDEX"); ok {
				execute(t, m.db, "CREATE INDEX"+statement)
				created = true
			}
		}
		if !created {
			t.Fatal("check tells no index")
		}
		work(8_000, 100)
		execute(t, m.db, "ANALYZE TABLE event_outbox")
		work(8_000, 100)
	})
}
