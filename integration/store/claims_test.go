package store

import (
	"context"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
	"github.com/postrider/postrider/storetest"
)

func TestPostgresClaims(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"POSTRIDER_TEST_POSTGRES", "POSTRIDER_TEST_POSTGRES18"} {
		t.Run(server, func(t *testing.T) {
			storetest.RunClaims(t, func(t *testing.T) storetest.Harness { return newHarness(t, newPostgres(t, server)) })
		})
	}
}

func TestSQLiteClaims(t *testing.T) {
	t.Parallel()
	storetest.RunClaims(t, func(t *testing.T) storetest.Harness { return newHarness(t, newSQLite(t)) })
}

// rowClaimer returns a store that claims rows for a member that is at work.
func rowClaimer(t *testing.T, s *sqlstore.Store, id string, lease time.Duration) *sqlstore.RowClaims {
	t.Helper()
	r := s.RowClaims()
	renewClaims(t, r, id, lease)
	return r
}

func renewClaims(t *testing.T, r *sqlstore.RowClaims, id string, lease time.Duration) {
	t.Helper()
	m := relay.Member{Name: "main", ID: id, Claim: relay.ClaimRow, LeaseTTL: lease}
	if _, err := r.Renew(t.Context(), relay.Heartbeat{Member: m}, nil); err != nil {
		t.Fatal(err)
	}
}

// TestARenewalDuringAReadCoversItsClaims holds a read up between its candidates and its claims: the relay counts its lease
// from the renewal, so what the read then claims must last as long.
func TestARenewalDuringAReadCoversItsClaims(t *testing.T) {
	const lease = 500 * time.Millisecond
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	s := d.store(t, sqlstore.Config{})
	d.addMany(t, 1)
	if _, err := rowClaimer(t, s, "dead", time.Millisecond).Read(t.Context(), everything(1)); err != nil {
		t.Fatal(err)
	}
	r := rowClaimer(t, s, "a", lease)

	inTheWay := begin(t, d)
	lock(t, inTheWay, "LOCK TABLE outbox_attempts") // where the read notes the claim that ran out
	read := make(chan []relay.Event)
	go func() {
		events, err := r.Read(t.Context(), everything(1))
		if err != nil {
			t.Error(err)
		}
		read <- events
	}()
	// Its claims count from the start of its transaction, and outlive a lease by a fifth.
	awaitRow(t, d.db, `SELECT 1 FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND query LIKE '%outbox_attempts%' AND query LIKE '%' || current_schema() || '%'
		  AND clock_timestamp() - xact_start > interval '200 milliseconds'`)
	var renewedAt time.Time
	if err := d.db.QueryRowContext(t.Context(), "SELECT clock_timestamp()").Scan(&renewedAt); err != nil {
		t.Fatal(err)
	}
	renewClaims(t, r, "a", lease)
	inTheWay.Rollback(t)
	if events := <-read; len(events) != 1 {
		t.Fatalf("claimed %d events, want 1", len(events))
	}
	var until time.Time
	if err := d.db.QueryRowContext(t.Context(), "SELECT processing_until FROM "+d.table).Scan(&until); err != nil {
		t.Fatal(err)
	}
	if until.Before(renewedAt.Add(lease)) {
		t.Errorf("the claim runs out at %v, %v before the lease that was renewed at %v", until, renewedAt.Add(lease).Sub(until), renewedAt)
	}
}

// TestAClaimWhoseAnswerWasLostIsGivenBackByTheNextRead cuts a read off after the server has its claims.
func TestAClaimWhoseAnswerWasLostIsGivenBackByTheNextRead(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		d.addMany(t, 2)
		deaf, err := sqlstore.Open(openDeaf(t, d), d.dialect, sqlstore.Config{Table: d.table, Shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		a := rowClaimer(t, deaf, "a", time.Hour)
		deafness.Store(true)
		if events, err := a.Read(t.Context(), everything(2)); err == nil {
			t.Fatalf("read %d events although the answer was lost", len(events))
		}
		deafness.Store(false)
		b := rowClaimer(t, s, "b", time.Hour)
		if events, err := b.Read(t.Context(), everything(2)); err != nil || len(events) != 0 {
			t.Fatalf("read %d events that a has claimed, %v", len(events), err)
		}
		nothing := everything(2)
		nothing.Skip = []relay.Kind{{AggregateType: "order", EventType: "OrderPlaced"}}
		if _, err := a.Read(t.Context(), nothing); err != nil {
			t.Fatal(err)
		}
		if events, err := b.Read(t.Context(), everything(2)); err != nil || len(events) != 2 {
			t.Errorf("read %d events after a gave 2 back, %v", len(events), err)
		}
	})
}

// TestClaimersPassOverWhatIsLocked shows that nobody waits for a claimer that halted in the middle.
func TestClaimersPassOverWhatIsLocked(t *testing.T) {
	everyServer(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		d.addMany(t, 3)
		inTheWay := begin(t, d)
		lock(t, inTheWay, "SELECT id FROM "+d.table+" WHERE id = 2 FOR UPDATE")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		events, err := rowClaimer(t, s, "a", time.Hour).Read(ctx, everything(3))
		if err != nil || len(events) != 2 || events[0].ID == "2" || events[1].ID == "2" {
			t.Errorf("claimed %d events, %v; want all but the one that is locked", len(events), err)
		}
		inTheWay.Rollback(t)
	})
}

func TestDeletePublishedDeletesUnderAClaim(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{DeletePublished: true})
		d.addMany(t, 1)
		claimed := func(r *sqlstore.RowClaims) []relay.Event {
			t.Helper()
			events, err := r.Read(t.Context(), everything(1))
			if err != nil {
				t.Fatal(err)
			}
			return events
		}
		settle := func(r *sqlstore.RowClaims, id string, e relay.Event) int {
			t.Helper()
			ids, err := r.Settle(t.Context(), relay.Member{ID: id}, []relay.Settlement{{ID: e.ID, State: postrider.StatePublished}})
			if err != nil {
				t.Fatal(err)
			}
			return len(ids)
		}
		a, b := rowClaimer(t, s, "a", time.Millisecond), rowClaimer(t, s, "b", time.Hour)
		stale := claimed(a)[0]
		fresh := claimed(b)
		for giveUp := time.Now().Add(30 * time.Second); len(fresh) == 0 && time.Now().Before(giveUp); {
			fresh = claimed(b)
		}
		if len(fresh) != 1 || settle(a, "a", stale) != 0 {
			t.Fatalf("b has %d events, or a deleted one without a claim", len(fresh))
		}
		if settle(b, "b", fresh[0]) != 1 {
			t.Error("not deleted under the claim")
		}
		var left int
		if err := d.db.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM "+d.table+") + (SELECT count(*) FROM outbox_attempts)").Scan(&left); err != nil || left != 0 {
			t.Errorf("%d rows are left, %v", left, err)
		}
	})
}
