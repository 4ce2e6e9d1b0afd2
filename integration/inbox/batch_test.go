package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
)

// writeEach is an effect that writes the id of each message.
func writeEach(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
	for _, m := range fresh {
		if err := write(m.EventID())(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// keyed is a message whose id is key and a number, of that key.
func keyed(key string, n int) inbox.Message {
	m := message(fmt.Sprint(key, n))
	m.Key = key
	return m
}

func outcomes(results []inbox.Result) (list []string) {
	for _, r := range results {
		if r.Err != nil {
			list = append(list, string(inbox.ClassOf(r.Err)))
			continue
		}
		list = append(list, string(r.Outcome))
	}
	return list
}

func TestBatchAppliesWhatIsFreshInOrderAndInOneTransaction(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{})
		process(t, db, in, "c1", inbox.Applied)
		var calls [][]string
		batch := []inbox.Message{message("d1"), message("c1"), message("b1"), message("d1"), message("a1"), message("d1"), message("c1")}
		results := in.Handler(db.DB, func(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
			var ids []string
			for _, m := range fresh {
				ids = append(ids, m.EventID())
			}
			calls = append(calls, ids)
			return writeEach(ctx, tx, fresh)
		})(t.Context(), batch)

		want := []string{"applied", "duplicate", "applied", "duplicate", "applied", "duplicate", "duplicate"}
		if got := outcomes(results); !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
		if want := [][]string{{"d1", "b1", "a1"}}; !reflect.DeepEqual(calls, want) {
			t.Errorf("effects %v, want %v", calls, want)
		}
		for i, r := range results {
			if r.Receipt.DedupKey != batch[i].EventID() || r.Receipt.Source != batch[i].Coordinates {
				t.Errorf("message %d: receipt %+v", i, r.Receipt)
			}
		}
		for id, want := range map[string]int64{"a1": 0, "b1": 0, "c1": 2, "d1": 2} {
			found := receipts(t, db, in, id)
			if n := effects(t, db, id); n != 1 || len(found) != 1 || found[0].Duplicates != want || (found[0].LastDuplicateAt == nil) != (want == 0) {
				t.Errorf("%s: %d effects, receipts %+v, want one each and %d duplicates", id, n, found, want)
			}
		}
	})
}

func TestBadMessageOfABatchHarmsOnlyItsKey(t *testing.T) {
	failed := errors.New("no stock")
	for name, fail := range map[string]func() error{
		"error": func() error { return failed },
		"panic": func() error { panic(failed) },
	} {
		t.Run(name, func(t *testing.T) {
			testdb.All(t, func(t *testing.T, db testdb.Database) {
				in := initInbox(t, db, inbox.Config{})
				noID := keyed("c", 0)
				noID.Headers = nil
				batch := []inbox.Message{
					keyed("a", 1), keyed("b", 1), noID, keyed("b", 2), keyed("b", 3), keyed("a", 2), keyed("c", 1), message("none"),
				}
				results := in.ProcessBatch(t.Context(), db.DB, batch, func(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
					if err := writeEach(ctx, tx, fresh); err != nil {
						return err
					}
					if slices.ContainsFunc(fresh, func(m inbox.Message) bool { return m.EventID() == "b2" }) {
						return fail()
					}
					return nil
				})
				want := []string{"applied", "applied", "malformed", "retry", "skipped", "applied", "skipped", "applied"}
				if got := outcomes(results); !slices.Equal(got, want) {
					t.Errorf("outcomes %v, want %v", got, want)
				}
				if !errors.Is(results[4].Err, inbox.ErrSkipped) || name == "error" && !errors.Is(results[3].Err, failed) {
					t.Errorf("errors %v and %v", results[3].Err, results[4].Err)
				}
				for i, m := range batch {
					want := 0
					if results[i].Outcome == inbox.Applied {
						want = 1
					}
					if n := effects(t, db, m.EventID()); n != want {
						t.Errorf("message %d: %d effects, want %d", i, n, want)
					}
				}
			})
		})
	}
}

func TestOrderIsByAggregateWhereThereIsNoKey(t *testing.T) {
	db := testdb.SQLite(t)
	in := initInbox(t, db, inbox.Config{})
	var batch []inbox.Message
	for _, id := range []string{"x1", "y1", "x2"} {
		m := message(id)
		m.Headers = append(m.Headers, inbox.Header{Name: "X-Aggregate-Id", Value: id[:1]})
		batch = append(batch, m)
	}
	results := in.ProcessBatch(t.Context(), db.DB, batch, func(_ context.Context, _ *sql.Tx, fresh []inbox.Message) error {
		if fresh[0].EventID() == "x1" {
			return errors.New("no stock")
		}
		return nil
	})
	if got, want := outcomes(results), []string{"retry", "applied", "skipped"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
}

// While a batch waits for the receipt of m it holds those before m, and none behind: so no two batches wait for each other.
func TestBatchTakesItsReceiptsInTheOrderOfTheirKeys(t *testing.T) {
	db := testdb.Postgres(t, "pgx")
	in := initInbox(t, db, inbox.Config{})
	tx := db.Begin(t)
	backend := backendOf(t, tx)
	if _, err := in.Apply(t.Context(), tx, message("m"), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	done := make(chan []inbox.Result)
	go func() {
		done <- in.ProcessBatch(t.Context(), db.DB, []inbox.Message{message("z"), message("m"), message("a")}, writeEach)
	}()
	awaitBlocked(t, db, backend)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if result, err := in.Process(ctx, db.DB, message("z"), write("z")); result.Outcome != inbox.Applied || err != nil {
		t.Errorf("the batch keeps z: %q, %v", result.Outcome, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, want := outcomes(<-done), []string{"duplicate", "duplicate", "applied"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
}

// Batches that overlap, in opposite orders, lock their receipts in one order.
func TestBatchesAtTheSameTimeApplyEachOnce(t *testing.T) {
	const workers, rounds, size = 8, 10, 50
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		t.Parallel()
		in := initInbox(t, db, inbox.Config{})
		db.SetMaxOpenConns(4)
		for round := range rounds {
			var batch []inbox.Message
			for i := range size {
				batch = append(batch, message(fmt.Sprintf("%d-%d", round, i)))
			}
			barrier := make(chan struct{})
			var wg sync.WaitGroup
			all := make([][]inbox.Result, workers)
			for w := range workers {
				mine := slices.Clone(batch)
				if w%2 == 1 {
					slices.Reverse(mine)
				}
				wg.Go(func() {
					<-barrier
					all[w] = in.ProcessBatch(t.Context(), db.DB, mine[w:], writeEach)
				})
			}
			close(barrier)
			wg.Wait()
			for _, results := range all {
				for _, r := range results {
					if r.Err != nil {
						t.Fatal(r.Err)
					}
				}
			}
		}
		var n, different int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*), count(DISTINCT what) FROM effects`).Scan(&n, &different); err != nil {
			t.Fatal(err)
		}
		if n != rounds*size || different != rounds*size {
			t.Errorf("%d effects of %d messages, want %d of each", n, different, rounds*size)
		}
	})
}
