package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestMySQLARelayDoesNotWaitForAProducer that has met an event by its deduplication key, and so has locked it. It would
// wait with other events locked, and the producer could ask for one of those next.
func TestMySQLARelayDoesNotWaitForAProducer(t *testing.T) {
	for name, config := range map[string]sqlstore.Config{"keep": {}, "delete": {DeletePublished: true}} {
		t.Run(name, func(t *testing.T) {
			eachMySQL(t, func(t *testing.T, d database) {
				s := d.store(t, config)
				a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
				leases := ownAll(t, s, a)
				produce := newPatient(t, d, "one")
				insert := "INSERT INTO " + d.table + ` (aggregate_type, aggregate_id, event_type, payload, dedup_key)
					VALUES ('order', 'key', 'OrderPlaced', '{}', ?) ON DUPLICATE KEY UPDATE id = id`
				produce.exec(t, insert, "one-first")
				produce.exec(t, insert, "one-second")
				var outcomes []relay.Settlement
				for _, e := range readSome(t, s, everything(2)) {
					outcomes = append(outcomes, relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePublished})
				}
				settle := func() ([]string, error) {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					return s.Settle(ctx, a, outcomes)
				}

				produce.exec(t, "START TRANSACTION")
				produce.exec(t, insert, "one-second")
				free, err := settle()
				if err == nil || !strings.Contains(err.Error(), "other transactions are in the way") || len(free) != 1 {
					t.Errorf("settled %v, %v; want the event that is free, and to be told of the producer's lock", free, err)
				}
				produce.exec(t, insert, "one-first")
				produce.exec(t, "COMMIT")
				if ids, err := settle(); err != nil || len(ids) != 1 || ids[0] == free[0] {
					t.Errorf("settled %v, %v after the producer's commit", ids, err)
				}
			})
		})
	}
}

// TestMySQLCleaningPassesOverWhatAProducerHasLocked and comes back for it.
func TestMySQLCleaningPassesOverWhatAProducerHasLocked(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		insert := "INSERT INTO " + d.table + ` (aggregate_type, aggregate_id, event_type, payload, status, published_at, dedup_key)
			VALUES ('order', 'key', 'OrderPlaced', '{}', 'PUBLISHED', '2020-01-01', ?) ON DUPLICATE KEY UPDATE id = id`
		produce := newPatient(t, d, "one")
		for _, key := range []string{"one-1", "one-2", "one-3"} {
			produce.exec(t, insert, key)
		}
		clean := func() int {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			result, err := s.Clean(ctx, relay.CleanRequest{Limit: 100})
			if err != nil {
				t.Error(err)
			}
			return result.Deleted
		}
		produce.exec(t, "START TRANSACTION")
		produce.exec(t, insert, "one-2")
		if n := clean(); n != 2 {
			t.Errorf("%d deleted beside the lock, want 2", n)
		}
		produce.exec(t, "COMMIT")
		if n := clean(); n != 1 {
			t.Errorf("%d deleted after the commit, want the last one", n)
		}
	})
}
