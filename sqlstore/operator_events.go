package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/postrider/postrider/operator"
)

// Events implements operator.Store. The letters' case does not matter to Filter.ErrorContains.
func (s *Store) Events(ctx context.Context, f operator.Filter) (rows []operator.Row, err error) {
	const op = "list events"
	limit := f.Limit
	if limit == 0 {
		limit = 100
	}
	ids, err := s.ids(ctx, op)
	if err != nil {
		return nil, err
	}
	condition, args, err := s.where(ids, f, 2)
	if err != nil {
		return nil, s.fail(op, err)
	}
	err = s.runFiltered(ctx, op, "list", condition, into(&rows, s.rowScanner()), append([]any{limit}, args...)...)
	return rows, err
}

// Event implements operator.Store.
func (s *Store) Event(ctx context.Context, ref string) (operator.Row, error) {
	rows, err := s.Events(ctx, operator.Filter{IDs: []string{ref}, Limit: 1})
	if err != nil {
		return operator.Row{}, err
	}
	if len(rows) == 0 {
		return operator.Row{}, fmt.Errorf("%w: %q in outbox %s", operator.ErrNotFound, ref, s.config.Table)
	}
	return rows[0], nil
}

// Attempts implements operator.Store.
func (s *Store) Attempts(ctx context.Context, id string) (attempts []operator.Attempt, err error) {
	const op = "list attempts"
	ids, err := s.ids(ctx, op)
	if err != nil {
		return nil, err
	}
	if err := ids.check(id); err != nil {
		return nil, s.fail(op, err)
	}
	err = s.run(ctx, op, "attempts", into(&attempts, func(rows *sql.Rows) (a operator.Attempt, err error) {
		err = rows.Scan((*moment)(&a.At), &a.Outcome, &a.Error, &a.By)
		return a, err
	}), id)
	return attempts, err
}

// scanRow reads the columns of a row; more takes those behind them.
func scanRow(rows *sql.Rows, more ...any) (operator.Row, error) {
	var (
		r           operator.Row
		version     sql.NullInt64
		headers     []byte
		shard       sql.NullInt64
		publishedAt sql.Null[moment]
	)
	err := rows.Scan(append([]any{&r.ID, &r.EventID, &r.AggregateType, &r.AggregateID, &r.EventType, &version, &r.Topic, &r.Payload,
		&r.ContentType, &headers, &r.DedupKey, &r.Status, &r.RetryCount, (*moment)(&r.NextAttemptAt), &r.LastError,
		&shard, &r.PublishedTo, (*moment)(&r.CreatedAt), &publishedAt, &r.Holds}, more...)...)
	if err != nil {
		return operator.Row{}, err
	}
	if version.Valid {
		r.AggregateVersion = &version.Int64
	}
	if shard.Valid {
		n := int(shard.Int64)
		r.Shard = &n
	}
	if publishedAt.Valid {
		at := time.Time(publishedAt.V)
		r.PublishedAt = &at
	}
	r.Headers, _ = decodeHeaders(headers) // a relay gives an event with malformed ones its reason as DEAD
	return r, nil
}

// moment scans a time that a statement returned as RFC 3339 text. NULL becomes the zero time.
type moment time.Time

// Scan implements sql.Scanner.
func (m *moment) Scan(value any) error {
	var text string
	switch value := value.(type) {
	case nil: // infinity is no moment
		*m = moment{}
		return nil
	case string:
		text = value
	case []byte:
		text = string(value)
	default:
		return fmt.Errorf("a time came as %T", value)
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	*m = moment(t.UTC())
	return err
}
