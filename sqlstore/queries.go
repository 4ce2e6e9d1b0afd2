package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// query is one .sql file: a statement, or several that take the same arguments, or none, and run in one transaction.
// Only the last one returns rows.
type query []string

// with fills what stays open until a call.
func (q query) with(token, text string) (filled query) {
	for _, statement := range q {
		filled = append(filled, strings.ReplaceAll(statement, token, text))
	}
	return filled
}

// tokens are what the .sql files leave open.
func (s *Store) tokens() map[string]string {
	n := s.names
	t := map[string]string{
		"shards":        s.dialect.quoteName(n.sideSchema, n.side+"_shards"),
		"relays":        s.dialect.quoteName(n.sideSchema, n.side+"_relays"),
		"attempts":      s.dialect.quoteName(n.sideSchema, n.side+"_attempts"),
		"versions":      s.dialect.quoteName(n.sideSchema, n.side+"_versions"),
		"jobs":          s.dialect.quoteName(n.sideSchema, n.side+"_jobs"),
		"job_events":    s.dialect.quoteName(n.sideSchema, n.side+"_job_events"),
		"holds":         s.dialect.quoteName(n.sideSchema, n.side+"_holds"),
		"schema":        s.dialect.quoteName(n.sideSchema, n.side+"_schema"),
		"shard_count":   strconv.Itoa(s.config.Shards),
		"payload":       string(s.config.Payload),
		"payload_type":  s.dialect.payload[s.config.Payload].kind,
		"payload_check": s.dialect.payload[s.config.Payload].check,
		"table":         s.recordedTable(),
		"events_name":   n.table,
		"side":          n.side,
		"database":      n.sideSchema,
		"filter":        "{filter}", // is filled with each call; see runFiltered
	}
	for _, index := range []string{"dedup", "ready", "waiting", "blocking", "failed", "processing", "dead", "discarded", "given_up", "event_id", "gaps"} {
		t["index_"+index] = s.dialect.quoteName(n.table + "_" + index)
	}
	t["dropped_failed"] = s.dialect.quoteName(n.schema, n.table+"_failed")
	for _, later := range []string{"picked", "proven", "parts", "place", "shard", "flight", "picked_set", "wanted", "heads", "look", "waiting_turn"} {
		t[later] = "{" + later + "}" // is filled with each call; see locked.go, read_parts.go, claims_read.go and mapping_read.go
	}
	maps.Copy(t, s.dialect.words)
	t["index_attempts_event"] = s.dialect.quoteName(n.side + "_attempts_event")
	t["index_jobs_state"] = s.dialect.quoteName(n.side + "_jobs_state")
	t["index_holds_key"] = s.dialect.quoteName(n.side + "_holds_key")
	if s.mapping == nil {
		t["events"] = s.dialect.quoteName(n.schema, n.table)
		return t
	}
	maps.Copy(t, s.sideTokens())
	t["needed_privileges"] = newTerms(s, &theirs{}).neededPrivileges()
	return t
}

// recordedTable is the name under which the side tables know their outbox table.
func (s *Store) recordedTable() string {
	if s.mapping != nil {
		return s.names.table + ", mapped"
	}
	return s.names.table
}

// loadQueries fills the files for a table of ours, or those that need no knowledge of a table of theirs.
func (s *Store) loadQueries() (map[string]query, error) {
	texts, err := s.texts()
	if err != nil {
		return nil, err
	}
	tokens := s.tokens()
	if s.mapping != nil {
		maps.DeleteFunc(texts, func(_, text string) bool { return hasOther(text, tokens) })
	}
	return fillQueries(texts, tokens)
}

// texts reads the dialect's files, by name without ".sql". For a table of theirs those in the folder mapped take
// the place of the others.
func (s *Store) texts() (map[string]string, error) {
	folders := []string{s.dialect.name}
	if s.mapping != nil {
		folders = append(folders, s.dialect.name+"/mapped")
	}
	texts := make(map[string]string)
	for _, folder := range folders {
		names, err := fs.Glob(files, folder+"/*.sql")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				return nil, err
			}
			texts[strings.TrimSuffix(path.Base(name), ".sql")] = string(text)
		}
	}
	return texts, nil
}

func fillQueries(texts, tokens map[string]string) (map[string]query, error) {
	queries := make(map[string]query, len(texts))
	for name, text := range texts {
		filled, err := fill(text, tokens)
		if err != nil {
			return nil, fmt.Errorf("%s.sql: %w", name, err)
		}
		queries[name] = split(filled)
	}
	return queries, nil
}

// query returns the named query.
func (s *Store) query(ctx context.Context, op, name string) (query, error) {
	if q, ok := s.queries[name]; ok {
		return q, nil
	}
	if s.mapping == nil {
		return nil, s.fail(op, fmt.Errorf("%s has no statement %q", s.dialect.name, name))
	}
	t, err := s.theirTable(ctx, op) // the others are filled when their table is known
	if err != nil {
		return nil, err
	}
	return t.queries[name], nil
}

var token = regexp.MustCompile(`\{[a-z_]+\}`)

