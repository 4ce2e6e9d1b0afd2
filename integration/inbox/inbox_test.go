// Package inbox tests receipts on real databases.
package inbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
)

// initInbox makes the tables of an inbox, for a consumer named billing unless cfg names one, and one that effects write to.
func initInbox(t *testing.T, db testdb.Database, cfg inbox.Config) *inbox.Inbox {
	t.Helper()
	in := newInbox(t, db, cfg)
	if err := in.Init(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE IF NOT EXISTS effects (what varchar(255))`); err != nil {
		t.Fatal(err)
	}
	return in
}

func newInbox(t *testing.T, db testdb.Database, cfg inbox.Config) *inbox.Inbox {
	t.Helper()
	cfg.Dialect = db.Dialect
	if cfg.Consumer == "" {
		cfg.Consumer = "billing"
	}
	in, err := inbox.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func message(id string) inbox.Message {
	return inbox.Message{Coordinates: "test:" + id, Headers: []inbox.Header{{Name: "X-Event-Id", Value: id}}}
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

func receipts(t *testing.T, db testdb.Database, in *inbox.Inbox, eventID string) []inbox.Receipt {
	t.Helper()
	found, err := in.Receipts(t.Context(), db.DB, eventID)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// process applies a message, whose effect is its id.
func process(t *testing.T, db testdb.Database, in *inbox.Inbox, id string, want inbox.Outcome) inbox.Result {
	t.Helper()
	got, err := in.Process(t.Context(), db.DB, message(id), write(id))
	if got.Outcome != want || err != nil || got.Err != nil {
		t.Errorf("%s for %s: %q, %v; want %q", id, in.Consumer(), got.Outcome, err, want)
	}
	return got
}

func TestEffectIsAppliedOncePerConsumer(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		billing := initInbox(t, db, inbox.Config{})
		shipping := newInbox(t, db, inbox.Config{Consumer: "shipping"})
		process(t, db, billing, "m", inbox.Applied)
		process(t, db, billing, "m", inbox.Duplicate)
		process(t, db, shipping, "m", inbox.Applied)
		process(t, db, billing, "M", inbox.Applied)
		process(t, db, billing, "m ", inbox.Applied)
		for what, want := range map[string]int{"m": 2, "M": 1, "m ": 1} {
			query := fmt.Sprintf(`SELECT count(*) FROM inbox_receipts WHERE dedup_key = '%s'`, what)
			var n int
			if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != want {
				t.Errorf("%d receipts of %q (%v), want one for each consumer, %d", n, what, err, want)
			}
		}
	})
}

func TestDuplicateTellsAndCountsInTheReceiptThatItMet(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{})
		before := time.Now().Add(-time.Minute) // this machine runs the database as well
		applied := process(t, db, in, "m", inbox.Applied).Receipt
		if want := (inbox.Receipt{Consumer: "billing", DedupKey: "m", EventID: "m", Source: "test:m"}); applied != want {
			t.Errorf("wrote %+v, want %+v", applied, want)
		}
		for n := int64(1); n <= 3; n++ {
			met := process(t, db, in, "m", inbox.Duplicate).Receipt
			found := receipts(t, db, in, "m")
			if len(found) != 1 || !reflect.DeepEqual(met, found[0]) {
				t.Errorf("met %+v, found %+v", met, found)
			}
			if met.Duplicates != n || met.Source != "test:m" || met.EventID != "m" {
				t.Errorf("met %+v, want %d duplicates", met, n)
			}
			for _, at := range []*time.Time{&met.At, met.LastDuplicateAt} {
				if at == nil || at.Before(before) || at.After(time.Now().Add(time.Minute)) || at.Location() != time.UTC {
					t.Errorf("met %+v: %v is not now", met, at)
				}
			}
		}
	})
}

func TestBusinessIdentityIsAppliedOnceAndFoundByEventID(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{DedupKey: func(m inbox.Message) (string, error) { return inbox.BusinessKey("reward", string(m.Payload)) }})
		first, second := message("event-1"), message("event-2")
		first.Payload, second.Payload = []byte("Ключ/1"), []byte("Ключ/1")
		for i, m := range []inbox.Message{first, second} {
			result, err := in.Process(t.Context(), db.DB, m, write("reward"))
			if want := []inbox.Outcome{inbox.Applied, inbox.Duplicate}[i]; result.Outcome != want || err != nil {
				t.Errorf("%+v, %v, want %q", result, err, want)
			}
			if r := result.Receipt; r.DedupKey != "reward/Ключ%2F1" || r.EventID != "event-1" {
				t.Errorf("receipt %+v, want that of the first event", r)
			}
		}
		if n := effects(t, db, "reward"); n != 1 {
			t.Errorf("%d effects, want 1", n)
		}
		for id, want := range map[string]int{"event-1": 1, "reward/Ключ%2F1": 1, "event-2": 0} {
			if found := receipts(t, db, in, id); len(found) != want {
				t.Errorf("found %+v by %s, want %d", found, id, want)
			}
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
			testdb.All(t, func(t *testing.T, db testdb.Database) {
				in := initInbox(t, db, inbox.Config{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				result, err := recovering(func() (inbox.Result, error) {
					return in.Process(ctx, db.DB, message("m"), func(ctx context.Context, tx *sql.Tx) error {
						if err := write("m")(ctx, tx); err != nil {
							t.Error(err)
						}
						return fail(cancel, tx)
					})
				})
				if result.Outcome != "" || err == nil {
					t.Errorf("%q, %v; want an error", result.Outcome, err)
				}
				if name == "error" && (!errors.Is(err, failed) || inbox.ClassOf(err) != inbox.ClassRetry) {
					t.Errorf("error %v is not that of the effect", err)
				}
				if n, found := effects(t, db, "m"), receipts(t, db, in, "m"); n != 0 || len(found) != 0 {
					t.Errorf("%d effects and receipts %+v, want none", n, found)
				}
				process(t, db, in, "m", inbox.Applied)
				if n, found := effects(t, db, "m"), receipts(t, db, in, "m"); n != 1 || len(found) != 1 {
					t.Errorf("%d effects and receipts %+v, want one each", n, found)
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

// PostgreSQL answers the COMMIT of a transaction in which a statement failed with a rollback. It would do so for ever, so it
// is an error of the message.
func TestEffectThatHidesAFailedStatementIsNotApplied(t *testing.T) {
	for _, name := range []string{"pgx", "postgres"} {
		t.Run(name, func(t *testing.T) {
			db := testdb.Postgres(t, name)
			in := initInbox(t, db, inbox.Config{})
			result, err := in.Process(t.Context(), db.DB, message("m"), func(ctx context.Context, tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, `INSERT INTO nowhere VALUES (1)`); err == nil {
					t.Error("the statement did not fail")
				}
				return nil
			})
			if err == nil || inbox.ClassOf(err) != inbox.ClassRetry {
				t.Errorf("result %+v, error %v of class %s", result, err, inbox.ClassOf(err))
			}
			if found := receipts(t, db, in, "m"); len(found) != 0 {
				t.Errorf("receipts %+v, want none", found)
			}
		})
	}
}

// A constraint that waits for the commit is broken by what the effect wrote, however often it is tried.
func TestConstraintThatFailsAtTheCommitIsTheMessages(t *testing.T) {
	for _, name := range []string{"pgx", "postgres"} {
		t.Run(name, func(t *testing.T) {
			db := testdb.Postgres(t, name)
			in := initInbox(t, db, inbox.Config{})
			if _, err := db.ExecContext(t.Context(), `CREATE TABLE once (what text UNIQUE DEFERRABLE INITIALLY DEFERRED)`); err != nil {
				t.Fatal(err)
			}
			_, err := in.Process(t.Context(), db.DB, message("m"), func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `INSERT INTO once VALUES ('a'), ('a')`)
				return err
			})
			if err == nil || inbox.ClassOf(err) != inbox.ClassRetry {
				t.Errorf("error %v of class %s", err, inbox.ClassOf(err))
			}
		})
	}
}

func TestErrorsOfTheDatabaseAreNotTheMessages(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := newInbox(t, db, inbox.Config{})
		_, err := in.Process(t.Context(), db.DB, message("m"), write("m"))
		if inbox.ClassOf(err) != inbox.ClassUnavailable || !errors.Is(err, inbox.ErrNoTables) {
			t.Errorf("without tables: error %v of class %s", err, inbox.ClassOf(err))
		}
		_, err = in.Apply(t.Context(), db.Begin(t), message("m"), func(context.Context) error { return nil })
		if inbox.ClassOf(err) != inbox.ClassUnavailable || !errors.Is(err, inbox.ErrNoTables) {
			t.Errorf("Apply without tables: error %v of class %s", err, inbox.ClassOf(err))
		}
		closed, err := sql.Open(db.Driver, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		for i, r := range in.ProcessBatch(t.Context(), closed, []inbox.Message{message("1"), message("2")}, writeEach) {
			if inbox.ClassOf(r.Err) != inbox.ClassUnavailable {
				t.Errorf("message %d: error %v of class %s", i, r.Err, inbox.ClassOf(r.Err))
			}
		}
	})
}

// The database commits, and the connection breaks before it can say so.
func TestCommitWhoseOutcomeIsLostIsFoundByItsReceipt(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{})
		lost := false
		begin := func(ctx context.Context) (inbox.Transaction[*sql.Tx], error) {
			tx, err := db.BeginTx(ctx, nil)
			return inbox.Transaction[*sql.Tx]{
				Tx: tx, Receipts: tx,
				Commit: func(context.Context) error {
					if err := tx.Commit(); err != nil || lost {
						return err
					}
					lost = true
					return driver.ErrBadConn
				},
				Rollback: func(context.Context) error { return tx.Rollback() },
			}, err
		}
		result, err := inbox.ProcessIn(t.Context(), in, begin, message("m"), write("m"))
		if result.Outcome != inbox.Duplicate || result.Receipt.Source != "test:m" || err != nil {
			t.Errorf("%+v, %v; want the receipt of the first attempt", result, err)
		}
		if n := effects(t, db, "m"); n != 1 {
			t.Errorf("%d effects, want 1", n)
		}
	})
}

func TestOfDeliveriesAtTheSameTimeOneIsApplied(t *testing.T) {
	const deliveries, rounds = 20, 200
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		t.Parallel()
		in := initInbox(t, db, inbox.Config{})
		connections := deliveries
		if db.Dialect == postrider.SQLite {
			connections = 2 // one can write at a time, and the others sleep longer and longer
		}
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
		for round := range rounds {
			id := fmt.Sprint("m", round)
			results := make([]inbox.Result, deliveries)
			barrier := make(chan struct{})
			var wg sync.WaitGroup
			for i := range deliveries {
				wg.Go(func() {
					<-barrier
					results[i], _ = in.Process(t.Context(), db.DB, message(id), write(id))
				})
			}
			close(barrier)
			wg.Wait()

			counts := map[inbox.Outcome]int{}
			for _, result := range results {
				if result.Err != nil {
					t.Fatal(result.Err)
				}
				counts[result.Outcome]++
			}
			if want := map[inbox.Outcome]int{inbox.Applied: 1, inbox.Duplicate: deliveries - 1}; !reflect.DeepEqual(counts, want) {
				t.Errorf("round %d: outcomes %v, want %v", round, counts, want)
			}
			if n := effects(t, db, id); n != 1 {
				t.Errorf("round %d: %d effects, want 1", round, n)
			}
			if found := receipts(t, db, in, id); len(found) != 1 || found[0].Duplicates != deliveries-1 {
				t.Errorf("round %d: receipts %+v, want one with %d duplicates", round, found, deliveries-1)
			}
		}
	})
}

// The first of several deliveries rolls back, so that those that wait for it go on all at once.
func TestOfDeliveriesThatWaitForOneThatFailsOneIsApplied(t *testing.T) {
	const deliveries, rounds = 8, 20
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{})
		db.SetMaxOpenConns(4)
		for round := range rounds {
			id := fmt.Sprint("m", round)
			tx := db.Begin(t)
			if _, err := in.Apply(t.Context(), tx, message(id), func(ctx context.Context) error { return write(id)(ctx, tx) }); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			errs := make([]error, deliveries)
			for i := range deliveries {
				wg.Go(func() { _, errs[i] = in.Process(t.Context(), db.DB, message(id), write(id)) })
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if n := effects(t, db, id); n != 1 {
				t.Errorf("round %d: %d effects, want 1", round, n)
			}
		}
	})
}

func TestDeliveryWaitsForTheOneThatIsBeingApplied(t *testing.T) {
	for name, first := range map[string]struct {
		end  func(*sql.Tx) error
		want inbox.Outcome
	}{
		"commit":   {(*sql.Tx).Commit, inbox.Duplicate},
		"rollback": {(*sql.Tx).Rollback, inbox.Applied},
	} {
		t.Run(name, func(t *testing.T) {
			db := testdb.Postgres(t, "pgx")
			in := initInbox(t, db, inbox.Config{})
			tx := db.Begin(t)
			backend := backendOf(t, tx)
			if _, err := in.Apply(t.Context(), tx, message("m"), func(ctx context.Context) error { return write("m")(ctx, tx) }); err != nil {
				t.Fatal(err)
			}

			done := make(chan struct{})
			go func() {
				defer close(done)
				process(t, db, in, "m", first.want)
			}()
			awaitBlocked(t, db, backend)
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

func backendOf(t *testing.T, tx *sql.Tx) (backend int) {
	t.Helper()
	if err := tx.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		t.Fatal(err)
	}
	return backend
}

// awaitBlocked returns when somebody waits for a lock of a backend of PostgreSQL.
func awaitBlocked(t *testing.T, db testdb.Database, backend int) {
	t.Helper()
	for waiting := 0; waiting == 0; {
		query := `SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`
		if err := db.QueryRowContext(t.Context(), query, backend).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
}

// Two effects lock the same rows in opposite orders, which the database ends by refusing one of them.
func TestDeadlockOfEffectsIsTriedAgain(t *testing.T) {
	for name, open := range map[string]func(*testing.T) testdb.Database{
		"PostgreSQL pgx": func(t *testing.T) testdb.Database { return testdb.Postgres(t, "pgx") },
		"PostgreSQL pq":  func(t *testing.T) testdb.Database { return testdb.Postgres(t, "postgres") },
		"MariaDB":        func(t *testing.T) testdb.Database { return testdb.MySQL(t, "POSTRIDER_TEST_MARIADB", nil) },
		"MySQL":          func(t *testing.T) testdb.Database { return testdb.MySQL(t, "POSTRIDER_TEST_MYSQL", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			in := initInbox(t, db, inbox.Config{})
			execute(t, db, `CREATE TABLE counters (name varchar(9) PRIMARY KEY, n int)`)
			execute(t, db, `INSERT INTO counters VALUES ('a', 0), ('b', 0)`)
			locked := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
			var runs atomic.Int32
			var wg sync.WaitGroup
			for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
				first, second := order[0], order[1]
				var once sync.Once
				wg.Go(func() {
					result, err := in.Process(t.Context(), db.DB, message(first), func(ctx context.Context, tx *sql.Tx) error {
						runs.Add(1)
						if _, err := tx.ExecContext(ctx, `UPDATE counters SET n = n + 1 WHERE name = '`+first+`'`); err != nil {
							return err
						}
						once.Do(func() { close(locked[first]) })
						<-locked[second]
						_, err := tx.ExecContext(ctx, `UPDATE counters SET n = n + 1 WHERE name = '`+second+`'`)
						return err
					})
					if result.Outcome != inbox.Applied || err != nil {
						t.Errorf("%q, %v", result.Outcome, err)
					}
				})
			}
			wg.Wait()
			var least, most int
			if err := db.QueryRowContext(t.Context(), `SELECT min(n), max(n) FROM counters`).Scan(&least, &most); err != nil {
				t.Fatal(err)
			}
			if least != 2 || most != 2 || runs.Load() < 3 {
				t.Errorf("counters from %d to %d after %d runs, want 2 after one that was refused", least, most, runs.Load())
			}
		})
	}
}

func TestApplyInTheCallersTransaction(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{})
		for _, end := range []struct {
			end  func(*sql.Tx) error
			want inbox.Outcome
		}{{(*sql.Tx).Rollback, inbox.Applied}, {(*sql.Tx).Commit, inbox.Applied}, {(*sql.Tx).Commit, inbox.Duplicate}} {
			tx := db.Begin(t)
			result, err := in.Apply(t.Context(), tx, message("m"), func(ctx context.Context) error {
				return write("m")(ctx, tx)
			})
			if result.Outcome != end.want || err != nil {
				t.Errorf("%q, %v; want %q", result.Outcome, err, end.want)
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
	in := initInbox(t, db, inbox.Config{})
	err := bun.NewDB(db.DB, pgdialect.New()).RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		_, err := in.Apply(ctx, tx, message("m"), func(context.Context) error { return nil })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := receipts(t, db, in, "m"); len(found) != 1 {
		t.Errorf("receipts %+v, want one", found)
	}
}

func TestReceiptsTellWhoApplied(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		shipping, billing := initInbox(t, db, inbox.Config{Consumer: "shipping"}), newInbox(t, db, inbox.Config{})
		process(t, db, shipping, "m", inbox.Applied)
		process(t, db, billing, "m", inbox.Applied)
		process(t, db, billing, "other", inbox.Applied)
		found := receipts(t, db, billing, "m")
		if len(found) != 2 || found[0].Consumer == found[1].Consumer || found[1].At.Before(found[0].At) {
			t.Errorf("receipts %+v, want those of shipping and billing, earliest first", found)
		}
	})
}

func TestInitMayRunAtTheSameTime(t *testing.T) {
	const processes, rounds = 8, 20
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		t.Parallel()
		db.SetMaxIdleConns(processes)
		for round := range rounds {
			in := newInbox(t, db, inbox.Config{Table: fmt.Sprint("Receipts-", round)})
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

func TestInitKeepsReceiptsAndUpgradesTables(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		kind := map[postrider.Dialect]string{
			postrider.PostgreSQL: "timestamptz NOT NULL DEFAULT now()",
			postrider.SQLite:     "text NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))",
		}[db.Dialect]
		for _, statement := range []string{
			`CREATE TABLE inbox_receipts (consumer text NOT NULL, dedup_key text NOT NULL, applied_at ` + kind + `, PRIMARY KEY (dedup_key, consumer))`,
			`INSERT INTO inbox_receipts (consumer, dedup_key) VALUES ('billing', 'old')`,
		} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		in := newInbox(t, db, inbox.Config{})
		if _, err := in.Receipts(t.Context(), db.DB, "old"); err == nil || errors.Is(err, inbox.ErrNoTables) {
			t.Errorf("before the upgrade: error %v, want that the table is old", err)
		}
		for range 2 {
			initInbox(t, db, inbox.Config{})
		}
		met := process(t, db, in, "old", inbox.Duplicate).Receipt
		if met.EventID != "old" || met.Source != "" || met.Duplicates != 1 {
			t.Errorf("met %+v", met)
		}
		process(t, db, in, "new", inbox.Applied)
	})
}

// Whoever applies in another language inserts two columns.
func TestReceiptOfTwoColumnsIsOne(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{})
		if _, err := db.ExecContext(t.Context(), `INSERT INTO inbox_receipts (consumer, dedup_key) VALUES ('billing', 'm')`); err != nil {
			t.Fatal(err)
		}
		process(t, db, in, "m", inbox.Duplicate)
	})
}

// InitSQL is for those who do not call Init.
func TestInitSQLMakesTheTables(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := newInbox(t, db, inbox.Config{})
		for statement := range strings.SplitSeq(in.InitSQL(), ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		initInbox(t, db, inbox.Config{})
		process(t, db, in, "m", inbox.Applied)
		process(t, db, in, "m", inbox.Duplicate)
	})
}
