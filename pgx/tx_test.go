package postriderpgx_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	postriderpgx "github.com/postrider/postrider/pgx"
	"github.com/postrider/postrider/sqlstore"
)

// outboxPool returns a pool whose connections find an empty outbox in a schema of their own.
func outboxPool(t *testing.T, payload sqlstore.Payload, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	address := os.Getenv("POSTRIDER_TEST_POSTGRES")
	if address == "" {
		t.Fatal("POSTRIDER_TEST_POSTGRES is not set: run scripts/services up postgres and scripts/services env")
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	schema := "t_" + rand.Text()
	config.ConnConfig.RuntimeParams["search_path"] = `"` + schema + `"`
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), `DROP SCHEMA "`+schema+`" CASCADE`); err != nil {
			t.Error(err)
		}
		pool.Close()
	})
	if _, err := pool.Exec(t.Context(), `CREATE SCHEMA "`+schema+`"`); err != nil {
		t.Fatal(err)
	}

	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	store, err := sqlstore.Open(db, sqlstore.Postgres, sqlstore.Config{Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return pool
}

func newOutbox(t *testing.T, cfg postrider.Config) *postrider.Outbox {
	t.Helper()
	cfg.Dialect = postrider.PostgreSQL
	outbox, err := postrider.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return outbox
}

func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tx.Rollback(context.Background()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			t.Error(err)
		}
	})
	return tx
}

func event(key string) postrider.Event {
	return postrider.Event{AggregateType: "order", AggregateID: key, Type: "OrderPlaced", Payload: []byte(`{"n" : 1.0}`)}
}

func events(n int) []postrider.Event {
	all := make([]postrider.Event, n)
	for i := range all {
		all[i] = event(fmt.Sprint(i))
	}
	return all
}

func TestPoolsAndConnectionsAreNoTransactions(t *testing.T) {
	for _, v := range []any{(*pgxpool.Pool)(nil), (*pgxpool.Conn)(nil), (*pgx.Conn)(nil)} {
		if _, ok := v.(pgx.Tx); ok {
			t.Errorf("%T can be given to Tx", v)
		}
	}
}

func TestNilIsRefused(t *testing.T) {
	_, err := newOutbox(t, postrider.Config{}).Add(t.Context(), postriderpgx.Tx(nil), event("1"))
	if _, ok := errors.AsType[*postrider.TxError](err); !ok {
		t.Errorf("error %v, want a TxError", err)
	}
}

func TestRollbackLeavesNothing(t *testing.T) {
	pool := outboxPool(t, sqlstore.PayloadJSON, nil)
	outbox := newOutbox(t, postrider.Config{})
	tx := begin(t, pool)
	if _, err := outbox.Add(t.Context(), postriderpgx.Tx(tx), events(3)...); err != nil {
		t.Fatal(err)
	}
	if n := count(t, tx); n != 3 {
		t.Errorf("%d events in the transaction, want 3", n)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool); n != 0 {
		t.Errorf("%d events after the rollback, want none", n)
	}
	if _, err := outbox.Add(t.Context(), postriderpgx.Tx(tx), event("1")); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("Add to a transaction that has ended: error %v", err)
	}
}

func TestAddIsOneRoundTrip(t *testing.T) {
	for name, shape := range map[string]func([]postrider.Event){
		"plain":     func([]postrider.Event) {},
		"dedup key": func(e []postrider.Event) { e[500].DedupKey = "k" },
	} {
		t.Run(name, func(t *testing.T) {
			var tracer roundTrips
			pool := outboxPool(t, sqlstore.PayloadJSON, &tracer)
			tx := begin(t, pool)
			many := events(1000)
			shape(many)
			outbox := newOutbox(t, postrider.Config{})
			prepared := event("prepared")
			prepared.DedupKey = many[500].DedupKey
			if _, err := outbox.Add(t.Context(), postriderpgx.Tx(tx), prepared); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `DELETE FROM outbox_events`); err != nil {
				t.Fatal(err)
			}
			before := tracer
			added, err := outbox.Add(t.Context(), postriderpgx.Tx(tx), many...)
			if err != nil {
				t.Fatal(err)
			}
			if queries, prepares := tracer.queries-before.queries, tracer.prepares-before.prepares; queries != 1 || prepares != 0 {
				t.Errorf("%d statements and %d prepares, want 1 and 0", queries, prepares)
			}

			rows, err := tx.Query(t.Context(), `SELECT event_id::text, aggregate_id FROM outbox_events ORDER BY id`)
			if err != nil {
				t.Fatal(err)
			}
			written, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ ID, Key string }])
			if err != nil {
				t.Fatal(err)
			}
			if len(written) != len(added) {
				t.Fatalf("%d rows, want %d", len(written), len(added))
			}
			for i, row := range written {
				if row.ID != added[i].EventID || row.Key != many[i].AggregateID {
					t.Fatalf("row %d is %+v, want id %s of key %s", i, row, added[i].EventID, many[i].AggregateID)
				}
			}
		})
	}
}

