package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
)

// says is a filter that says the same of every message, right or wrong.
type says bool

func (s says) Likely(_ context.Context, _ string, keys []string) []bool {
	return slices.Repeat([]bool{bool(s)}, len(keys))
}

func (says) Applied(context.Context, string, []string) {}

// TestFilterThatIsWrong changes nothing of what is applied, and how often.
func TestFilterThatIsWrong(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		for _, filter := range []says{true, false} {
			in := initInbox(t, db, inbox.Config{Consumer: fmt.Sprint("filter-", filter), Filter: filter})
			id := func(n int) string { return fmt.Sprint(filter, n) }
			process(t, db, in, id(1), inbox.Applied)
			process(t, db, in, id(1), inbox.Duplicate)
			batch := []inbox.Message{message(id(2)), message(id(1)), message(id(3)), message(id(2)), message(id(1))}
			want := []string{"applied", "duplicate", "applied", "duplicate", "duplicate"}
			if got := outcomes(in.ProcessBatch(t.Context(), db.DB, batch, writeEach)); !slices.Equal(got, want) {
				t.Errorf("filter that says %v: outcomes %v, want %v", filter, got, want)
			}
			if err := in.Forget(t.Context(), db.DB, in.Consumer(), id(2), "me", "apply it again"); err != nil {
				t.Fatal(err)
			}
			process(t, db, in, id(2), inbox.Applied)
			for n, want := range map[int]int{1: 1, 2: 2, 3: 1} {
				if got := effects(t, db, id(n)); got != want {
					t.Errorf("filter that says %v: %d effects of %d, want %d", filter, got, n, want)
				}
			}
		}
	})
}

// TestFilteredDuplicates are read: they meet their receipt, run no effect, and write nothing.
func TestFilteredDuplicates(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{Filter: inbox.NewRecent(100)})
		batch := []inbox.Message{keyed("a", 1), keyed("a", 2), keyed("b", 1)}
		in.ProcessBatch(t.Context(), db.DB, batch, writeEach)
		process(t, db, in, "c", inbox.Applied)
		noEffect := func(context.Context, *sql.Tx, []inbox.Message) error {
			return inbox.Permanent(fmt.Errorf("the effect ran"))
		}
		for range 2 {
			for i, r := range in.ProcessBatch(t.Context(), db.DB, batch, noEffect) {
				if r.Outcome != inbox.Duplicate || r.Receipt.Source != batch[i].Coordinates || r.Receipt.At.IsZero() || r.Receipt.Duplicates != 0 {
					t.Errorf("message %d: %+v, want a duplicate that met its receipt and was not counted in it", i, r)
				}
			}
			if r := process(t, db, in, "c", inbox.Duplicate); r.Receipt.DedupKey != "c" || r.Receipt.Duplicates != 0 {
				t.Errorf("met %+v", r.Receipt)
			}
		}
		// Messages that are new stand between them in order.
		mixed := []inbox.Message{keyed("a", 1), keyed("a", 3), keyed("a", 2), keyed("b", 2)}
		bad := func(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
			for _, m := range fresh {
				if m.Key == "a" {
					return inbox.Permanent(fmt.Errorf("bad"))
				}
			}
			return writeEach(ctx, tx, fresh)
		}
		want := []string{"duplicate", "permanent", string(inbox.ClassOf(inbox.ErrSkipped)), "applied"}
		if got := outcomes(in.ProcessBatch(t.Context(), db.DB, mixed, bad)); !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
	})
}
