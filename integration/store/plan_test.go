package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestPostgresPlans looks at the plans by which PostgreSQL really executes the store's statements over two million
// settled rows, with every kind of misleading statistics.
func TestPostgresPlans(t *testing.T) {
	for _, server := range []string{"POSTRIDER_TEST_POSTGRES", "POSTRIDER_TEST_POSTGRES18"} {
		t.Run(server, func(t *testing.T) {
			d, plans := newPostgres(t, server), &planLog{}
			d.db = plans.open(t, os.Getenv(server))
			s := d.store(t, sqlstore.Config{Shards: planned.Shards})
			d.loadHistory(t)
			for name, set := range map[string]func(testing.TB){
				"when every row was pending":     func(t testing.TB) { d.copyStatistics(t, 50_000) },
				"when the table had five rows":   func(t testing.TB) { d.copyStatistics(t, 5) },
				"when the table was empty":       func(t testing.TB) { d.copyStatistics(t, 0) },
				"that the server has made since": func(t testing.TB) { execute(t, d.db, "ANALYZE "+d.table) },
			} {
				t.Run("statistics "+name, func(t *testing.T) {
					d.addMany(t, 5000)
					set(t)
					checkPlans(t, s, plans)
				})
			}
		})
	}
}

func (d database) loadHistory(t testing.TB) {
	execute(t, d.db, "ALTER TABLE "+d.table+" SET (autovacuum_enabled = off)")
	execute(t, d.db, `INSERT INTO `+d.table+` (aggregate_type, aggregate_id, event_type, payload, status, created_at, next_attempt_at, published_at)
		SELECT 'order', 'order-' || n % 10000, 'OrderPlaced', '{}', 'PUBLISHED', now() - interval '2 hours', now() - interval '2 hours', now()
		FROM generate_series(1, 2000000) AS n`)
}

// copyStatistics makes the server believe what it would if it had last looked when the table had so many rows, all
// PENDING: it takes the statistics over from a copy of the table.
func (d database) copyStatistics(t testing.TB, rows int) {
	t.Helper()
	twin := database{db: d.db, table: d.table + "_twin", many: d.many}
	execute(t, d.db, "DROP TABLE IF EXISTS "+twin.table)
	execute(t, d.db, "CREATE TABLE "+twin.table+" (LIKE "+d.table+" INCLUDING ALL)")
	twin.addMany(t, rows)
	execute(t, d.db, "ANALYZE "+twin.table)
	execute(t, d.db, "DELETE FROM pg_statistic WHERE starelid = $1::text::regclass", d.table)
	execute(t, d.db, "UPDATE pg_statistic SET starelid = $1::text::regclass WHERE starelid = $2::text::regclass", d.table, twin.table)
	execute(t, d.db, `UPDATE pg_class SET (relpages, reltuples) = (SELECT relpages, reltuples FROM pg_class WHERE oid = $2::text::regclass)
		WHERE oid = $1::text::regclass`, d.table, twin.table)
}

var planned = relay.Member{Name: "main", ID: "a", Shards: 64, LeaseTTL: time.Hour}