// roundTrips counts what is sent to the server.
type roundTrips struct{ queries, prepares int }

func (r *roundTrips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	r.queries++
	return ctx
}
func (*roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (r *roundTrips) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	r.prepares++
	return ctx
}
func (*roundTrips) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}

func TestDropsAreReported(t *testing.T) {
	pool := outboxPool(t, sqlstore.PayloadJSON, nil)
	outbox := newOutbox(t, postrider.Config{})
	first := begin(t, pool)
	earlier := event("1")
	earlier.DedupKey = "taken"
	if _, err := outbox.Add(t.Context(), postriderpgx.Tx(first), earlier); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}

	many := events(5)
	many[1].DedupKey, many[2].DedupKey, many[4].DedupKey = "taken", "new", "new"
	tx := begin(t, pool)
	added, err := outbox.Add(t.Context(), postriderpgx.Tx(tx), many...)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range added {
		if dropped := i == 1 || i == 4; a.Dropped != dropped || (a.EventID == "") != dropped {
			t.Errorf("event %d: %+v", i, a)
		}
	}
	if n := count(t, tx); n != 1+3 {
		t.Errorf("%d events, want 4", n)
	}
}

func TestEveryColumnArrives(t *testing.T) {
	for _, payload := range []sqlstore.Payload{sqlstore.PayloadJSON, sqlstore.PayloadBinary} {
		t.Run(string(payload), func(t *testing.T) {
			pool := outboxPool(t, payload, nil)
			full := postrider.Event{
				ID: "01890a5d-ac96-774b-bcce-b302099a8057", AggregateType: "order", AggregateID: "Ключ", Type: "OrderPlaced",
				AggregateVersion: 7, Topic: "orders", Payload: []byte("{\"a\" : 1.0,\n \"a\":\"\\u0000é\"}\n"), ContentType: "application/x",
				Headers: map[string]string{"tenant": "<a> & \"b\""}, DedupKey: "k", At: time.Date(2040, 1, 2, 3, 4, 5, 0, time.UTC),
			}
			if payload == sqlstore.PayloadBinary {
				full.Payload = []byte("\x00\xff\\x41")
			}
			tx := begin(t, pool)
			outbox := newOutbox(t, postrider.Config{Binary: payload == sqlstore.PayloadBinary})
			if _, err := outbox.Add(t.Context(), postriderpgx.Tx(tx), full); err != nil {
				t.Fatal(err)
			}

			var got postrider.Event
			err := tx.QueryRow(t.Context(), `SELECT event_id, aggregate_type, aggregate_id, event_type, aggregate_version, topic,
				payload, content_type, headers, dedup_key, next_attempt_at FROM outbox_events`).Scan(
				&got.ID, &got.AggregateType, &got.AggregateID, &got.Type, &got.AggregateVersion, &got.Topic,
				&got.Payload, &got.ContentType, &got.Headers, &got.DedupKey, &got.At)
			if err != nil {
				t.Fatal(err)
			}
			got.At = got.At.UTC()
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", full) || !slices.Equal(got.Payload, full.Payload) {
				t.Errorf("row\n%+v, want\n%+v", got, full)
			}
		})
	}
}

func TestBadEventsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	var tracer roundTrips
	pool := outboxPool(t, sqlstore.PayloadJSON, &tracer)
	tx := begin(t, pool)
	before := tracer.queries
	_, err := newOutbox(t, postrider.Config{}).Add(t.Context(), postriderpgx.Tx(tx), event("1"), event(""))
	if _, ok := errors.AsType[postrider.EventErrors](err); !ok {
		t.Errorf("error %v, want EventErrors", err)
	}
	if tracer.queries != before {
		t.Errorf("%d statements were sent", tracer.queries-before)
	}
}

func count(t *testing.T, db interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM outbox_events`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
