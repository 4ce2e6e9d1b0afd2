// Package outbox tests adding events on real databases and with the real libraries that carry transactions.
package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/testdb"
)

func event(key string) postrider.Event {
	return postrider.Event{AggregateType: "order", AggregateID: key, Type: "OrderPlaced", Payload: []byte(`{"n": 1}`)}
}

func events(n int) []postrider.Event {
	all := make([]postrider.Event, n)
	for i := range all {
		all[i] = event(fmt.Sprint(i))
	}
	return all
}

// execOnly hides that a transaction can query.
type execOnly struct{ tx *sql.Tx }

func (e execOnly) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return e.tx.ExecContext(ctx, query, args...)
}

// paths are the ways in which a *sql.Tx can be given to Add.
var paths = map[string]func(*sql.Tx) postrider.Tx{
	"returning": func(tx *sql.Tx) postrider.Tx { return tx },
	"exec only": func(tx *sql.Tx) postrider.Tx { return execOnly{tx} },
}

func TestRollbackLeavesNothing(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		tx := db.Begin(t)
		add(t, outbox, tx, events(3)...)
		if got := len(written(t, tx)); got != 3 {
			t.Errorf("%d events in the transaction, want 3", got)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if got := written(t, db); len(got) != 0 {
			t.Errorf("events %v after the rollback", got)
		}
	})
}

func TestOutboxOrderIsTheOrderOfTheEvents(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		for path, give := range paths {
			t.Run(path, func(t *testing.T) {
				outbox := db.InitOutbox(t, postrider.Config{})
				many := events(1000)
				for i := 100; i < len(many); i += 100 {
					many[i].DedupKey = fmt.Sprint("k", i)
				}
				tx := db.Begin(t)
				added := add(t, outbox, give(tx), many...)
				rows := written(t, tx)
				if len(rows) != len(many) {
					t.Fatalf("%d rows, want %d", len(rows), len(many))
				}
				for i, row := range rows {
					if row.eventID != added[i].EventID || row.key != many[i].AggregateID {
						t.Fatalf("row %d is %+v, want id %s of key %s", i, row, added[i].EventID, many[i].AggregateID)
					}
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}

func TestDropsAreReported(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		for path, give := range paths {
			t.Run(path, func(t *testing.T) {
				outbox := db.InitOutbox(t, postrider.Config{})
				committed := event("0")
				committed.DedupKey = path + " committed"
				first := db.Begin(t)
				add(t, outbox, first, committed)
				if err := first.Commit(); err != nil {
					t.Fatal(err)
				}

				many := events(6)
				many[1].DedupKey = committed.DedupKey
				many[2].DedupKey, many[4].DedupKey = path+" twice", path+" twice"
				many[5].DedupKey = path + " once"
				tx := db.Begin(t)
				before := len(written(t, tx))
				added := add(t, outbox, give(tx), many...)
				var keys []string
				for i, a := range added {
					if dropped := i == 1 || i == 4; a.Dropped != dropped || (a.EventID == "") != dropped {
						t.Errorf("event %d: %+v", i, a)
					}
				}
				for _, row := range written(t, tx)[before:] {
					keys = append(keys, row.key)
				}
				if want := []string{"0", "2", "3", "5"}; !reflect.DeepEqual(keys, want) {
					t.Errorf("keys written %v, want %v", keys, want)
				}
			})
		}
	})
}

// An application that tries again after an unknown outcome of its commit adds the very same event.
func TestAddOfTheSameIDAndDedupKeyIsDropped(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		for path, give := range paths {
			t.Run(path, func(t *testing.T) {
				outbox := db.InitOutbox(t, postrider.Config{})
				same := event("1")
				same.ID, same.DedupKey = "01890A5D-AC96-774B-BCCE-B302099A8057", "k"
				tx := db.Begin(t)
				first := add(t, outbox, give(tx), same)
				if want := strings.ToLower(same.ID); first[0].EventID != want || written(t, tx)[0].eventID != want {
					t.Errorf("added %+v, want the id %s", first, want)
				}
				if again := add(t, outbox, give(tx), same); !again[0].Dropped {
					t.Errorf("added again %+v, want it dropped", again)
				}
			})
		}
	})
}

