package inbox

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/sqltx"
)

// queryFunc runs a statement to its end and returns the one column of text that it yields.
type queryFunc func(ctx context.Context, query string, args ...any) ([]string, error)

// transaction is what receipts are written within.
type transaction struct {
	exec  postrider.Tx
	query queryFunc
}

// usable returns tx as a transaction, or a *postrider.TxError.
func usable(tx postrider.Tx) (transaction, error) {
	direct, problem := sqltx.Usable(tx)
	if problem != "" {
		return transaction{}, &postrider.TxError{Type: fmt.Sprintf("%T", tx), Problem: problem}
	}
	switch query := direct.(type) {
	case postrider.ReturningTx:
		return transaction{query, query.QueryStrings}, nil
	case querier:
		return transaction{direct.(postrider.Tx), queryOf(query)}, nil
	default:
		return transaction{}, &postrider.TxError{Type: fmt.Sprintf("%T", tx), Problem: "has neither QueryContext nor QueryStrings"}
	}
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func queryOf(q querier) queryFunc {
	return func(ctx context.Context, query string, args ...any) (values []string, err error) {
		rows, err := q.QueryContext(ctx, query, args...)
		if err != nil {
			return nil, err
		}
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
}
