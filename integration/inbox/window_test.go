package inbox

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
)

// ago is the database's expression for a time in the past.
func ago(db testdb.Database, past time.Duration) string {
	return fmt.Sprintf(map[postrider.Dialect]string{
		postrider.PostgreSQL: "now() - interval '%d seconds'",
		postrider.SQLite:     "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-%d seconds')",
		postrider.MySQL:      "utc_timestamp(6) - INTERVAL %d SECOND",
	}[db.Dialect], int(past.Seconds()))
}

// addReceipts writes receipts of some age, whose keys begin with prefix.
func addReceipts(t *testing.T, db testdb.Database, consumer, prefix string, n int, age time.Duration) {
	t.Helper()
	var rows []string
	for i := range n {
		rows = append(rows, fmt.Sprintf("('%s', '%s%d', %s)", consumer, prefix, i, ago(db, age)))
	}
	execute(t, db, `INSERT INTO inbox_receipts (consumer, dedup_key, applied_at) VALUES `+strings.Join(rows, ", "))
}

func execute(t *testing.T, db testdb.Database, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestCleanRemovesWhatIsOlderThanTheWindow(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{Window: time.Hour})
		addReceipts(t, db, "billing", "old", 2500, 61*time.Minute)
		addReceipts(t, db, "billing", "new", 10, 59*time.Minute)
		addReceipts(t, db, "shipping", "old", 10, 61*time.Minute)
		clean := func(want int64) {
			t.Helper()
			if n, err := in.Clean(t.Context(), db.DB); n != want || err != nil {
				t.Errorf("%d receipts removed, %v; want %d", n, err, want)
			}
		}
		clean(2500)
		var left int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM inbox_receipts`).Scan(&left); err != nil || left != 20 {
			t.Errorf("%d receipts left (%v), want those in the window and those of others, 20", left, err)
		}
		process(t, db, in, "old1", inbox.Applied)
		process(t, db, in, "new1", inbox.Duplicate)

		addReceipts(t, db, "billing", "older", 10, 2*time.Hour)
		clean(0) // somebody has cleaned just now
		execute(t, db, `UPDATE inbox_consumers SET cleaned_at = `+ago(db, time.Minute))
		clean(10)
	})
}

func TestCleanStoresTheWindow(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		for _, window := range []time.Duration{time.Hour, 2 * time.Hour} {
			in := initInbox(t, db, inbox.Config{Window: window})
			if _, err := in.Clean(t.Context(), db.DB); err != nil {
				t.Fatal(err)
			}
			found, err := in.Consumers(t.Context(), db.DB)
			if err != nil || len(found) != 1 || found[0].WindowSeconds == nil || *found[0].WindowSeconds != int64(window.Seconds()) {
				t.Errorf("%+v, %v; want a window of %v", found, err, window)
			}
		}
	})
}

func TestConsumersAreToldWithoutScanning(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{})
		addReceipts(t, db, "big", "a", 5000, time.Hour)
		addReceipts(t, db, "big", "b", 5001, time.Minute)
		addReceipts(t, db, "shipping", "m", 1, time.Minute)
		process(t, db, in, "m", inbox.Applied)
		process(t, db, in, "m", inbox.Duplicate)
		process(t, db, in, "m", inbox.Duplicate)
		process(t, db, in, "n", inbox.Applied)
		execute(t, db, `INSERT INTO inbox_consumers (consumer, window_seconds) VALUES ('idle', 60)`)

		found, err := in.Consumers(t.Context(), db.DB)
		if err != nil {
			t.Fatal(err)
		}
		type counts struct {
			name       string
			receipts   int64
			more       bool
			duplicates int64
			hasOldest  bool
			hasWindow  bool
		}
		var got []counts
		for _, c := range found {
			got = append(got, counts{c.Consumer, c.Receipts, c.More, c.Duplicates, c.Oldest != nil, c.WindowSeconds != nil})
		}
		want := []counts{
			{"big", 10000, true, 0, true, false}, {"billing", 2, false, 2, true, false},
			{"idle", 0, false, 0, false, true}, {"shipping", 1, false, 0, true, false},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if age := time.Since(*found[0].Oldest); age < 59*time.Minute || age > 62*time.Minute {
			t.Errorf("the oldest is %v old, want an hour", age)
		}
	})
}

func TestForgottenReceiptLetsTheMessageBeAppliedAgain(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		in := initInbox(t, db, inbox.Config{})
		process(t, db, in, "m", inbox.Applied)
		process(t, db, in, "n", inbox.Applied)
		if err := in.Forget(t.Context(), db.DB, "billing", "m", "ann", "the effect was wrong"); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"m", "unknown"} {
			if err := in.Forget(t.Context(), db.DB, "billing", key, "ann", "again"); !errors.Is(err, inbox.ErrNoReceipt) {
				t.Errorf("forget %s: error %v, want that there is none", key, err)
			}
		}
		for _, missing := range [][2]string{{"", "why"}, {"ann", ""}} {
			if err := in.Forget(t.Context(), db.DB, "billing", "n", missing[0], missing[1]); err == nil {
				t.Errorf("no error with %q", missing)
			}
		}
		var lines int
		var line string
		query := `SELECT count(*), max(concat(who, '|', action, '|', consumer, '|', dedup_key, '|', reason)) FROM inbox_audit WHERE applied_at <= at`
		if db.Dialect == postrider.SQLite {
			query = strings.NewReplacer("concat(", "(", ", '|', ", "||'|'||").Replace(query)
		}
		if err := db.QueryRowContext(t.Context(), query).Scan(&lines, &line); err != nil {
			t.Fatal(err)
		}
		if lines != 1 || line != "ann|forget|billing|m|the effect was wrong" {
			t.Errorf("%d lines in the audit, %q", lines, line)
		}
		process(t, db, in, "m", inbox.Applied)
		process(t, db, in, "n", inbox.Duplicate)
	})
}
