package postriderpgx_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	postriderpgx "github.com/postrider/postrider/pgx"
	"github.com/postrider/postrider/sqlstore"
)

func inboxPool(t *testing.T) (*inbox.Inbox, *pgxpool.Pool) {
	t.Helper()
	pool := outboxPool(t, sqlstore.PayloadJSON, nil)
	in, err := inbox.New(inbox.Config{Dialect: postrider.PostgreSQL, Consumer: "c"})
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	if err := in.Init(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return in, pool
}

func message(id string) inbox.Message {
	return inbox.Message{Coordinates: "test:" + id, Headers: []inbox.Header{{Name: "X-Event-Id", Value: id}}}
}

// add is an effect that can be counted: it adds an event for each message.
func add(t *testing.T) inbox.BatchEffect[pgx.Tx] {
	outbox := newOutbox(t, postrider.Config{})
	return func(ctx context.Context, tx pgx.Tx, fresh []inbox.Message) error {
		for _, m := range fresh {
			if _, err := outbox.Add(ctx, postriderpgx.Tx(tx), event(m.EventID())); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestReceiptAndEffectInATransactionOfPgx(t *testing.T) {
	in, pool := inboxPool(t)
	effect := add(t)
	for _, want := range []inbox.Outcome{inbox.Applied, inbox.Duplicate} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			got, err := in.Apply(t.Context(), postriderpgx.Tx(tx), message("m"), func(ctx context.Context) error {
				return effect(ctx, tx, []inbox.Message{message("m")})
			})
			if got.Outcome != want {
				t.Errorf("%q, want %q", got.Outcome, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, pool); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

func TestProcessAppliesOnceThroughAPool(t *testing.T) {
	in, pool := inboxPool(t)
	for _, want := range []inbox.Outcome{inbox.Applied, inbox.Duplicate} {
		got, err := postriderpgx.Process(t.Context(), in, pool, message("m"), func(ctx context.Context, tx pgx.Tx) error {
			return add(t)(ctx, tx, []inbox.Message{message("m")})
		})
		if got.Outcome != want || err != nil {
			t.Errorf("%q, %v, want %q", got.Outcome, err, want)
		}
	}
	if n := count(t, pool); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

func TestProcessOfAnEffectThatIsNotCommitted(t *testing.T) {
	for name, effect := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"error":            func(context.Context, pgx.Tx) error { return errors.New("no stock") },
		"hidden statement": func(ctx context.Context, tx pgx.Tx) error { tx.Exec(ctx, `INSERT INTO nowhere VALUES (1)`); return nil },
		"own rollback":     func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
		"own time":         func(ctx context.Context, tx pgx.Tx) error { return slowly(ctx, tx) },
	} {
		t.Run(name, func(t *testing.T) {
			in, pool := inboxPool(t)
			got, err := postriderpgx.Process(t.Context(), in, pool, message("m"), effect)
			if err == nil || got.Err == nil || inbox.ClassOf(err) != inbox.ClassRetry {
				t.Errorf("%+v, error %v of class %s, want one of the message's", got, err, inbox.ClassOf(err))
			}
			got, err = postriderpgx.Process(t.Context(), in, pool, message("m"), func(context.Context, pgx.Tx) error { return nil })
			if got.Outcome != inbox.Applied || err != nil {
				t.Errorf("%q, %v, want it applied", got.Outcome, err)
			}
		})
	}
}

// slowly runs out of time, and pgx closes the connection.
func slowly(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(ctx, 1)
	defer cancel()
	_, err := tx.Exec(ctx, `SELECT pg_sleep(60)`)
	return err
}

func TestConnectionThatBreaksUnderAnEffectIsNotTheMessages(t *testing.T) {
	in, pool := inboxPool(t)
	_, err := postriderpgx.Process(t.Context(), in, pool, message("m"), func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		return err
	})
	if inbox.ClassOf(err) != inbox.ClassUnavailable {
		t.Errorf("error %v of class %s, want unavailable", err, inbox.ClassOf(err))
	}
}

func TestBatchThroughAPool(t *testing.T) {
	in, pool := inboxPool(t)
	var messages []inbox.Message
	for _, n := range []int{0, 1, 2, 1, 3} {
		messages = append(messages, message(fmt.Sprint("m", n)))
	}
	postriderpgx.ProcessBatch(t.Context(), in, pool, messages[:1], add(t))
	var outcomes []inbox.Outcome
	for _, r := range postriderpgx.Handler(in, pool, add(t))(t.Context(), messages) {
		outcomes = append(outcomes, r.Outcome)
	}
	want := []inbox.Outcome{inbox.Duplicate, inbox.Applied, inbox.Applied, inbox.Duplicate, inbox.Applied}
	if n := count(t, pool); n != 4 || !reflect.DeepEqual(outcomes, want) {
		t.Errorf("%d effects, outcomes %q, want 4, %q", n, outcomes, want)
	}
}
