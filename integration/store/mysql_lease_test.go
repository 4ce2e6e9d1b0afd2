package store

import (
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestMySQLASettleInProgressShutsOutATakeover holds a settle up before its commit.
func TestMySQLASettleInProgressShutsOutATakeover(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Millisecond}
		leases := ownAll(t, s, a)
		d.addMany(t, 1)
		event := readSome(t, s, everything(1))[0]

		b := a
		b.ID, b.LeaseTTL = "b", time.Hour
		held := d
		held.db = openHeld(t, d, func() {
			taken, err := s.Acquire(t.Context(), b, leases)
			if err != nil || len(taken) != shards-1 {
				t.Errorf("b took %v, %v; want all but the one with the settle", taken, err)
			}
		})
		settled, err := held.open(t, sqlstore.Config{}).Settle(t.Context(), a,
			[]relay.Settlement{{ID: event.ID, Lease: leases[event.Shard], State: postrider.StatePublished}})
		if err != nil || len(settled) != 1 {
			t.Errorf("settled %v, %v; want the event", settled, err)
		}
	})
}

// TestMySQLASettleWaitsForATakeoverInProgress and then writes nothing.
func TestMySQLASettleWaitsForATakeoverInProgress(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
		leases := ownAll(t, s, a)
		d.addMany(t, 1)
		event := readSome(t, s, everything(1))[0]

		takeover := begin(t, d)
		lock(t, takeover, "UPDATE outbox_shards SET owner = 'b', epoch = epoch + 1")
		settled := make(chan []string)
		go func() {
			ids, err := s.Settle(t.Context(), a, []relay.Settlement{{ID: event.ID, Lease: leases[event.Shard], State: postrider.StatePublished}})
			if err != nil {
				t.Error(err)
			}
			settled <- ids
		}()
		schema, _, _ := strings.Cut(d.table, ".")
		awaitRow(t, d.db, "SELECT 1 FROM information_schema.processlist WHERE db = '"+schema+"' AND info LIKE '%LOCK IN SHARE MODE%' AND id <> connection_id()")
		takeover.Commit(t)
		if ids := <-settled; len(ids) != 0 {
			t.Errorf("settled %v after the takeover", ids)
		}
	})
}
