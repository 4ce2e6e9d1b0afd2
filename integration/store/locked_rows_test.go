package store

import (
	"context"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// A row that somebody keeps locked, such as a person with an open transaction, must not hold up the settlement of others.
func TestSettleWritesWhatOthersDoNotKeepLocked(t *testing.T) {
	everyServer(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		m := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
		leases := ownAll(t, s, m)
		const rows = 50
		d.addMany(t, rows)
		req := relay.ReadRequest{PerShard: rows, Limit: rows, MaxBytes: 1 << 20}
		for shard := range shards {
			req.Shards = append(req.Shards, shard)
		}
		var settlements []relay.Settlement
		for i, e := range readSome(t, s, req) {
			one := relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePublished, PublishedTo: "x"}
			if i%2 == 0 {
				one.State, one.Error = postrider.StateDead, "refused"
			}
			settlements = append(settlements, one)
		}
		tx, err := d.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		for _, locked := range settlements[:2] { // one of each kind
			if _, err := tx.ExecContext(t.Context(), "SELECT id FROM "+d.table+" WHERE id = "+locked.ID+" FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		settled, err := s.Settle(ctx, m, settlements)
		if err == nil || len(settled) != rows-2 {
			t.Errorf("%d of %d rows were settled while 2 are locked, error %v", len(settled), rows, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if settled, err := s.Settle(t.Context(), m, settlements[:2]); err != nil || len(settled) != 2 {
			t.Errorf("%d of 2 rows were settled once they are free, error %v", len(settled), err)
		}
	})
}

// What no clock and no counter can hold must not stop the reads of all keys.
func TestValuesAtTheEndsOfTheirTypesHarmNobody(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		d.addMany(t, 3)
		const add = " (aggregate_type, aggregate_id, event_type, payload, aggregate_version) VALUES ('order', 'k', 'E', '{}', "
		execute(t, d.db, "INSERT INTO "+d.table+add+"-9223372036854775808)")
		execute(t, d.db, "INSERT INTO "+d.table+add+"9223372036854775807)")
		rows := 5
		if d.dialect.String() == "postgres" {
			for _, column := range []string{"created_at", "next_attempt_at"} {
				for _, value := range []string{"infinity", "-infinity"} {
					execute(t, d.db, "INSERT INTO "+d.table+" (aggregate_type, aggregate_id, event_type, payload, "+column+
						") VALUES ('order', '"+column+value+"', 'E', '{}', '"+value+"')")
				}
			}
			rows += 3 // an event that is due at infinity never is
		}
		ownAll(t, s, relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour})
		req := relay.ReadRequest{PerShard: 100, Limit: 100, MaxBytes: 1 << 20}
		for shard := range shards {
			req.Shards = append(req.Shards, shard)
		}
		events, err := s.Read(t.Context(), req)
		if err != nil || len(events) != rows {
			t.Errorf("%d events are read, want %d; error %v", len(events), rows, err)
		}
		if _, err := s.Backlog(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := s.Status(t.Context(), ""); err != nil {
			t.Error(err)
		}
		if _, err := s.Events(t.Context(), operator.Filter{}); err != nil {
			t.Error(err)
		}
	})
}
