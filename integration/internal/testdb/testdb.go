// Package testdb gives tests databases of their own on the real servers.
package testdb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	_ "github.com/lib/pq"              // driver postgres
	_ "modernc.org/sqlite"             // driver sqlite

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/sqlstore"
)

// Database is empty at first and gone after the test.
type Database struct {
	*sql.DB
	Driver  string
	Dialect postrider.Dialect
	DSN     string // of Driver, for other processes
}

// All runs test as a subtest on every database, on PostgreSQL with each of its common drivers.
func All(t *testing.T, test func(t *testing.T, db Database)) {
	Each(t, test)
	t.Run("MariaDB", func(t *testing.T) { test(t, MySQL(t, "POSTRIDER_TEST_MARIADB", nil)) })
	t.Run("MySQL", func(t *testing.T) { test(t, MySQL(t, "POSTRIDER_TEST_MYSQL", nil)) })
}

// Each is All without MariaDB and MySQL.
func Each(t *testing.T, test func(t *testing.T, db Database)) {
	t.Run("PostgreSQL pgx", func(t *testing.T) { test(t, Postgres(t, "pgx")) })
	t.Run("PostgreSQL pq", func(t *testing.T) { test(t, Postgres(t, "postgres")) })
	t.Run("SQLite", func(t *testing.T) { test(t, SQLite(t)) })
}

// Postgres makes a schema on the server of POSTRIDER_TEST_POSTGRES, which is the search path of every connection.
func Postgres(t testing.TB, driver string) Database {
	t.Helper()
	address := os.Getenv("POSTRIDER_TEST_POSTGRES")
	if address == "" {
		t.Fatal("POSTRIDER_TEST_POSTGRES is not set: scripts/services starts the servers")
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	schema := "test_" + strings.ToLower(rand.Text())
	parameters := u.Query()
	parameters.Set("search_path", schema)
	parameters.Set("timezone", "America/New_York") // what is right only where the session is in UTC shows
	u.RawQuery = parameters.Encode()

	db := open(t, driver, u.String())
	execute(t, db, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { execute(t, db, "DROP SCHEMA "+schema+" CASCADE") })
	return Database{db, driver, postrider.PostgreSQL, u.String()}
}

// SQLite makes a database file that several connections share.
func SQLite(t *testing.T) Database {
	t.Helper()
	dsn := sqlstore.SQLiteDSN(filepath.Join(t.TempDir(), "test.db"))
	return Database{open(t, "sqlite", dsn), "sqlite", postrider.SQLite, dsn}
}

// MySQL makes a database on the server whose address the environment variable holds. parameters are the driver's.
func MySQL(t *testing.T, server string, parameters url.Values) Database {
	t.Helper()
	u, err := url.Parse(os.Getenv(server))
	if err != nil || u.Host == "" {
		t.Fatalf("%s is not set: scripts/services starts the servers", server)
	}
	name := "test_" + strings.ToLower(rand.Text())
	admin := open(t, "mysql", mysqlDSN(t, u))
	execute(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, admin, "DROP DATABASE "+name) })
	u.Path = "/" + name
	all := url.Values{"time_zone": {"'-05:00'"}} // what is right only where the session is in UTC shows
	maps.Copy(all, parameters)
	u.RawQuery = all.Encode()
	dsn := mysqlDSN(t, u)
	return Database{open(t, "mysql", dsn), "mysql", postrider.MySQL, dsn}
}

func mysqlDSN(t *testing.T, u *url.URL) string {
	t.Helper()
	dsn, err := sqlstore.MySQLDSN(u.String())
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// InitOutbox creates the outbox tables and returns an Outbox for them. config.Dialect is filled in.
func (d Database) InitOutbox(t *testing.T, config postrider.Config) *postrider.Outbox {
	t.Helper()
	dialect, payload := sqlstore.Postgres, sqlstore.PayloadJSON
	switch d.Dialect {
	case postrider.SQLite:
		dialect = sqlstore.SQLite
	case postrider.MySQL:
		dialect = sqlstore.MySQL
	}
	if config.Binary {
		payload = sqlstore.PayloadBinary
	}
	store, err := sqlstore.Open(d.DB, dialect, sqlstore.Config{Table: config.Table, Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	config.Dialect = d.Dialect
	outbox, err := postrider.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return outbox
}

// Begin starts a transaction that rolls back when the test ends, unless it has ended before.
func (d Database) Begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := d.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

func open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func execute(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
