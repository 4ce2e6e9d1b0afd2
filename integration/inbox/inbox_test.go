// Package inbox tests receipts on real databases.
package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
)

// initInbox makes the table of receipts and one that effects write to.
func initInbox(t *testing.T, db testdb.Database) *inbox.Inbox {
	t.Helper()
	in, err := inbox.New(inbox.Config{Dialect: db.Dialect})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Init(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE effects (what text)`); err != nil {
		t.Fatal(err)
	}
	return in
}

// write is an effect that writes what once for every time that it runs.
func write(what string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO effects (what) VALUES ('%s')`, what))
		return err
	}
}

func effects(t *testing.T, db testdb.Database, what string) (n int) {
	t.Helper()
	query := fmt.Sprintf(`SELECT count(*) FROM effects WHERE what = '%s'`, what)
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func consumers(t *testing.T, db testdb.Database, in *inbox.Inbox, dedupKey string) []string {
	t.Helper()
	receipts, err := in.Receipts(t.Context(), db.DB, dedupKey)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, r := range receipts {
		names = append(names, r.Consumer)
	}
	return names
}

func process(t *testing.T, db testdb.Database, in *inbox.Inbox, key inbox.Key, want inbox.Result) {
	t.Helper()
	if got, err := in.Process(t.Context(), db.DB, key, write(key.DedupKey)); got != want || err != nil {
		t.Errorf("%s: %q, %v; want %q", key, got, err, want)
	}
}

func TestEffectIsAppliedOncePerConsumer(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db)
		process(t, db, in, inbox.Key{Consumer: "billing", DedupKey: "m"}, inbox.Applied)
		process(t, db, in, inbox.Key{Consumer: "billing", DedupKey: "m"}, inbox.Duplicate)
		process(t, db, in, inbox.Key{Consumer: "shipping", DedupKey: "m"}, inbox.Applied)
		process(t, db, in, inbox.Key{Consumer: "billing", DedupKey: "M"}, inbox.Applied)
		if n := effects(t, db, "m"); n != 2 {
			t.Errorf("%d effects of m, want one for each consumer", n)
		}
	})
}

func TestEffectAndReceiptAreBothThereOrNeither(t *testing.T) {
	failed := errors.New("no stock")
	for name, fail := range map[string]func(context.CancelFunc, *sql.Tx) error{
		"error": func(context.CancelFunc, *sql.Tx) error { return failed },
		"panic": func(context.CancelFunc, *sql.Tx) error { panic("no stock") },
		"cancel": func(cancel context.CancelFunc, _ *sql.Tx) error {
			cancel()
			return nil
		},
		"rollback": func(_ context.CancelFunc, tx *sql.Tx) error { return tx.Rollback() },
	} {
		t.Run(name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, db testdb.Database) {
				in := initInbox(t, db)
				key := inbox.Key{Consumer: "billing", DedupKey: "m"}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				result, err := recovering(func() (inbox.Result, error) {
					return in.Process(ctx, db.DB, key, func(ctx context.Context, tx *sql.Tx) error {
						if err := write("m")(ctx, tx); err != nil {
							t.Error(err)
						}
						return fail(cancel, tx)
					})
				})
				if result != "" || err == nil {
					t.Errorf("%q, %v; want an error", result, err)
				}
				if name == "error" && !errors.Is(err, failed) {
					t.Errorf("error %v does not wrap the error of the effect", err)
				}
				if n, names := effects(t, db, "m"), consumers(t, db, in, "m"); n != 0 || len(names) != 0 {
					t.Errorf("%d effects and receipts of %v, want none", n, names)
				}
				process(t, db, in, key, inbox.Applied)
				if n, names := effects(t, db, "m"), consumers(t, db, in, "m"); n != 1 || len(names) != 1 {
					t.Errorf("%d effects and receipts of %v, want one each", n, names)
				}
			})
		})
	}
}

func recovering(process func() (inbox.Result, error)) (result inbox.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return process()
}

// PostgreSQL answers the COMMIT of a transaction in which a statement failed with a rollback.
func TestEffectThatHidesAFailedStatementIsNotApplied(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			db := testdb.Postgres(t, driver)
			in := initInbox(t, db)
			result, err := in.Process(t.Context(), db.DB, inbox.Key{Consumer: "c", DedupKey: "m"}, func(ctx context.Context, tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, `INSERT INTO nowhere VALUES (1)`); err == nil {
					t.Error("the statement did not fail")
				}
				return nil
			})
			if err == nil {
				t.Errorf("result %q without an error", result)
			}
			if names := consumers(t, db, in, "m"); len(names) != 0 {
				t.Errorf("receipts of %v, want none", names)
			}
		})
	}
}

func TestOfDeliveriesAtTheSameTimeOneIsApplied(t *testing.T) {
	const deliveries, rounds = 20, 200
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db)
		connections := deliveries
		if db.Dialect == postrider.SQLite {
			connections = 4 // one can write at a time, and the others sleep longer and longer
		}
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
		for round := range rounds {
			key := inbox.Key{Consumer: "billing", DedupKey: fmt.Sprint("m", round)}
			results := make([]inbox.Result, deliveries)
			errs := make([]error, deliveries)
			barrier := make(chan struct{})
			var wg sync.WaitGroup
			for i := range deliveries {
				wg.Go(func() {
					<-barrier
					results[i], errs[i] = in.Process(t.Context(), db.DB, key, write(key.DedupKey))
				})
			}
			close(barrier)
			wg.Wait()

			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			counts := map[inbox.Result]int{}
			for _, result := range results {
				counts[result]++
			}
			if want := map[inbox.Result]int{inbox.Applied: 1, inbox.Duplicate: deliveries - 1}; !reflect.DeepEqual(counts, want) {
				t.Errorf("round %d: results %v, want %v", round, counts, want)
			}
			if n := effects(t, db, key.DedupKey); n != 1 {
				t.Errorf("round %d: %d effects, want 1", round, n)
			}
		}
	})
}

