package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/postrider/postrider"
)

// Transaction is one that was begun for messages. Those who use database/sql or pgx need not know of it: it is what adapters of
// other APIs of databases give to ProcessIn, ProcessBatchIn and HandlerIn.
type Transaction[T any] struct {
	Tx       T            // what effects get
	Receipts postrider.Tx // the same, as a transaction in which receipts are written; it must be able to query
	Commit   func(context.Context) error
	Rollback func(context.Context) error // its error is sql.ErrTxDone after Commit and after an end that the effect brought about
}

// Begin begins a transaction.
type Begin[T any] func(ctx context.Context) (Transaction[T], error)

func beginSQL(db *sql.DB) Begin[*sql.Tx] {
	return func(ctx context.Context) (Transaction[*sql.Tx], error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return Transaction[*sql.Tx]{}, err
		}
		return Transaction[*sql.Tx]{
			Tx:       tx,
			Receipts: tx,
			Commit:   func(context.Context) error { return tx.Commit() },
			Rollback: func(context.Context) error { return tx.Rollback() },
		}, nil
	}
}

// Process runs effect in a transaction of its own, as Apply does, and commits it. When other transactions are in the way
// (deadlocks, refused serialization), or the connection breaks at a statement of the inbox, it begins again, effect
// included, up to ten times within some seconds. A commit whose outcome got lost is resolved that way: the receipt tells it.
//
// When it returns an error nothing was applied, with one exception: after a commit that ended with an error of ClassUnavailable
// the outcome is unknown. In either case the message is to be processed again. Errors of the database at the beginning, at
// the receipt and at the commit are of ClassUnavailable, unless the database refuses what the effect has written; so is an
// error of effect when its connection broke under it. The error is the Result's Err as well. When effect panics the
// transaction is rolled back.
func (in *Inbox) Process(ctx context.Context, db *sql.DB, m Message, effect func(ctx context.Context, tx *sql.Tx) error) (Result, error) {
	return ProcessIn(ctx, in, beginSQL(db), m, effect)
}

// ProcessIn is Inbox.Process with a transaction of any kind.
func ProcessIn[T any](ctx context.Context, in *Inbox, begin Begin[T], m Message, effect func(ctx context.Context, tx T) error) (Result, error) {
	return process(ctx, &in.identity, databaseOf(in, begin), m, effect)
}

// databaseOf is the database in which begin begins transactions.
func databaseOf[T any](in *Inbox, begin Begin[T]) database[T] {
	return database[T]{transactionsOf(in, begin), readerOf(in, begin)}
}

// readerOf reads in a transaction of its own.
func readerOf[T any](in *Inbox, begin Begin[T]) readFunc {
	return func(ctx context.Context, entries []*entry) (met map[string]Receipt, err error) {
		err = transact(ctx, begin, func(tx Transaction[T]) error {
			receipts, err := usable(tx.Receipts)
			if err != nil {
				return err
			}
			met, err = in.readMet(ctx, receipts, entries)
			return err
		})
		return met, err
	}
}

// transactionsOf runs a function again while transactions that begin begins are in the way of others.
func transactionsOf[T any](in *Inbox, begin Begin[T]) transactFunc[T] {
	return func(ctx context.Context, f func(context.Context, T, writeFunc) error) error {
		return classified(again(ctx, func() error {
			return transact(ctx, begin, func(tx Transaction[T]) error {
				receipts, err := usable(tx.Receipts)
				if err != nil {
					return err
				}
				return f(ctx, tx.Tx, in.writerTo(receipts))
			})
		}))
	}
}

// transact calls f in a transaction and commits it, unless f returns an error or panics.
func transact[T any](ctx context.Context, begin Begin[T], f func(Transaction[T]) error) error {
	tx, err := begin(ctx)
	if err != nil {
		return &databaseError{fmt.Errorf("begin a transaction: %w", err)}
	}
	ended := false
	defer func() {
		if !ended { // f has panicked
			_ = tx.Rollback(context.WithoutCancel(ctx))
		}
	}()
	err = f(tx)
	ended = true
	if err != nil {
		return errors.Join(err, connectionLost(err, tx.Rollback(context.WithoutCancel(ctx))))
	}
	if err := tx.Commit(ctx); err != nil {
		_ = tx.Rollback(context.WithoutCancel(ctx)) // where the commit was not even sent
		return &databaseError{fmt.Errorf("commit: %w", err)}
	}
	return nil
}

// connectionLost tells by the rollback that the connection broke under the effect, which says nothing about the message. One
// that was given up because the effect's time was over does: it would happen again.
func connectionLost(err, rollback error) error {
	if rollback == nil || errors.Is(rollback, sql.ErrTxDone) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return &databaseError{fmt.Errorf("roll back: %w", rollback)}
}

// protected is effect, with a panic turned into an error: in a batch it must not keep the other messages from their end.
func protected[T any](effect func(context.Context, T, []Message) error) func(context.Context, T, []Message) error {
	return func(ctx context.Context, tx T, fresh []Message) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the effect panicked: %v\n%s", p, debug.Stack())
			}
		}()
		return effect(ctx, tx, fresh)
	}
}
