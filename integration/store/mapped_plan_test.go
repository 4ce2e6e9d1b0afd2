package store

import (
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestMappedReadsFollowTheirIndex bounds what reads and settles touch in tables with 200,000 published rows, with every kind of
// misleading statistics.
func TestMappedReadsFollowTheirIndex(t *testing.T) {
	for name, table := range map[string]struct {
		index   string
		mapping sqlstore.Mapping
		config  sqlstore.Config
	}{
		"by the word": {"(status, id)", sqlstore.Mapping{Status: "status",
			Words: sqlstore.Words{Pending: []string{"NEW", "AGAIN"}, Published: "SENT", Dead: "FAILED"}}, sqlstore.Config{}},
		"by the time of publishing": {"(sent, id)", sqlstore.Mapping{PublishedAt: "sent"}, sqlstore.Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			d, plans := newPostgres(t, "POSTRIDER_TEST_POSTGRES"), &planLog{}
			d.db = plans.open(t, d.dsn)
			m := mapped{database: d.named("tasks"), mapping: table.mapping, config: table.config}
			m.mapping.ID, m.mapping.AggregateID, m.mapping.EventType, m.mapping.Payload = "id", "who", "what", "body"
			execute(t, m.db, "CREATE TABLE tasks (id bigserial PRIMARY KEY, who text, what text, body text, status text NOT NULL, sent timestamptz) WITH (autovacuum_enabled = off)")
			execute(t, m.db, "CREATE INDEX ON tasks "+table.index)
			pending := func() {
				execute(t, m.db, "INSERT INTO tasks (who, what, body, status) SELECT 'key-' || n % 100, 'Done', '{}', 'NEW' FROM generate_series(1, 1000) n")
			}
			pending()
			execute(t, m.db, "ANALYZE tasks")
			execute(t, m.db, "UPDATE tasks SET status = 'SENT', sent = now()")
			execute(t, m.db, "INSERT INTO tasks (who, what, body, status, sent) SELECT 'key-' || n % 100, 'Done', '{}', 'SENT', now() FROM generate_series(1, 200000) n")
			pending()
			h := m.hold(t)
			for _, statistics := range []string{"when every row was pending", "of the table as it is"} {
				var failed []relay.Settlement
				for i, e := range readSome(t, h.Store, everything(10)) {
					one := relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StatePending, Error: "no"}
					if i < 3 {
						one.State, one.HoldsKey = postrider.StateDead, true
					}
					failed = append(failed, one)
				}
				h.settleAll(failed...)
				plans.take()
				var done []relay.Settlement
				for _, e := range readSome(t, h.Store, everything(100)) {
					done = append(done, relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StatePublished})
				}
				plans.take().checkMapped(t, "read with statistics "+statistics, "tasks", 2500)
				h.settleAll(done...)
				plans.take().checkMapped(t, "settle with statistics "+statistics, "tasks", 2500)
				execute(t, m.db, "ANALYZE tasks")
			}
		})
	}
}

func (ps plans) checkMapped(t *testing.T, step, table string, pages int) {
	t.Helper()
	for _, p := range ps {
		p.walk(func(n node) {
			if n.Table == table && n.Type == "Seq Scan" {
				t.Errorf("%s: the table is scanned", step)
			}
		})
	}
	if n := ps.pages(); n > pages {
		t.Errorf("%s: %d pages are touched, want no more than %d", step, n, pages)
		for _, p := range ps {
			p.walk(func(n node) {
				t.Log(n.Type, n.Table, n.Index, n.Rows, "rows,", n.Loops, "loops,", n.Hit+n.Read, "pages")
			})
		}
	}
}
