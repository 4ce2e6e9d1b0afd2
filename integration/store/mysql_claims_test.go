package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
	"github.com/postrider/postrider/storetest"
)

func TestMySQLClaims(t *testing.T) {
	t.Parallel()
	for name, server := range mysqlServers {
		t.Run(name, func(t *testing.T) {
			storetest.RunClaims(t, func(t *testing.T) storetest.Harness { return newHarness(t, newMySQL(t, server)) })
		})
	}
}

// TestMySQLProducersInsertWhileAClaimerHoldsItsLocks is TestMySQLProducersInsertWhileARelayHoldsItsLocks for relays that
// claim rows.
func TestMySQLProducersInsertWhileAClaimerHoldsItsLocks(t *testing.T) {
	for name, config := range map[string]sqlstore.Config{"keep": {}, "delete": {DeletePublished: true}} {
		t.Run(name, func(t *testing.T) {
			eachMySQL(t, func(t *testing.T, d database) {
				d.store(t, config)
				produce := newPatient(t, d, "one")
				produce.again = "one"
				d.addMany(t, 100)
				d.addClaimed(t)
				execute(t, d.db, "INSERT INTO "+d.table+` (aggregate_type, aggregate_id, event_type, payload, created_at, next_attempt_at)
					VALUES ('order', 'due', 'OrderPlaced', '{}', '2000-01-01', '2000-01-02')`)
				commits := 0
				d.db = openHeld(t, d, func() {
					commits++
					produce.add(t)
				})
				claimOnce(t, d.open(t, config))
				if commits < 6 {
					t.Errorf("%d transactions of the relay were met, want every kind", commits)
				}
			})
		})
	}
}

// addClaimed adds events that other relays have claimed: one whose claim ran out, one whose claim ran out again, and one
// whose claim holds.
func (d database) addClaimed(t *testing.T) {
	t.Helper()
	execute(t, d.db, "INSERT INTO "+d.table+` (aggregate_type, aggregate_id, event_type, payload, status, claim_token, processing_until)
		VALUES ('order', 'expired', 'OrderPlaced', '{}', 'PROCESSING', '0192f0c1-9a3b-8c4d-8e5f-012345678900', '2000-01-01'),
		('order', 'suspect', 'OrderPlaced', '{}', 'PROCESSING', '0192f0c1-9a3b-8c4d-8e5f-012345678901', '2000-01-01'),
		('order', 'held', 'OrderPlaced', '{}', 'PROCESSING', '0192f0c1-9a3b-8c4d-8e5f-012345678902', '2999-01-01')`)
}

// claimOnce does everything that a relay does that claims rows.
func claimOnce(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	m := relay.Member{Name: "main", ID: "a", Claim: relay.ClaimRow, LeaseTTL: time.Hour}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	r := rowClaimer(t, s, m.ID, m.LeaseTTL)
	lease := []relay.Lease{{}}
	lease, err := r.Acquire(t.Context(), m, lease)
	must(err)
	events, err := r.Read(t.Context(), everything(50))
	must(err)
	if len(events) != 50 {
		t.Fatalf("claimed %d events, want 50", len(events))
	}
	again := everything(1)
	for _, e := range events[5:] {
		again.InFlight = append(again.InFlight, e.ID) // the first are given back
	}
	_, err = r.Read(t.Context(), again)
	must(err)
	renewClaims(t, r, m.ID, m.LeaseTTL)
	written, err := r.Settle(t.Context(), m, mixed(events[5:], 0))
	must(err)
	if len(written) != len(events)-5 {
		t.Errorf("%d of %d outcomes were written", len(written), len(events)-5)
	}
	must(r.Release(t.Context(), m, lease))
}

// mixed are outcomes of all kinds. An event that was tried often is published.
func mixed(events []relay.Event, turn int) []relay.Settlement {
	outcomes := make([]relay.Settlement, len(events))
	for i, e := range events {
		outcomes[i] = relay.Settlement{ID: e.ID, State: postrider.StatePublished, Error: "no"}
		switch {
		case (i+turn)%5 == 0 && e.RetryCount < 3:
			outcomes[i].State, outcomes[i].RetryCount = postrider.StatePending, e.RetryCount+1
		case (i+turn)%11 == 0:
			outcomes[i].State = postrider.StateDead
		}
	}
	return outcomes
}

