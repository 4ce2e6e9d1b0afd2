// Package store runs the conformance suite of stores, and what only real databases can show, on each database.
package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
	"github.com/postrider/postrider/storetest"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"POSTRIDER_TEST_POSTGRES", "POSTRIDER_TEST_POSTGRES18"} {
		t.Run(server, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness { return newHarness(t, newPostgres(t, server)) })
		})
	}
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness { return newHarness(t, newSQLite(t)) })
}

// database is a fresh database, or a fresh schema in one, and how its producers write.
type database struct {
	dsn     string
	db      *sql.DB
	dialect sqlstore.Dialect
	table   string
	insert  inserter
	many    string // adds $1 events, with keys that spread
}

// addMany commits n events at once.
func (d database) addMany(t testing.TB, n int) {
	t.Helper()
	execute(t, d.db, fmt.Sprintf(d.many, d.table), n)
}

// newPostgres makes a schema of its own on the server whose address the environment variable holds.
func newPostgres(t testing.TB, server string) database {
	t.Helper()
	dsn := sqlstore.PostgresDSN(os.Getenv(server))
	if os.Getenv(server) == "" {
		t.Fatalf("%s is not set: scripts/services starts the servers", server)
	}
	schema := fmt.Sprintf("test_%x", rand.Uint64())
	execute(t, connect(t, "pgx", dsn), "CREATE SCHEMA "+schema)
	t.Cleanup(func() { execute(t, connect(t, "pgx", dsn), "DROP SCHEMA "+schema+" CASCADE") })
	dsn = withParameter(t, dsn, "search_path", schema)
	dsn = withParameter(t, dsn, "timezone", "America/New_York") // what is right only where the session is in UTC shows
	return database{dsn, connect(t, "pgx", dsn), sqlstore.Postgres, schema + ".outbox_events", insertPostgres,
		`INSERT INTO %s (aggregate_type, aggregate_id, event_type, payload)
		SELECT 'order', 'order-' || n %% 1000, 'OrderPlaced', '{"some": "payload"}' FROM generate_series(1, $1::int) AS n`}
}

func withParameter(t testing.TB, dsn, name, value string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func newSQLite(t testing.TB) database {
	t.Helper()
	dsn := sqlstore.SQLiteDSN(filepath.Join(t.TempDir(), "outbox.db"))
	return database{dsn, connect(t, "sqlite", dsn), sqlstore.SQLite, "outbox_events", insertSQLite,
		`INSERT INTO %s (aggregate_type, aggregate_id, event_type, payload)
		WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
		SELECT 'order', 'order-' || n %% 1000, 'OrderPlaced', '{"some": "payload"}' FROM numbers`}
}

func connect(t testing.TB, driver, dsn string) *sql.DB {
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

func execute(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

const shards = 4

// open opens a Store on the database.
func (d database) open(t testing.TB, config sqlstore.Config) *sqlstore.Store {
	t.Helper()
	config.Table = d.table
	if config.Shards == 0 {
		config.Shards = shards
	}
	s, err := sqlstore.Open(d.db, d.dialect, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// store opens a Store on the database and creates its tables.
func (d database) store(t testing.TB, config sqlstore.Config) *sqlstore.Store {
	t.Helper()
	s := d.open(t, config)
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func newHarness(t testing.TB, d database) storetest.Harness {
	s := d.store(t, sqlstore.Config{})
	return storetest.Harness{
		Store:         s,
		Claims:        func() relay.Store { return s.RowClaims() },
		Operator:      s,
		Jobs:          s,
		Shards:        shards,
		Init:          s.Init,
		Begin:         func(t *testing.T) storetest.Tx { return begin(t, d) },
		SerialWriters: d.dialect.String() == sqlstore.SQLite.String(),
	}
}

// inserter gives the INSERT of an event, in the words of the database.
type inserter func(table string, columns map[string]any, e storetest.Event) (statement string, args []any)

type producer struct {
	*sql.Tx
	d database
}

func begin(t *testing.T, d database) producer {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return producer{tx, d}
}

func (p producer) Add(t *testing.T, e storetest.Event) string {
	t.Helper()
	columns := map[string]any{
		"aggregate_type": e.AggregateType, "aggregate_id": e.Key, "event_type": e.EventType, "payload": string(e.Payload),
	}
	for column, value := range map[string]string{
		"event_id": e.EventID, "topic": e.Topic, "content_type": e.ContentType, "headers": e.Headers, "dedup_key": e.DedupKey,
	} {
		if value != "" {
			columns[column] = value
		}
	}
	if e.Version != nil {
		columns["aggregate_version"] = *e.Version
	}
	statement, args := p.d.insert(p.d.table, columns, e)
	if p.d.dialect.String() == sqlstore.MySQL.String() {
		return p.exec(t, statement, args)
	}
	var id string
	if err := p.QueryRow(statement, args...).Scan(&id); err == sql.ErrNoRows {
		return ""
	} else if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return id
}

// exec inserts where an INSERT returns no rows.
func (p producer) exec(t *testing.T, statement string, args []any) string {
	t.Helper()
	result, err := p.Exec(statement, args...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	written, err := result.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	if written == 0 {
		return ""
	}
	id, err := result.LastInsertId()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatInt(id, 10)
}

func insertPostgres(table string, columns map[string]any, e storetest.Event) (string, []any) {
	return insert(table, columns, "now() + $%d * interval '1 second'", "$%d", e)
}

func insertSQLite(table string, columns map[string]any, e storetest.Event) (string, []any) {
	return insert(table, columns, "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', ?%d || ' seconds')", "?%d", e)
}

func insert(table string, columns map[string]any, due, placeholder string, e storetest.Event) (string, []any) {
	var names, values []string
	var args []any
	for name, value := range columns {
		args = append(args, value)
		names = append(names, name)
		values = append(values, fmt.Sprintf(placeholder, len(args)))
	}
	if e.DueIn != 0 {
		args = append(args, e.DueIn.Seconds())
		names = append(names, "next_attempt_at")
		values = append(values, fmt.Sprintf(due, len(args)))
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING RETURNING id",
		table, strings.Join(names, ", "), strings.Join(values, ", ")), args
}

func (p producer) Commit(t *testing.T) {
	t.Helper()
	if err := p.Tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func (p producer) Rollback(t *testing.T) {
	t.Helper()
	if err := p.Tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}