func TestAnIDThatExistsFails(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		for _, dedupKey := range []string{"", "another"} {
			for path, give := range paths {
				t.Run(fmt.Sprintf("%s dedup key %q", path, dedupKey), func(t *testing.T) {
					outbox := db.InitOutbox(t, postrider.Config{})
					same := event("1")
					same.ID, same.DedupKey = "01890a5d-ac96-774b-bcce-b302099a8057", "k"
					tx := db.Begin(t)
					add(t, outbox, give(tx), same)
					same.DedupKey = dedupKey
					if added, err := outbox.Add(t.Context(), give(tx), same); err == nil {
						t.Errorf("added %+v, want an error", added)
					}
				})
			}
		}
	})
}

func TestAddWaitsForTheTransactionThatHasTheDedupKey(t *testing.T) {
	for name, end := range map[string]struct {
		end     func(*sql.Tx) error
		dropped bool
	}{
		"commit":   {(*sql.Tx).Commit, true},
		"rollback": {(*sql.Tx).Rollback, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := testdb.Postgres(t, "pgx")
			outbox := db.InitOutbox(t, postrider.Config{})
			deduped := event("1")
			deduped.DedupKey = "k"
			first, second := db.Begin(t), db.Begin(t)
			add(t, outbox, first, deduped)

			var backend int
			if err := second.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
				t.Fatal(err)
			}
			type result struct {
				added []postrider.Added
				err   error
			}
			done := make(chan result)
			go func() {
				added, err := outbox.Add(t.Context(), second, deduped)
				done <- result{added, err}
			}()
			awaitBlocked(t, db, backend)
			if err := end.end(first); err != nil {
				t.Fatal(err)
			}
			if r := <-done; r.err != nil || r.added[0].Dropped != end.dropped {
				t.Errorf("%+v, %v; want dropped %v", r.added, r.err, end.dropped)
			}
		})
	}
}

func awaitBlocked(t *testing.T, db testdb.Database, backend int) {
	t.Helper()
	for blocked := false; !blocked; {
		err := db.QueryRowContext(t.Context(), `SELECT cardinality(pg_blocking_pids($1)) > 0`, backend).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlainInsertGivesAnEqualRow(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		tx := db.Begin(t)
		plain := `INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', '1', 'OrderPlaced', '{"n": 1}')`
		if _, err := tx.ExecContext(t.Context(), plain); err != nil {
			t.Fatal(err)
		}
		add(t, outbox, tx, event("1"))

		rows := table(t, tx)
		if len(rows) != 2 {
			t.Fatalf("%d rows, want 2", len(rows))
		}
		for _, row := range rows {
			if row["next_attempt_at"] != row["created_at"] {
				t.Errorf("next_attempt_at %v is not created_at %v: the reads that look for due events would miss it", row["next_attempt_at"], row["created_at"])
			}
			for _, own := range []string{"id", "event_id", "created_at", "next_attempt_at"} {
				delete(row, own)
			}
		}
		if !reflect.DeepEqual(rows[0], rows[1]) {
			t.Errorf("plain INSERT\n%v\nAdd\n%v", rows[0], rows[1])
		}
	})
}

func TestPayloadBytesAreExact(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		tx := db.Begin(t)
		depth := 200
		if db.Dialect == postrider.MySQL {
			depth = 31 // MariaDB checks no deeper
		}
		for _, payload := range []string{
			"  {\"b\" : 1.00,\n\t\"a\":1e400, \"b\":\"\\u0041\\/\"}\r\n", `"\u0000"`, `"\ud800"`, `null`, `"é 鍵 🔑 <&>"`, `"\\x41"`, `12345678901234567890.10`,
			strings.Repeat("[", depth) + strings.Repeat("]", depth),
		} {
			e := event(payload[:1])
			e.Payload = []byte(payload)
			added := add(t, outbox, tx, e)
			if got := payloadOf(t, tx, added[0]); string(got) != payload {
				t.Errorf("payload %q, want %q", got, payload)
			}
		}
	})
}

func TestBinaryPayloadBytesAreExact(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{Binary: true})
		tx := db.Begin(t)
		for _, payload := range []string{"", "\x00", "\xff\xfe\\x41'", `{"a": 1}`} {
			e := event("1")
			e.Payload, e.ContentType = []byte(payload), "application/x-protobuf"
			if payload == "" {
				e.Payload = nil
			}
			added := add(t, outbox, tx, e)
			if got := payloadOf(t, tx, added[0]); string(got) != payload {
				t.Errorf("payload %q, want %q", got, payload)
			}
		}
	})
}