// TestMySQLProducersAndClaimersNeverLockEachOtherOut is TestMySQLProducersAndRelayNeverLockEachOtherOut for relays that
// claim rows. Nor do these fail because of one another.
func TestMySQLProducersAndClaimersNeverLockEachOtherOut(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var producers, relays sync.WaitGroup
		for _, name := range []string{"one", "two", "three"} {
			produce := newPatient(t, d, name)
			producers.Go(func() {
				for range 100 {
					produce.add(t)
				}
			})
		}
		for i := range workers {
			id := fmt.Sprint("worker-", i)
			r := rowClaimer(t, s, id, time.Hour)
			relays.Go(func() { claimAndSettle(ctx, t, r, id) })
		}
		producers.Wait()
		cancel()
		relays.Wait()
		var left int
		if err := d.db.QueryRow("SELECT count(*) FROM " + d.table + " WHERE status IN ('PENDING', 'PROCESSING') AND aggregate_id <> 'border'").Scan(&left); err != nil || left != 0 {
			t.Errorf("%d events are left, %v", left, err)
		}
	})
}

// claimAndSettle works, and cleans, until ctx is done and nothing is left.
func claimAndSettle(ctx context.Context, t *testing.T, r *sqlstore.RowClaims, id string) {
	for turn := 0; ; turn++ {
		events, err := r.Read(t.Context(), everything(50))
		if err != nil {
			t.Errorf("%s: %v", id, err)
			return
		}
		if len(events) == 0 && ctx.Err() != nil {
			return
		}
		if turn%3 == 0 {
			renewClaims(t, r, id, time.Hour)
		}
		for len(events) > 0 {
			written, err := r.Settle(t.Context(), relay.Member{ID: id}, mixed(events, turn))
			if err != nil {
				t.Logf("%s: will be settled with the next turn: %v", id, err)
			} else if len(written) < len(events) {
				t.Errorf("%s: %d of %d outcomes were written", id, len(written), len(events))
				return
			}
			events = without(events, written)
		}
		if _, err := r.Clean(t.Context(), relay.CleanRequest{Limit: 1000}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func without(events []relay.Event, ids []string) (left []relay.Event) {
	gone := make(map[string]bool, len(ids))
	for _, id := range ids {
		gone[id] = true
	}
	for _, e := range events {
		if !gone[e.ID] {
			left = append(left, e)
		}
	}
	return left
}

// TestMySQLAHaltedClaimerIsInNobodysWay holds a claimer up before its commit. The others pass over what it has locked, and
// take it when the server has ended the claimer's session.
func TestMySQLAHaltedClaimerIsInNobodysWay(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Shards: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		d.addMany(t, 2)
		live := rowClaimer(t, s, "live", time.Hour)
		events, err := live.Read(ctx, everything(2))
		if err != nil {
			t.Fatal(err)
		}
		d.addClaimed(t)
		d.addMany(t, 6)
		goOn, failed := d.halt(ctx, t, 3)

		other := rowClaimer(t, s, "other", time.Hour)
		req := everything(3)
		claim := func() int {
			t.Helper()
			claimed, err := other.Read(ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range claimed {
				req.InFlight = append(req.InFlight, e.ID)
			}
			return len(claimed)
		}
		if n := claim(); n != 3 {
			t.Errorf("%d events were claimed beside the halted claimer, want 3", n)
		}
		renewClaims(t, live, "live", time.Hour)
		written, err := live.Settle(ctx, relay.Member{ID: "live"}, mixed(events, 1))
		if err != nil || len(written) != 2 {
			t.Errorf("settled %v, %v beside the halted claimer", written, err)
		}
		schema, _, _ := strings.Cut(d.table, ".")
		var transactions int
		if err := d.db.QueryRow(`SELECT count(*) FROM information_schema.innodb_trx t
			JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.db = ?`, schema).Scan(&transactions); err != nil || transactions != 1 {
			t.Errorf("%d transactions, %v: the others have waited for the halted claimer's end", transactions, err)
		}
		for len(req.InFlight) < 6+2 { // those that were PENDING, and those whose claims ran out
			claim()
		}
		close(goOn)
		if err := <-failed; err == nil {
			t.Error("the halted claimer has events that another one has claimed, too")
		}
	})
}

// halt returns when a claimer with a brief session is held up with events locked. It goes on when goOn is closed, and then
// its error comes.
func (d database) halt(ctx context.Context, t *testing.T, limit int) (goOn chan struct{}, failed <-chan error) {
	t.Helper()
	var claims atomic.Bool
	goOn, inside, result := make(chan struct{}), make(chan struct{}), make(chan error)
	d.dsn = withParameter(t, d.dsn, "wait_timeout", "5")
	d.db = openHeld(t, d, func() {
		if claims.Swap(false) {
			close(inside)
			<-goOn
		}
	})
	r := rowClaimer(t, d.open(t, sqlstore.Config{}), "halted", time.Hour)
	claims.Store(true)
	go func() {
		_, err := r.Read(ctx, everything(limit))
		result <- err
	}()
	<-inside
	return goOn, result
}
