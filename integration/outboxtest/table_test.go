// Package outboxtest tests package outboxtest on real databases.
package outboxtest

import (
	"reflect"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/outboxtest"
)

func TestAddedReadsEventsBack(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		for _, binary := range []bool{false, true} {
			cfg := postrider.Config{Table: "Events", Binary: binary}
			payload := `{ "n" : 1.0, "n": 9007199254740993, "s": "ä" }`
			if binary {
				cfg.Table, payload = "blobs", "\x00\xff"
			}
			outbox := db.InitOutbox(t, cfg)
			table := outboxtest.Table{Dialect: db.Dialect, Name: cfg.Table}
			want := []postrider.Event{
				{
					ID: "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", AggregateType: "order", AggregateID: "ä 1", Type: "Placed", AggregateVersion: 7,
					Topic: "orders", Payload: []byte(payload), ContentType: "application/x-test", Headers: map[string]string{"a": "ü", "B": ""},
					DedupKey: "d", At: time.Date(2096, 1, 2, 3, 4, 5, 678e6, time.UTC),
				},
				{
					ID: "0192f0c1-9a3b-7c4d-8e5f-0123456789ac", AggregateType: "order", AggregateID: "2", Type: "Paid",
					Payload: []byte(payload), ContentType: "application/json",
				},
			}
			tx := db.Begin(t)
			if _, err := outbox.Add(t.Context(), tx, want...); err != nil {
				t.Fatal(err)
			}
			if got := table.Added(t, tx, outboxtest.Mark{}); !reflect.DeepEqual(got, want) {
				t.Errorf("binary %v: got\n%+v, want\n%+v", binary, got, want)
			}
			if err := tx.Rollback(); err != nil { // SQLite locks the file
				t.Fatal(err)
			}
		}
	})
}

func TestAddedSinceMark(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		table := outboxtest.Table{Dialect: db.Dialect}
		add := func(commit bool, types ...string) (inside []postrider.Event) {
			tx := db.Begin(t)
			mark := table.Mark(t, tx)
			for _, name := range types {
				event := postrider.Event{AggregateType: "order", AggregateID: "1", Type: name, Payload: []byte("{}")}
				if _, err := outbox.Add(t.Context(), tx, event); err != nil {
					t.Fatal(err)
				}
			}
			inside = table.Added(t, tx, mark)
			end := tx.Rollback
			if commit {
				end = tx.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			return inside
		}
		outboxtest.Require(t, add(true, "Placed"), outboxtest.Want{Type: "Placed"})
		mark := table.Mark(t, db)
		outboxtest.Require(t, add(false, "Paid", "Shipped"), outboxtest.Want{Type: "Paid"}, outboxtest.Want{Type: "Shipped"})
		outboxtest.Require(t, table.Added(t, db, mark))
		outboxtest.Require(t, add(true, "Paid"), outboxtest.Want{Type: "Paid"})
		outboxtest.Require(t, table.Added(t, db, mark), outboxtest.Want{Type: "Paid"})
	})
}

// An event of a transaction that began before the Mark, and committed after it, has a lower id than what the Mark remembers.
func TestMarkDoesNotRememberWhatCommitsLate(t *testing.T) {
	db := testdb.Postgres(t, "pgx")
	outbox := db.InitOutbox(t, postrider.Config{})
	table := outboxtest.Table{Dialect: db.Dialect}
	event := postrider.Event{AggregateType: "order", AggregateID: "1", Type: "Late", Payload: []byte("{}")}
	late, early := db.Begin(t), db.Begin(t)
	if _, err := outbox.Add(t.Context(), late, event); err != nil {
		t.Fatal(err)
	}
	event.Type = "Early"
	if _, err := outbox.Add(t.Context(), early, event); err != nil {
		t.Fatal(err)
	}
	if err := early.Commit(); err != nil {
		t.Fatal(err)
	}
	mark := table.Mark(t, db)
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	outboxtest.Require(t, table.Added(t, db, mark), outboxtest.Want{Type: "Late"})
}