// fill puts values in the place of {tokens}.
func fill(text string, tokens map[string]string) (string, error) {
	var err error
	text = token.ReplaceAllStringFunc(text, func(t string) string {
		value, ok := tokens[t[1:len(t)-1]]
		if !ok {
			err = fmt.Errorf("unknown token %s", t)
		}
		return value
	})
	return text, err
}

// split cuts a file after each line, other than a comment, that ends with a semicolon.
func split(text string) (q query) {
	var statement strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		if last, ok := strings.CutSuffix(strings.TrimRight(line, " \n"), ";"); ok {
			q = append(q, strings.TrimSpace(statement.String()+last))
			statement.Reset()
			continue
		}
		statement.WriteString(line)
	}
	return q
}

// maxTries bounds how often a statement is repeated that the database refused because of other transactions.
const maxTries = 5

// run executes the named query. read takes the rows; it may leave some unread, and starts anew each time it is
// called. Without read there are no rows.
func (s *Store) run(ctx context.Context, op, name string, read func(*sql.Rows) error, args ...any) error {
	q, err := s.query(ctx, op, name)
	if err != nil {
		return err
	}
	return s.repeat(ctx, op, func() error { return s.runOnce(ctx, q, read, args) })
}

// runFiltered is run for a query that leaves open which events it is about.
func (s *Store) runFiltered(ctx context.Context, op, name, condition string, read func(*sql.Rows) error, args ...any) error {
	open, err := s.query(ctx, op, name)
	if err != nil {
		return err
	}
	q := open.with("{filter}", condition)
	return s.repeat(ctx, op, func() error { return s.runOnce(ctx, q, read, args) })
}

// repeat calls f until other transactions are no longer in the way.
func (s *Store) repeat(ctx context.Context, op string, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if err == nil {
			return nil
		}
		if !errors.Is(s.cause(err), errBusy) || try == maxTries {
			return s.fail(op, err)
		}
		pause := time.NewTimer(time.Duration(try) * (5 + rand.N(10*time.Millisecond)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return s.fail(op, errors.Join(ctx.Err(), err))
		}
	}
}

func (s *Store) runOnce(ctx context.Context, q query, read func(*sql.Rows) error, args []any) error {
	if len(q) == 1 {
		return s.runAlone(ctx, q[0], read, args)
	}
	return s.inTx(ctx, func(tx *sql.Tx) error { return s.runAll(ctx, tx, q, read, args) })
}

// runIn executes the named query within a transaction.
func (s *Store) runIn(ctx context.Context, op string, tx *sql.Tx, name string, read func(*sql.Rows) error, args ...any) error {
	q, err := s.query(ctx, op, name)
	if err != nil {
		return err
	}
	return s.runAll(ctx, tx, q, read, args)
}

// runFilteredIn is runIn for a query that leaves open which events it is about.
func (s *Store) runFilteredIn(ctx context.Context, op string, tx *sql.Tx, name, condition string, read func(*sql.Rows) error, args ...any) error {
	open, err := s.query(ctx, op, name)
	if err != nil {
		return err
	}
	return s.runAll(ctx, tx, open.with("{filter}", condition), read, args)
}

func (s *Store) runAll(ctx context.Context, tx *sql.Tx, q query, read func(*sql.Rows) error, args []any) error {
	var rows locked
	for _, statement := range q[:len(q)-1] {
		statement = rows.fill(statement)
		if err := s.execute(ctx, tx, statement, rows.reader(statement), args); err != nil {
			return err
		}
	}
	return s.execute(ctx, tx, rows.fill(q[len(q)-1]), read, args)
}

// runAlone executes a statement that commits by itself.
func (s *Store) runAlone(ctx context.Context, statement string, read func(*sql.Rows) error, args []any) error {
	if s.dialect.beforeWrite == "" || isRead(statement) {
		return s.execute(ctx, s.db, statement, read, args)
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, s.dialect.beforeWrite); err != nil {
		return err
	}
	return s.execute(ctx, conn, statement, read, args)
}

func isRead(statement string) bool {
	return strings.HasPrefix(statement, "SELECT") || strings.HasPrefix(statement, "WITH")
}

// inTx commits what f does, or rolls it back when f fails.
func (s *Store) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.isolation})
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return tx.Commit()
}

// ignoreDone drops the complaint that the end of the context has rolled the transaction back already.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

type executor interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
}

func (s *Store) execute(ctx context.Context, on executor, statement string, read func(*sql.Rows) error, args []any) error {
	statement, args = s.dialect.bind(statement, args)
	if read == nil {
		_, err := on.ExecContext(ctx, statement, args...)
		return err
	}
	rows, err := on.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if err := read(rows); err != nil {
		return err
	}
	if err := rows.Close(); err != nil {
		return err
	}
	return rows.Err()
}

// into returns a reader that puts every row, as scan reads it, into list.
func into[T any](list *[]T, scan func(*sql.Rows) (T, error)) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		*list = nil
		for rows.Next() {
			item, err := scan(rows)
			if err != nil {
				return err
			}
			*list = append(*list, item)
		}
		return nil
	}
}

// scanValue reads a row of one column.
func scanValue[T any](rows *sql.Rows) (value T, err error) {
	err = rows.Scan(&value)
	return value, err
}
