package store

import (
	"database/sql"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestASettleInProgressShutsOutATakeoverButNoRenewal holds a settle up between its proof of the lease and its write.
func TestASettleInProgressShutsOutATakeoverButNoRenewal(t *testing.T) {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	s := d.store(t, sqlstore.Config{})
	a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Millisecond}
	leases := ownAll(t, s, a)
	d.addMany(t, 1)
	event := readSome(t, s, everything(1))[0]

	inTheWay := begin(t, d)
	lock(t, inTheWay, "SELECT FROM "+d.table+" FOR UPDATE")
	settled := d.settleBlocked(t, s, a, event, leases[event.Shard])

	a.LeaseTTL = time.Hour
	b := a
	b.ID = "b"
	taken, err := s.Acquire(t.Context(), b, leases)
	if err != nil {
		t.Fatal(err)
	}
	if len(taken) != shards-1 {
		t.Errorf("b took %d shards, want all but the one with the settle", len(taken))
	}
	if _, err := s.Renew(t.Context(), relay.Heartbeat{Member: a}, leases); err != nil {
		t.Errorf("renewing during the settle: %v", err)
	}
	inTheWay.Rollback(t)
	if ids := <-settled; len(ids) != 1 {
		t.Errorf("settled %v, want the event", ids)
	}
}

// TestASettleWaitsForATakeoverInProgress and then writes nothing.
func TestASettleWaitsForATakeoverInProgress(t *testing.T) {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	s := d.store(t, sqlstore.Config{})
	a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	leases := ownAll(t, s, a)
	d.addMany(t, 1)
	event := readSome(t, s, everything(1))[0]

	takeover := begin(t, d)
	lock(t, takeover, "SELECT FROM outbox_shards FOR UPDATE")
	lock(t, takeover, "UPDATE outbox_shards SET owner = 'b', epoch = epoch + 1")
	settled := d.settleBlocked(t, s, a, event, leases[event.Shard])
	takeover.Commit(t)
	if ids := <-settled; len(ids) != 0 {
		t.Errorf("settled %v after the takeover", ids)
	}
}

func everything(limit int) relay.ReadRequest {
	req := relay.ReadRequest{PerShard: limit, Limit: limit, MaxBytes: 1 << 30}
	for shard := range shards {
		req.Shards = append(req.Shards, shard)
	}
	return req
}

func lock(t *testing.T, tx producer, statement string) {
	t.Helper()
	if _, err := tx.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// settleBlocked starts to settle an event as published, and returns once that waits for a lock. The ids come later.
func (d database) settleBlocked(t *testing.T, s *sqlstore.Store, by relay.Member, e relay.Event, lease relay.Lease) <-chan []string {
	t.Helper()
	settled := make(chan []string)
	go func() {
		ids, err := s.Settle(t.Context(), by, []relay.Settlement{{ID: e.ID, Lease: lease, State: postrider.StatePublished}})
		if err != nil {
			t.Error(err)
		}
		settled <- ids
	}()
	awaitRow(t, d.db, `SELECT 1 FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND query LIKE '%outbox_shards%' AND query LIKE '%' || current_schema() || '%'`)
	return settled
}

// awaitRow returns once a query has a result.
func awaitRow(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	giveUp := time.NewTimer(30 * time.Second)
	defer giveUp.Stop()
	for {
		var n int
		err := db.QueryRowContext(t.Context(), query).Scan(&n)
		if err == nil {
			return
		}
		if err != sql.ErrNoRows {
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-giveUp.C:
			t.Fatalf("no result: %s", query)
		}
	}
}
