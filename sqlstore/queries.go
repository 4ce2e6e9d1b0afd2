package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
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

// tokens are what the .sql files leave open.
func (s *Store) tokens() map[string]string {
	n := s.names
	t := map[string]string{
		"events":        quoteName(n.schema, n.table),
		"shards":        quoteName(n.schema, n.side+"_shards"),
		"relays":        quoteName(n.schema, n.side+"_relays"),
		"attempts":      quoteName(n.schema, n.side+"_attempts"),
		"schema":        quoteName(n.schema, n.side+"_schema"),
		"shard_count":   strconv.Itoa(s.config.Shards),
		"payload":       string(s.config.Payload),
		"payload_type":  s.dialect.payload[s.config.Payload].kind,
		"payload_check": s.dialect.payload[s.config.Payload].check,
		"table":         n.table,
		"filter":        "{filter}", // is filled with each call; see runFiltered
	}
	for _, index := range []string{"dedup", "ready", "waiting", "blocking", "failed", "processing", "dead", "discarded"} {
		t["index_"+index] = quoteName(n.table + "_" + index)
	}
	t["index_attempts_event"] = quoteName(n.side + "_attempts_event")
	return t
}

// loadQueries reads the dialect's files, by name without ".sql".
func loadQueries(d Dialect, tokens map[string]string) (map[string]query, error) {
	names, err := fs.Glob(files, d.name+"/*.sql")
	if err != nil {
		return nil, err
	}
	queries := make(map[string]query, len(names))
	for _, name := range names {
		text, err := d.file(path.Base(name))
		if err != nil {
			return nil, err
		}
		if text, err = fill(text, tokens); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		queries[strings.TrimSuffix(path.Base(name), ".sql")] = split(text)
	}
	return queries, nil
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
	return s.repeat(ctx, op, func() error { return s.runOnce(ctx, s.queries[name], read, args) })
}

// runFiltered is run for a query that leaves open which events it is about.
func (s *Store) runFiltered(ctx context.Context, op, name, condition string, read func(*sql.Rows) error, args ...any) error {
	var q query
	for _, statement := range s.queries[name] {
		q = append(q, strings.ReplaceAll(statement, "{filter}", condition))
	}
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
		return execute(ctx, s.db, q[0], read, args)
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for _, statement := range q[:len(q)-1] {
			if err := execute(ctx, tx, statement, nil, s.taken(statement, args)); err != nil {
				return err
			}
		}
		return execute(ctx, tx, q[len(q)-1], read, args)
	})
}

// taken returns the arguments that a statement takes: settings take none.
func (s *Store) taken(statement string, args []any) []any {
	if !strings.Contains(statement, s.dialect.parameter(1)) {
		return nil
	}
	return args
}

// inTx commits what f does, or rolls it back when f fails.
func (s *Store) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
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

func execute(ctx context.Context, on executor, statement string, read func(*sql.Rows) error, args []any) error {
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
