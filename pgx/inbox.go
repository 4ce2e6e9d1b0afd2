package postriderpgx

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/inbox"
)

// Beginner begins transactions: *pgxpool.Pool is one. A *pgx.Conn is one as well, for one goroutine.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Process is in.Process with transactions of pgx. The dialect of in must be PostgreSQL.
func Process(ctx context.Context, in *inbox.Inbox, db Beginner, m inbox.Message, effect func(ctx context.Context, tx pgx.Tx) error) (inbox.Result, error) {
	return inbox.ProcessIn(ctx, in, begin(db), m, effect)
}

// ProcessBatch is in.ProcessBatch with transactions of pgx.
func ProcessBatch(ctx context.Context, in *inbox.Inbox, db Beginner, messages []inbox.Message, effect inbox.BatchEffect[pgx.Tx]) []inbox.Result {
	return inbox.ProcessBatchIn(ctx, in, begin(db), messages, effect)
}

// Handler is in.Handler with transactions of pgx.
func Handler(in *inbox.Inbox, db Beginner, effect inbox.BatchEffect[pgx.Tx]) func(ctx context.Context, messages []inbox.Message) []inbox.Result {
	return inbox.HandlerIn(in, begin(db), effect)
}

func begin(db Beginner) inbox.Begin[pgx.Tx] {
	return func(ctx context.Context) (inbox.Transaction[pgx.Tx], error) {
		tx, err := db.Begin(ctx)
		if err != nil {
			return inbox.Transaction[pgx.Tx]{}, err
		}
		return inbox.Transaction[pgx.Tx]{
			Tx:       tx,
			Receipts: Tx(tx),
			Commit:   func(ctx context.Context) error { return ended(tx.Commit(ctx)) },
			Rollback: func(ctx context.Context) error { return ended(tx.Rollback(ctx)) },
		}, nil
	}
}

// ended says in the words of database/sql that a transaction is over already.
func ended(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return errors.Join(sql.ErrTxDone, err)
	}
	return err
}
