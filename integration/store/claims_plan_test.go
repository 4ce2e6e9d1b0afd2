package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestPostgresPlansOfClaims looks at the plans by which PostgreSQL really executes the statements of row claims over
// settled rows and events that are not due, with misleading statistics.
func TestPostgresPlansOfClaims(t *testing.T) {
	d, plans := newPostgres(t, "POSTRIDER_TEST_POSTGRES"), &planLog{}
	d.db = plans.open(t, d.dsn)
	s := d.store(t, sqlstore.Config{Shards: planned.Shards})
	execute(t, d.db, "ALTER TABLE "+d.table+" SET (autovacuum_enabled = off)")
	for _, row := range []string{"'PUBLISHED', now()", "'PENDING', now() + interval '1 day'"} {
		execute(t, d.db, `INSERT INTO `+d.table+` (aggregate_type, aggregate_id, event_type, payload, status, next_attempt_at)
			SELECT 'order', 'order-' || n % 10000, 'OrderPlaced', '{}', `+row+` FROM generate_series(1, 100000) AS n`)
	}
	for _, rows := range []int{0, 5, 5000} {
		t.Run(fmt.Sprintf("statistics when the table had %d rows", rows), func(t *testing.T) {
			d.addMany(t, 5000)
			d.copyStatistics(t, rows)
			checkClaimPlans(t, s, plans)
		})
	}
}

// followIndexes checks that no step goes through the table or sorts more than a batch. Which index it takes is the server's
// choice: the claimed events are few.
func (ps plans) followIndexes(t *testing.T, step string, pages int) {
	t.Helper()
	if len(ps) == 0 {
		t.Errorf("%s: no plan was reported", step)
	}
	for _, p := range ps {
		p.walk(func(n node) {
			if n.Table == "outbox_events" && n.Type == "Seq Scan" || n.Index == "outbox_events_waiting" && n.Rows*n.Loops > 1000 {
				t.Errorf("%s: %s of %v rows in %s %s", step, n.Type, n.Rows*n.Loops, n.Table, n.Index)
			}
			if strings.HasSuffix(n.Type, "Sort") && n.Plans[0].Rows > 1000 {
				t.Errorf("%s: %v rows are sorted", step, n.Plans[0].Rows)
			}
		})
	}
	if touched := ps.pages(); touched > pages {
		t.Errorf("%s: %d pages are touched, want no more than %d", step, touched, pages)
	}
}

// checkClaimPlans does what a relay does that claims rows, and bounds what each step may cost.
func checkClaimPlans(t *testing.T, s *sqlstore.Store, plans *planLog) {
	const limit = 500
	var m relay.Member
	read := func(id string, lease time.Duration) (*sqlstore.RowClaims, []relay.Event) {
		t.Helper()
		m = relay.Member{Name: "main", ID: id, Claim: relay.ClaimRow, LeaseTTL: lease}
		r := rowClaimer(t, s, id, lease)
		plans.take()
		events, err := r.Read(t.Context(), everything(limit))
		if err != nil || len(events) != limit {
			t.Fatalf("claimed %d events of %d: %v", len(events), limit, err)
		}
		return r, events
	}
	_, _ = read("dead", time.Millisecond)
	plans.take().followIndexes(t, "claim", 60*limit)
	r, events := read("live", time.Hour)
	plans.take().followIndexes(t, "claim what ran out", 60*limit)

	if _, err := r.Renew(t.Context(), relay.Heartbeat{Member: m}, nil); err != nil {
		t.Fatal(err)
	}
	plans.take().followIndexes(t, "renew", 60*limit)

	var settlements []relay.Settlement
	for i, e := range events {
		one := relay.Settlement{ID: e.ID, State: postrider.StatePublished, Error: "no"}
		if i%2 == 0 {
			one.State = postrider.StateDead
		}
		settlements = append(settlements, one)
	}
	settled, err := r.Settle(t.Context(), m, settlements)
	if err != nil || len(settled) != limit {
		t.Fatalf("settled %d events of %d: %v", len(settled), limit, err)
	}
	plans.take().followIndexes(t, "settle", 60*limit)
	if err := s.Leave(t.Context(), relay.Member{ID: "live"}); err != nil {
		t.Fatal(err)
	}
}