// checkPlans does what a relay does, and bounds what each step may cost.
func checkPlans(t *testing.T, s *sqlstore.Store, plans *planLog) {
	leases := ownAll(t, s, planned)
	req := relay.ReadRequest{PerShard: 50, Limit: 500, MaxBytes: 1 << 30}
	for shard := range planned.Shards {
		req.Shards = append(req.Shards, shard)
	}
	events := readSome(t, s, req)
	for _, e := range events {
		req.InFlight = append(req.InFlight, e.ID)
	}
	plans.take()

	events = readSome(t, s, req)
	plans.take().check(t, "read", bounds{
		indexes: []string{"ready", "waiting", "blocking", "gaps"}, also: "pkey", sorted: 2 * req.PerShard, pages: 20 * req.Limit,
	})

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
	settleSome(t, s, published)
	plans.take().check(t, "settle published", bounds{indexes: []string{"pkey"}, sorted: planned.Shards, pages: 40 * len(published)})
	settleSome(t, s, failed)
	plans.take().check(t, "settle failed", bounds{indexes: []string{"pkey"}, sorted: planned.Shards, pages: 80 * len(failed)})

	readSome(t, s, req)
	plans.take().check(t, "read beside held keys", bounds{
		indexes: []string{"ready", "waiting", "blocking", "gaps"}, also: "pkey", sorted: 2 * req.PerShard, pages: 30 * req.Limit,
	})

	if _, err := s.Backlog(t.Context()); err != nil {
		t.Fatal(err)
	}
	plans.take().check(t, "measure the backlog", bounds{
		indexes: []string{"ready", "waiting", "failed", "processing", "dead", "discarded"}, sorted: 3 * planned.Shards, pages: 30_000,
	})
	if _, err := s.Status(t.Context(), planned.Name); err != nil {
		t.Fatal(err)
	}
	plans.take().check(t, "tell the status", bounds{
		indexes: []string{"ready", "waiting", "failed", "processing", "dead", "discarded"}, sorted: 3 * planned.Shards, pages: 30_000,
	})
	if _, err := s.Clean(t.Context(), relay.CleanRequest{Limit: 1000, Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	plans.take().check(t, "clean", bounds{indexes: []string{"pkey"}, pages: 10_000})
}

func ownAll(t testing.TB, s *sqlstore.Store, m relay.Member) []relay.Lease {
	t.Helper()
	table, err := s.Renew(t.Context(), relay.Heartbeat{Member: m}, nil)
	if err != nil {
		t.Fatal(err)
	}
	leases := make([]relay.Lease, m.Shards)
	for _, l := range table.Shards {
		leases[l.Shard] = l.Lease
	}
	taken, err := s.Acquire(t.Context(), m, leases)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range taken {
		leases[l.Shard] = l
	}
	return leases
}

func readSome(t testing.TB, s *sqlstore.Store, req relay.ReadRequest) []relay.Event {
	t.Helper()
	events, err := s.Read(t.Context(), req)
	if err != nil || len(events) != req.Limit {
		t.Fatalf("read %d events of %d: %v", len(events), req.Limit, err)
	}
	return events
}

func settleSome(t testing.TB, s *sqlstore.Store, settlements []relay.Settlement) {
	t.Helper()
	settled, err := s.Settle(t.Context(), planned, settlements)
	if err != nil || len(settled) != len(settlements) {
		t.Fatalf("settled %d events of %d: %v", len(settled), len(settlements), err)
	}
}

// planLog collects the plans that the server's auto_explain reports of each statement.
type planLog struct {
	mu   sync.Mutex
	list plans
}

type plans []node

// open connects so that the server reports the plan of every statement to the log.
func (l *planLog) open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(sqlstore.PostgresDSN(dsn))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(config.RuntimeParams, map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on",
		"auto_explain.log_buffers": "on", "auto_explain.log_format": "json", "auto_explain.log_level": "notice",
	})
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { l.add(t, n.Message) }
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { db.Close() })
	return db
}

func (l *planLog) add(t *testing.T, message string) {
	_, text, ok := strings.Cut(message, "plan:\n")
	if !ok {
		return
	}
	var p struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Errorf("%v in %s", err, text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, p.Plan)
}

// take returns what was collected since the last take.
func (l *planLog) take() plans {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	return list
}

// bounds say what the plans of one step must keep to.
type bounds struct {
	indexes []string // of the outbox: all of these are used, and no other
	also    string   // but for this one
	sorted  int      // no sort takes more rows than this
	pages   int      // no more pages than this are touched
}

// pages is how many pages were touched in all.
func (ps plans) pages() (n int) {
	for _, p := range ps {
		n += p.Hit + p.Read
	}
	return n
}

func (ps plans) check(t *testing.T, step string, b bounds) {
	t.Helper()
	used := map[string]bool{}
	for _, p := range ps {
		p.walk(func(n node) {
			if n.Table == "outbox_events" && n.Type == "Seq Scan" {
				t.Errorf("%s: the table is scanned", step)
			}
			if index, ok := strings.CutPrefix(n.Index, "outbox_events_"); ok && index != b.also {
				used[index] = true
			}
			if strings.HasSuffix(n.Type, "Sort") && int(n.Plans[0].Rows) > b.sorted {
				t.Errorf("%s: %v rows are sorted", step, n.Plans[0].Rows)
			}
		})
	}
	if len(used) != len(b.indexes) || slices.ContainsFunc(b.indexes, func(index string) bool { return !used[index] }) {
		t.Errorf("%s: uses the indexes %v, want %v", step, used, b.indexes)
	}
	if pages := ps.pages(); pages > b.pages {
		t.Errorf("%s: %d pages are touched, want no more than %d", step, pages, b.pages)
	}
	if t.Failed() {
		for _, p := range ps {
			p.walk(func(n node) {
				t.Log(strings.TrimSpace(fmt.Sprintln(n.Type, n.Table, n.Index, n.Rows, "rows,", n.Loops, "loops,", n.Hit+n.Read, "pages")))
			})
		}
	}
}

// node is a part of a plan.
type node struct {
	Type  string  `json:"Node Type"`
	Index string  `json:"Index Name"`
	Table string  `json:"Relation Name"`
	Rows  float64 `json:"Actual Rows"` // in each loop
	Loops float64 `json:"Actual Loops"`
	Hit   int     `json:"Shared Hit Blocks"`
	Read  int     `json:"Shared Read Blocks"`
	Plans []node  `json:"Plans"`
}

func (n node) walk(visit func(node)) {
	visit(n)
	for _, child := range n.Plans {
		child.walk(visit)
	}
}
