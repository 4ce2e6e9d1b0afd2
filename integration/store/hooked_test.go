package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/postrider/postrider/sqlstore"
)

// hooks are called by the connections of openHooked. Any may be nil.
type hooks struct {
	begin     func()                       // before a transaction begins
	statement func(statement string) error // before a statement, which is not executed when there is an error
}

// openHooked opens the database through its own driver, with connections that call the hooks.
func (d database) openHooked(t *testing.T, h *hooks) database {
	t.Helper()
	dsn := d.dsn
	if d.dialect.String() == sqlstore.MySQL.String() {
		dsn = mysqlDSN(t, dsn)
	}
	db := sql.OpenDB(hookedConnector{d.db.Driver(), dsn, h})
	t.Cleanup(func() { db.Close() })
	d.db = db
	return d
}

type hookedConnector struct {
	driver driver.Driver
	dsn    string
	hooks  *hooks
}

func (c hookedConnector) Driver() driver.Driver { return c.driver }

func (c hookedConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return hookedConn{deafConn{conn}, c.hooks}, nil
}

type hookedConn struct {
	deafConn
	hooks *hooks
}

func (c hookedConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if c.hooks.begin != nil {
		c.hooks.begin()
	}
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
}

func (c hookedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.before(query); err != nil {
		return nil, err
	}
	return c.deafConn.QueryContext(ctx, query, args)
}

func (c hookedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.before(query); err != nil {
		return nil, err
	}
	return c.deafConn.ExecContext(ctx, query, args)
}

func (c hookedConn) before(statement string) error {
	if c.hooks.statement == nil {
		return nil
	}
	return c.hooks.statement(statement)
}
