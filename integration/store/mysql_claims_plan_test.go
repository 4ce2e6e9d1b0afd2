package store

import (
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestMySQLPlansOfClaims counts the rows that the servers really read and sort for the statements of row claims, beside
// 300,000 settled rows and 100,000 that are not due, with misleading statistics.
func TestMySQLPlansOfClaims(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		d.db.SetMaxOpenConns(1) // the counters are those of a connection
		s := d.store(t, sqlstore.Config{Shards: planned.Shards})
		execute(t, d.db, "ALTER TABLE "+d.table+" STATS_AUTO_RECALC = 0")
		execute(t, d.db, "ANALYZE TABLE "+d.table)
		d.loadSettled(t)
		execute(t, d.db, `INSERT INTO `+d.table+` (aggregate_type, aggregate_id, event_type, payload, next_attempt_at)
			SELECT 'order', concat('order-', n % 10000), 'OrderPlaced', '{}', utc_timestamp(6) + INTERVAL 1 DAY
			FROM JSON_TABLE(concat('[0', repeat(',0', 99999), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) numbers`)
		t.Run("statistics of an empty table", func(t *testing.T) { d.checkClaims(t, s) })
		execute(t, d.db, "ANALYZE TABLE "+d.table)
		t.Run("statistics of a settled table", func(t *testing.T) { d.checkClaims(t, s) })
	})
}

// checkClaims does what a relay does that claims rows, and bounds what each step may cost.
func (d database) checkClaims(t *testing.T, s *sqlstore.Store) {
	const limit = 500
	claim := func(r *sqlstore.RowClaims) (events []relay.Event) {
		events, err := r.Read(t.Context(), everything(limit))
		if err != nil || len(events) != limit {
			t.Fatalf("claimed %d events of %d: %v", len(events), limit, err)
		}
		return events
	}
	d.addMany(t, 5000)
	dead := rowClaimer(t, s, "dead", time.Millisecond)
	d.bound(t, "claim", effort{reads: 60 * limit, sorted: 10 * limit}, func() { claim(dead) })
	live, m := rowClaimer(t, s, "live", time.Hour), relay.Member{ID: "live"}
	var events []relay.Event
	d.bound(t, "claim what ran out", effort{reads: 60 * limit, sorted: 10 * limit}, func() { events = claim(live) })
	d.bound(t, "renew", effort{reads: 20 * limit}, func() { renewClaims(t, live, "live", time.Hour) })
	d.bound(t, "settle", effort{reads: 50 * limit}, func() {
		written, err := live.Settle(t.Context(), m, mixed(events, 0))
		if err != nil || len(written) != limit {
			t.Errorf("settled %d events of %d: %v", len(written), limit, err)
		}
	})
	execute(t, d.db, "UPDATE "+d.table+" SET next_attempt_at = created_at + INTERVAL 1 MICROSECOND WHERE status = 'PENDING' AND retry_count = 0 AND next_attempt_at < utc_timestamp(6)")
	var due []relay.Event
	d.bound(t, "claim what fell due", effort{reads: 60 * limit, sorted: 10 * limit}, func() { due = claim(live) })
	d.bound(t, "give back", effort{reads: 20 * limit, sorted: 10}, func() {
		if _, err := live.Read(t.Context(), relay.ReadRequest{PerShard: 1, Limit: 1, MaxBytes: 1, InFlight: []string{due[0].ID}}); err != nil {
			t.Error(err)
		}
	})
	for _, id := range []string{"dead", "live"} {
		if err := s.Leave(t.Context(), relay.Member{ID: id}); err != nil {
			t.Error(err)
		}
	}
}
