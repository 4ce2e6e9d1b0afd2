package store

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestMySQLPlans counts the rows that the servers really read and sort for the store's statements, beside 300,000
// settled rows and with misleading statistics.
func TestMySQLPlans(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		d.db.SetMaxOpenConns(1) // the counters are those of a connection
		s := d.store(t, sqlstore.Config{Shards: planned.Shards})
		execute(t, d.db, "ALTER TABLE "+d.table+" STATS_AUTO_RECALC = 0")
		execute(t, d.db, "ANALYZE TABLE "+d.table)
		d.loadSettled(t)
		t.Run("statistics of an empty table", func(t *testing.T) { checkWork(t, d, s) })
		execute(t, d.db, "ANALYZE TABLE "+d.table)
		t.Run("statistics of a settled table", func(t *testing.T) { checkWork(t, d, s) })
	})
}

func (d database) loadSettled(t testing.TB) {
	t.Helper()
	execute(t, d.db, "SET SESSION sql_log_bin = 0")
	for range 3 {
		execute(t, d.db, `INSERT INTO `+d.table+` (aggregate_type, aggregate_id, event_type, payload, status, created_at, next_attempt_at, published_at)
			SELECT 'order', concat('order-', n % 10000), 'OrderPlaced', '{}', 'PUBLISHED',
				utc_timestamp(6) - INTERVAL 2 HOUR, utc_timestamp(6) - INTERVAL 2 HOUR, utc_timestamp(6)
			FROM JSON_TABLE(concat('[0', repeat(',0', 99999), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) numbers`)
	}
}

// checkWork does what relays and operators do, and bounds what each step may cost.
func checkWork(t *testing.T, d database, s *sqlstore.Store) {
	leases := ownAll(t, s, planned)
	d.addMany(t, 5000)
	req := relay.ReadRequest{PerShard: 50, Limit: 500, MaxBytes: 1 << 30}
	for shard := range planned.Shards {
		req.Shards = append(req.Shards, shard)
	}
	for _, e := range readSome(t, s, req) {
		req.InFlight = append(req.InFlight, e.ID)
	}
	var events []relay.Event
	d.bound(t, "read", effort{reads: 100 * req.Limit, sorted: 10 * req.Limit}, func() { events = readSome(t, s, req) })

	var published, failed []relay.Settlement
	for i, e := range events {
		one := relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePublished, RetryAfter: time.Hour, Error: "no"}
		switch {
		case i < 10:
			one.State, one.HoldsKey = postrider.StateDead, true
			failed = append(failed, one)
		case i < 20:
			one.State = postrider.StatePending
			failed = append(failed, one)
		default:
			published = append(published, one)
		}
	}
	d.bound(t, "settle published", effort{reads: 20 * len(published)}, func() { settleSome(t, s, published) })
	d.bound(t, "settle failed", effort{reads: 50 * len(failed)}, func() { settleSome(t, s, failed) })
	d.bound(t, "read beside held keys", effort{reads: 100 * req.Limit, sorted: 10 * req.Limit}, func() { readSome(t, s, req) })
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d.bound(t, "measure the backlog", effort{reads: 30_000, sorted: 10 * planned.Shards}, func() { must(s.Backlog(t.Context())) })
	d.bound(t, "tell the status", effort{reads: 30_000, sorted: 10 * planned.Shards}, func() { must(s.Status(t.Context(), planned.Name)) })
	d.bound(t, "clean", effort{reads: 20_000}, func() {
		must(s.Clean(t.Context(), relay.CleanRequest{Limit: 1000, Retention: time.Hour}))
	})
	d.bound(t, "list dead letters", effort{reads: 1000}, func() {
		must(s.Events(t.Context(), operator.Filter{State: postrider.StateDead}))
	})
	d.bound(t, "group dead letters", effort{reads: 1000}, func() { must(s.DeadGroups(t.Context(), 10)) })
	d.bound(t, "retry", effort{reads: 2000, sorted: 100}, func() { must(s.Retry(t.Context(), operator.Filter{}, operator.Action{Who: "me"})) })
	d.bound(t, "look for odd rows", effort{reads: 10_000, sorted: 10 * planned.Shards}, func() {
		for _, f := range s.Verify(t.Context()) {
			if f.Level != operator.LevelOK {
				t.Errorf("%+v", f)
			}
		}
	})
}

// effort is what a step costs: rows read, those of temporary tables among them, and rows sorted.
type effort struct{ reads, sorted int }

func (d database) bound(t *testing.T, step string, most effort, do func()) {
	t.Helper()
	before := d.counters(t)
	do()
	var cost effort
	for name, value := range d.counters(t) {
		switch {
		case strings.HasPrefix(name, "Handler_read"):
			cost.reads += value - before[name]
		case name == "Sort_rows":
			cost.sorted += value - before[name]
		}
	}
	if cost.reads > most.reads || cost.sorted > most.sorted {
		t.Errorf("%s: %d rows are read and %d sorted, want no more than %d and %d", step, cost.reads, cost.sorted, most.reads, most.sorted)
		after := d.counters(t)
		for _, name := range slices.Sorted(maps.Keys(after)) {
			t.Logf("%s: %d", name, after[name]-before[name])
		}
	}
}

func (d database) counters(t *testing.T) map[string]int {
	t.Helper()
	rows, err := d.db.QueryContext(t.Context(), "SHOW SESSION STATUS WHERE variable_name LIKE 'Handler_read%' OR variable_name = 'Sort_rows'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	counters := make(map[string]int)
	for rows.Next() {
		var name string
		var value int
		if err := rows.Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		counters[name] = value
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return counters
}
