package store

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestReadsStayShortUnderAnOldSnapshot publishes a backlog while a transaction keeps the database from forgetting it.
func TestReadsStayShortUnderAnOldSnapshot(t *testing.T) {
	const backlog, batch = 20_000, 1000
	d, plans := newPostgres(t, "POSTRIDER_TEST_POSTGRES"), &planLog{}
	d.db = plans.open(t, os.Getenv("POSTRIDER_TEST_POSTGRES"))
	s := d.store(t, sqlstore.Config{Shards: planned.Shards})
	leases := ownAll(t, s, planned)
	d.addMany(t, backlog)

	old, err := d.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Rollback()
	var n int
	if err := old.QueryRow("SELECT count(*) FROM " + d.table).Scan(&n); err != nil || n != backlog {
		t.Fatalf("%d events, %v", n, err)
	}

	req := everything(batch)
	req.Shards = nil
	for shard := range planned.Shards {
		req.Shards = append(req.Shards, shard)
	}
	for range backlog/batch - 1 {
		var all []relay.Settlement
		for _, e := range readSome(t, s, req) {
			all = append(all, relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePublished})
		}
		settleSome(t, s, all)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		plans.take()
		readSome(t, s, req)
		if pages := plans.take().pages(); pages < 10*batch {
			break
		} else if ctx.Err() != nil {
			t.Fatalf("reading %d events still touches %d pages", batch, pages)
		}
		<-tick.C
	}
}

// TestALowerIDIsReadThoughHigherOnesWerePublishedLongAgo holds a producer's transaction open while reads go on.
func TestALowerIDIsReadThoughHigherOnesWerePublishedLongAgo(t *testing.T) {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	s := d.store(t, sqlstore.Config{})
	a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	leases := ownAll(t, s, a)
	slow := begin(t, d)
	lock(t, slow, "INSERT INTO "+d.table+" (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', 'slow', 'OrderPlaced', '{}')")
	for start := time.Now(); time.Since(start) < 3*time.Second; {
		d.addMany(t, 10)
		events, err := s.Read(t.Context(), everything(100))
		if err != nil {
			t.Fatal(err)
		}
		var all []relay.Settlement
		for _, e := range events {
			all = append(all, relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePublished})
		}
		if _, err := s.Settle(t.Context(), a, all); err != nil {
			t.Fatal(err)
		}
	}
	slow.Commit(t)
	if e := readSome(t, s, everything(1))[0]; e.AggregateID != "slow" {
		t.Errorf("read %+v, want the event that committed last", e)
	}
}

// TestARedrivenEventIsReadAtOnce though reads had passed it long ago.
func TestARedrivenEventIsReadAtOnce(t *testing.T) {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	s := d.store(t, sqlstore.Config{})
	a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	leases := ownAll(t, s, a)
	d.addMany(t, 1)
	first := readSome(t, s, everything(1))[0]
	dead := relay.Settlement{ID: first.ID, Lease: leases[first.Shard], State: postrider.StateDead, Error: "no"}
	if _, err := s.Settle(t.Context(), a, []relay.Settlement{dead}); err != nil {
		t.Fatal(err)
	}
	d.addMany(t, 100)
	for start := time.Now(); time.Since(start) < 1500*time.Millisecond; {
		readSome(t, s, everything(100))
	}
	if n, err := s.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 1 || err != nil {
		t.Fatalf("redrove %d, %v", n, err)
	}
	for _, e := range readSome(t, s, everything(101)) {
		if e.ID == first.ID {
			return
		}
	}
	t.Error("the redriven event is not read")
}
