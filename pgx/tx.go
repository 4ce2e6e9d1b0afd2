// Package postriderpgx lets transactions of pgx carry events and receipts:
//
//	added, err := outbox.Add(ctx, postriderpgx.Tx(tx), events...)
//	result, err := in.Apply(ctx, postriderpgx.Tx(tx), message, effect)
//	result, err := postriderpgx.Process(ctx, in, pool, message, effect)
//
// What package postrider promises holds here as well. Only a transaction can be given: pools and connections of pgx
// do not implement pgx.Tx. Adding takes one round trip for any number of events up to some 16 MiB, and one more where
// the connection's mode of execution prepares statements and has not yet prepared this one.
package postriderpgx

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
)

// Tx returns tx as the transaction that the Outbox, whose dialect must be PostgreSQL, writes within. tx stays the
// caller's to commit or roll back. The result for nil is nil, which Add refuses.
func Tx(tx pgx.Tx) postrider.Tx {
	if tx == nil {
		return nil
	}
	return transaction{tx}
}

// transaction is a postrider.ReturningTx.
type transaction struct{ tx pgx.Tx }

func (t transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := t.tx.Exec(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

func (t transaction) QueryStrings(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := t.tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
