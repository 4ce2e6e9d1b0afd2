package postrider

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postrider/postrider/internal/sqltx"
)

// Tx is the caller's transaction. *sql.Tx is one, and so are the transactions of libraries built on database/sql:
// sqlx, bun, ent, and GORM's ConnPool inside a transaction. A *sql.Conn serves after BEGIN was sent on it.
//
// A Tx that has QueryContext as well, or is a ReturningTx, writes all events of an Add in one round trip, or one for
// each 16 MiB; one with ExecContext alone needs a round trip more for every event with a dedup key.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// ReturningTx is for adapters of database APIs other than database/sql, whose rows are no *sql.Rows.
type ReturningTx interface {
	Tx

	// QueryStrings runs a statement to its end and returns the one column of text or UUIDs that it yields.
	QueryStrings(ctx context.Context, query string, args ...any) ([]string, error)
}

// TxError says that something other than a transaction was given where the caller's transaction is needed. What is
// written through a connection pool commits on its own: after a rollback of the caller's transaction an event of it
// would be published all the same, and after a crash between the two commits one of them would be lost.
type TxError struct {
	Type    string // the Go type that was given
	Problem string // what is wrong with it
}

func (e *TxError) Error() string {
	return fmt.Sprintf("%s %s: what is written through it would not commit and roll back together with your own data; "+
		"begin a transaction, write your data in it, and pass that transaction", e.Type, e.Problem)
}

func usable(tx Tx) (Tx, error) {
	direct, problem := sqltx.Usable(tx)
	if problem != "" {
		return nil, &TxError{Type: fmt.Sprintf("%T", tx), Problem: problem}
	}
	return direct.(Tx), nil
}

// queryFunc runs a statement as ReturningTx.QueryStrings does.
type queryFunc func(ctx context.Context, query string, args ...any) ([]string, error)

// queryStrings returns the queryFunc of tx, or nil when tx can only execute.
func queryStrings(tx Tx) queryFunc {
	switch tx := tx.(type) {
	case ReturningTx:
		return tx.QueryStrings
	case interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}:
		return func(ctx context.Context, query string, args ...any) ([]string, error) {
			rows, err := tx.QueryContext(ctx, query, args...)
			if err != nil {
				return nil, err
			}
			return column(rows)
		}
	default:
		return nil
	}
}

func column(rows *sql.Rows) (values []string, err error) {
	defer rows.Close()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}