func TestEveryFieldArrives(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		tx := db.Begin(t)
		full := postrider.Event{
			ID: "01890a5d-ac96-774b-bcce-b302099a8057", AggregateType: "order", AggregateID: "Ключ 🔑\u2028", Type: "OrderPlaced",
			AggregateVersion: math.MaxInt64, Topic: `o"r\u0041d'ers`, Payload: []byte(`{}`), ContentType: "application/vnd.x+json",
			Headers: map[string]string{"tenant": `<a> & "b"`}, DedupKey: "k", At: time.Date(2040, 1, 2, 3, 4, 5, 6_000_001, time.FixedZone("", 3600)),
		}
		add(t, outbox, tx, full)
		row := table(t, tx)[0]
		for column, want := range map[string]any{
			"event_id": full.ID, "aggregate_type": "order", "aggregate_id": "Ключ 🔑\u2028", "event_type": "OrderPlaced",
			"aggregate_version": int64(math.MaxInt64), "topic": `o"r\u0041d'ers`, "payload": "{}", "content_type": "application/vnd.x+json",
			"headers": `{"tenant":"<a> & \"b\""}`, "dedup_key": "k", "status": "PENDING",
		} {
			if got := row[column]; got != want {
				t.Errorf("%s is %#v, want %#v", column, got, want)
			}
		}
		want := time.Date(2040, 1, 2, 2, 4, 5, 7_000_000, time.UTC)
		if got := moment(t, row["next_attempt_at"]); !got.Equal(want) {
			t.Errorf("next_attempt_at is %v, want %v", got, want)
		}
		if created := moment(t, row["created_at"]); created.Year() == 2040 || created.IsZero() {
			t.Errorf("created_at is %v", created)
		}
	})
}

func TestScheduledAmongOthers(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		tx := db.Begin(t)
		many := events(3)
		many[1].At = time.Now().Add(time.Hour)
		add(t, outbox, tx, many...)
		for i, row := range table(t, tx) {
			due := !moment(t, row["next_attempt_at"]).After(moment(t, row["created_at"]))
			if due != (i != 1) {
				t.Errorf("event %d is due %v", i, due)
			}
		}
	})
}

func TestOtherTable(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{Table: "Order-Outbox"})
		tx := db.Begin(t)
		add(t, outbox, tx, events(2)...)
		var n int
		count := `SELECT count(*) FROM "Order-Outbox"`
		if db.Dialect == postrider.MySQL {
			count = strings.ReplaceAll(count, `"`, "`")
		}
		if err := tx.QueryRowContext(t.Context(), count).Scan(&n); err != nil || n != 2 {
			t.Errorf("%d rows, %v; want 2", n, err)
		}
	})
}

func TestInsertIsAllThePrivilegeThatEventsWithoutDedupKeyNeed(t *testing.T) {
	db := testdb.Postgres(t, "pgx")
	outbox := db.InitOutbox(t, postrider.Config{})
	tx := db.Begin(t) // the role goes when it rolls back
	for _, statement := range []string{
		`CREATE ROLE postrider_test_producer`,
		`DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO postrider_test_producer', current_schema); END $$`,
		`GRANT INSERT ON outbox_events TO postrider_test_producer`,
		`SET LOCAL ROLE postrider_test_producer`,
	} {
		if _, err := tx.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if added, err := outbox.Add(t.Context(), tx, events(3)...); err != nil || len(added) != 3 {
		t.Errorf("%d added, %v", len(added), err)
	}
}

func TestConnectionWithATransaction(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, end := range []string{"ROLLBACK", "COMMIT"} {
			if _, err := conn.ExecContext(t.Context(), "BEGIN"); err != nil {
				t.Fatal(err)
			}
			add(t, outbox, conn, event(end))
			if _, err := conn.ExecContext(t.Context(), end); err != nil {
				t.Fatal(err)
			}
		}
		if rows := written(t, db); len(rows) != 1 || rows[0].key != "COMMIT" {
			t.Errorf("rows %v, want the one that was committed", rows)
		}
	})
}