func TestDeliveryWaitsForTheOneThatIsBeingApplied(t *testing.T) {
	for name, first := range map[string]struct {
		end  func(*sql.Tx) error
		want inbox.Result
	}{
		"commit":   {(*sql.Tx).Commit, inbox.Duplicate},
		"rollback": {(*sql.Tx).Rollback, inbox.Applied},
	} {
		t.Run(name, func(t *testing.T) {
			db := testdb.Postgres(t, "pgx")
			in := initInbox(t, db)
			key := inbox.Key{Consumer: "billing", DedupKey: "m"}
			tx := db.Begin(t)
			var backend int
			if err := tx.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Apply(t.Context(), tx, key, func(ctx context.Context) error { return write("m")(ctx, tx) }); err != nil {
				t.Fatal(err)
			}

			done := make(chan struct{})
			go func() {
				defer close(done)
				process(t, db, in, key, first.want)
			}()
			for waiting := 0; waiting == 0; {
				query := `SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`
				if err := db.QueryRowContext(t.Context(), query, backend).Scan(&waiting); err != nil {
					t.Fatal(err)
				}
			}
			if err := first.end(tx); err != nil {
				t.Fatal(err)
			}
			<-done
			if n := effects(t, db, "m"); n != 1 {
				t.Errorf("%d effects, want 1", n)
			}
		})
	}
}

func TestApplyInTheCallersTransaction(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db)
		for _, end := range []struct {
			end  func(*sql.Tx) error
			want inbox.Result
		}{{(*sql.Tx).Rollback, inbox.Applied}, {(*sql.Tx).Commit, inbox.Applied}, {(*sql.Tx).Commit, inbox.Duplicate}} {
			tx := db.Begin(t)
			result, err := in.Apply(t.Context(), tx, inbox.Key{Consumer: "c", DedupKey: "m"}, func(ctx context.Context) error {
				return write("m")(ctx, tx)
			})
			if result != end.want || err != nil {
				t.Errorf("%q, %v; want %q", result, err, end.want)
			}
			if err := end.end(tx); err != nil {
				t.Fatal(err)
			}
		}
		if n := effects(t, db, "m"); n != 1 {
			t.Errorf("%d effects, want 1", n)
		}
	})
}

func TestApplyInATransactionOfBun(t *testing.T) {
	db := testdb.Postgres(t, "pgx")
	in := initInbox(t, db)
	err := bun.NewDB(db.DB, pgdialect.New()).RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		_, err := in.Apply(ctx, tx, inbox.Key{Consumer: "c", DedupKey: "m"}, func(context.Context) error { return nil })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if names := consumers(t, db, in, "m"); len(names) != 1 {
		t.Errorf("receipts of %v, want one", names)
	}
}

func TestReceiptsTellWhoAppliedAndWhen(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db)
		before := time.Now().Add(-time.Minute) // this machine runs the database as well
		for _, consumer := range []string{"shipping", "billing"} {
			process(t, db, in, inbox.Key{Consumer: consumer, DedupKey: "m"}, inbox.Applied)
		}
		process(t, db, in, inbox.Key{Consumer: "billing", DedupKey: "other"}, inbox.Applied)

		receipts, err := in.Receipts(t.Context(), db.DB, "m")
		if err != nil {
			t.Fatal(err)
		}
		if len(receipts) != 2 {
			t.Fatalf("receipts %v, want two", receipts)
		}
		for _, r := range receipts {
			if r.At.Before(before) || r.At.After(time.Now().Add(time.Minute)) || r.At.Location() != time.UTC {
				t.Errorf("%s applied at %v", r.Consumer, r.At)
			}
		}
		if receipts[1].At.Before(receipts[0].At) {
			t.Errorf("receipts %v are not in the order of their times", receipts)
		}
		if names := consumers(t, db, in, "unknown"); len(names) != 0 {
			t.Errorf("receipts of %v for an unknown message", names)
		}
	})
}

func TestInitMayRunAtTheSameTime(t *testing.T) {
	const processes, rounds = 8, 20
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		db.SetMaxIdleConns(processes)
		for round := range rounds {
			in, err := inbox.New(inbox.Config{Dialect: db.Dialect, Table: fmt.Sprint("Receipts-", round)})
			if err != nil {
				t.Fatal(err)
			}
			barrier := make(chan struct{})
			var wg sync.WaitGroup
			for range processes {
				wg.Go(func() {
					<-barrier
					if err := in.Init(t.Context(), db.DB); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			close(barrier)
			wg.Wait()
		}
	})
}

func TestInitKeepsReceipts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db)
		process(t, db, in, inbox.Key{Consumer: "c", DedupKey: "m"}, inbox.Applied)
		if err := in.Init(t.Context(), db.DB); err != nil {
			t.Error(err)
		}
		process(t, db, in, inbox.Key{Consumer: "c", DedupKey: "m"}, inbox.Duplicate)
	})
}
