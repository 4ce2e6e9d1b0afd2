package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider"
)

const (
	cleanEvery = time.Minute
	cleanTurn  = cleanEvery / 2 // within which only one cleans
	cleanChunk = 1000           // receipts that one statement removes
)

// Clean removes the receipts of the consumer that are older than its window, in chunks that commit one by one, and returns how
// many they were. It also stores the window, for people and for postrider check. One process cleans at a time: when another
// one has begun within half a minute, Clean removes nothing. It takes the database's clock.
func (in *Inbox) Clean(ctx context.Context, db *sql.DB) (removed int64, err error) {
	removed, err = in.clean(ctx, db)
	if err != nil {
		return removed, in.fail("remove old receipts from", err)
	}
	return removed, nil
}

func (in *Inbox) clean(ctx context.Context, db *sql.DB) (removed int64, err error) {
	if _, err := in.change(ctx, db, "register", in.consumer, int64(in.window.Seconds())); err != nil {
		return 0, err
	}
	turns, err := in.change(ctx, db, "turn", in.consumer, int64(cleanTurn.Seconds()))
	if err != nil || turns == 0 {
		return 0, err
	}
	for {
		n, err := in.change(ctx, db, "clean", in.consumer, int64(in.window.Seconds()), cleanChunk)
		removed += n
		if err != nil || n < cleanChunk {
			return removed, err
		}
	}
}

// RunCleaner calls Clean about once a minute until ctx ends. It blocks. Every process of a consumer may run it. failed, which
// may be nil, is called with each error; the next minute is another attempt.
func (in *Inbox) RunCleaner(ctx context.Context, db *sql.DB, failed func(error)) {
	runCleaner(ctx, func(ctx context.Context) (int64, error) { return in.Clean(ctx, db) }, failed)
}

func runCleaner(ctx context.Context, clean func(context.Context) (int64, error), failed func(error)) {
	for {
		if _, err := clean(ctx); err != nil && ctx.Err() == nil && failed != nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(cleanEvery*3/4 + rand.N(cleanEvery/2)): // not all processes at once
		}
	}
}

// change runs a statement in a transaction of its own, and returns how many rows it has changed.
func (t *Tables) change(ctx context.Context, db *sql.DB, statement string, args ...any) (n int64, err error) {
	err = again(ctx, func() error {
		return t.inTx(ctx, db, func(tx *sql.Tx) (err error) {
			n, err = changed(tx.ExecContext(ctx, t.statement(statement), args...))
			return err
		})
	})
	return n, err
}

func (t *Tables) inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	var options *sql.TxOptions
	if t.dialect == postrider.MySQL {
		options = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func changed(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("count the rows: %w", err)
	}
	return n, nil
}
