package outboxtest

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/ident"
)

//go:embed sql
var statements embed.FS

// Table is an outbox table of postrider init. Dialect must be set.
type Table struct {
	Dialect postrider.Dialect
	Name    string // with or without its schema; default postrider.DefaultTable
}

// Querier is what a Table is read by: a *sql.Tx, which sees what it has added itself, or a *sql.DB or *sql.Conn, which
// see what was committed; also the transactions of sqlx and bun, and the connection pool of a transaction of GORM. With
// pgx, read what was committed by a *sql.DB of its package stdlib.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Mark remembers which events were there. The zero Mark remembers none.
type Mark struct{ seen map[int64]bool }

// Mark returns a Mark of the events that q sees now. It fails the test when the table cannot be read.
func (tb Table) Mark(t testing.TB, q Querier) Mark {
	t.Helper()
	m := Mark{seen: make(map[int64]bool)}
	for _, r := range tb.read(t, q) {
		m.seen[r.id] = true
	}
	return m
}

// Added returns the events that q sees and the Mark does not remember, in outbox order. Given a transaction, these are the
// events that it has added, and what others have committed since the Mark: let tests that run at the same time have a
// database, or a schema, each. Every event has its id; At is set for scheduled events only. The whole table is read, so it
// should be one for tests. It fails the test when the table cannot be read.
func (tb Table) Added(t testing.TB, q Querier, since Mark) []postrider.Event {
	t.Helper()
	var events []postrider.Event
	for _, r := range tb.read(t, q) {
		if !since.seen[r.id] {
			events = append(events, r.event)
		}
	}
	return events
}

type row struct {
	id    int64
	event postrider.Event
}

func (tb Table) read(t testing.TB, q Querier) []row {
	t.Helper()
	query, err := tb.query()
	if err != nil {
		t.Fatalf("outboxtest.Table: %v", err)
	}
	rows, err := readRows(q.QueryContext(t.Context(), query))
	if err != nil {
		t.Fatalf("read the outbox table: %v", err)
	}
	return rows
}

func (tb Table) query() (string, error) {
	text, err := statements.ReadFile("sql/" + string(tb.Dialect) + ".sql")
	if err != nil {
		return "", fmt.Errorf("Dialect is %q: it must be %q, %q or %q", tb.Dialect, postrider.PostgreSQL, postrider.SQLite, postrider.MySQL)
	}
	name, quote := tb.Name, `"`
	if name == "" {
		name = postrider.DefaultTable
	}
	if tb.Dialect == postrider.MySQL {
		quote = "`"
	}
	table, err := ident.QuoteTable(name, quote)
	if err != nil {
		return "", fmt.Errorf("Name %w", err)
	}
	return strings.ReplaceAll(string(text), "{events}", table), nil
}

func readRows(rows *sql.Rows, err error) ([]row, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []row
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

func scan(rows *sql.Rows) (r row, err error) {
	e := &r.event
	var headers []byte
	var at sql.NullString
	if err := rows.Scan(&r.id, &e.ID, &e.AggregateType, &e.AggregateID, &e.Type, &e.AggregateVersion, &e.Topic, &e.Payload,
		&e.ContentType, &headers, &e.DedupKey, &at); err != nil {
		return r, err
	}
	if headers != nil {
		if err := json.Unmarshal(headers, &e.Headers); err != nil {
			return r, fmt.Errorf("headers of event %s: %w", e.ID, err)
		}
	}
	if at.Valid {
		e.At, err = time.Parse(time.RFC3339Nano, at.String)
	}
	return r, err
}
