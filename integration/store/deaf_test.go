package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/postrider/postrider/sqlstore"
)

// deafness makes every commit on a deaf connection lose its answer: it is done, and looks failed.
var deafness atomic.Bool

var errDeaf = errors.New("the answer to the commit was lost")

// openDeaf opens the database through its own driver, with connections that can lose the answer to a commit.
func openDeaf(t *testing.T, d database) *sql.DB {
	t.Helper()
	if d.dialect.String() == sqlstore.MySQL.String() {
		d.dsn = mysqlDSN(t, d.dsn)
	}
	db := sql.OpenDB(deafConnector{d})
	t.Cleanup(func() { db.Close() })
	return db
}

type deafConnector struct{ database }

func (c deafConnector) Driver() driver.Driver { return c.db.Driver() }

func (c deafConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.db.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return deafConn{conn}, nil
}

type deafConn struct{ driver.Conn }

func (c deafConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return deafTx{tx}, err
}

func (c deafConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c deafConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c deafConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type deafTx struct{ driver.Tx }

func (t deafTx) Commit() error {
	err := t.Tx.Commit()
	if err == nil && deafness.Load() {
		return errDeaf
	}
	return err
}
