package outboxtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/outboxtest"
)

// consumer applies a message within a transaction, and says whether it is new.
type consumer struct {
	name  string
	isNew func(ctx context.Context, tx *sql.Tx, id string) (bool, error)
	found string // what Idempotent says; empty: nothing
}

var consumers = []consumer{
	{"receipt first", func(ctx context.Context, tx *sql.Tx, id string) (bool, error) {
		result, err := tx.ExecContext(ctx, "INSERT INTO receipts VALUES ($1) ON CONFLICT DO NOTHING", id)
		if err != nil {
			return false, err
		}
		n, err := result.RowsAffected()
		return n == 1, err
	}, ""},
	{"looks before it acts", func(ctx context.Context, tx *sql.Tx, id string) (bool, error) {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM seen WHERE id = $1", id).Scan(&n); err != nil || n > 0 {
			return false, err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO seen VALUES ($1)", id)
		return true, err
	}, "at the same time left another state"},
	{"no receipt", func(context.Context, *sql.Tx, string) (bool, error) { return true, nil }, "each twice in a row left another state"},
}

// TestIdempotentOnPostgreSQL shows that the copies of a message do meet on a database.
func TestIdempotentOnPostgreSQL(t *testing.T) {
	for _, c := range consumers {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				outboxtest.Idempotent(r, func(testing.TB) outboxtest.Consumer { return c.open(t) }, message("1"), message("2"), message("3"))
			}()
			<-done
			text := strings.Join(r.failures, "\n")
			if c.found == "" && text != "" || !strings.Contains(text, c.found) {
				t.Errorf("Idempotent says %q, want %q", text, c.found)
			}
		})
	}
}

func message(id string) inbox.Message {
	return inbox.Message{Coordinates: "memory:" + id, Headers: []inbox.Header{{Name: "X-Event-Id", Value: id}}}
}

func (c consumer) open(t *testing.T) outboxtest.Consumer {
	db := testdb.Postgres(t, "pgx")
	for _, statement := range []string{
		"CREATE TABLE receipts (id text PRIMARY KEY)",
		"CREATE TABLE seen (id text)",
		"CREATE TABLE balances (wallet text, amount bigint, note text)",
		"INSERT INTO balances VALUES ('w\n1', 0, NULL)",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return outboxtest.Consumer{
		Deliver: func(ctx context.Context, m inbox.Message) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			isNew, err := c.isNew(ctx, tx, m.EventID())
			if err == nil && isNew {
				_, err = tx.ExecContext(ctx, "UPDATE balances SET amount = amount + 1")
			}
			if err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		},
		Snapshot: func(ctx context.Context) (string, error) {
			text, err := outboxtest.Rows(ctx, db, "SELECT wallet, amount, note FROM balances WHERE amount >= $1 ORDER BY wallet", 0)
			if err == nil && (!strings.HasPrefix(text, `wallet="w\n1" amount="`) || !strings.HasSuffix(text, `" note=NULL`)) {
				err = fmt.Errorf("Rows returns %s", text)
			}
			return text, err
		},
	}
}

// recorder keeps failures instead of failing.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
