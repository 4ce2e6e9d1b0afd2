package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// readTheirs reads from a mapped table. The statement walks over the events of all shards in outbox order; here they are
// put into the order of the shards, none of which gets more than its limit.
func (s *Store) readTheirs(ctx context.Context, op string, req relay.ReadRequest, flight string) ([]relay.Event, error) {
	var events []relay.Event
	read := func(rows *sql.Rows) error {
		byShard := make(map[int][]relay.Event)
		for size := 0; size < req.MaxBytes && rows.Next(); {
			e, err := s.scanTheirs(rows)
			if err != nil {
				return err
			}
			if len(byShard[e.Shard]) < req.PerShard {
				byShard[e.Shard] = append(byShard[e.Shard], e)
				size += e.Size()
			}
		}
		events = nil
		for _, shard := range req.Shards {
			events = append(events, byShard[shard]...)
		}
		return nil
	}
	q, err := s.query(ctx, op, "read")
	if err != nil {
		return nil, err
	}
	q = q.with("{wanted}", s.theirs.Load().terms.wanted(req)) // where the parameters do not say it
	args := []any{toJSON(req.Shards), "", flight, kindsJSON(req.Skip), toJSON(append([]string{}, req.SkipKeys...)), req.PerShard, req.Limit}
	err = s.repeat(ctx, op, func() error { return s.runOnce(ctx, q, read, args) })
	return events, err
}

// scanTheirs reads an event of a mapped table, which can hold what our own tables refuse; more takes the columns behind.
func (s *Store) scanTheirs(rows *sql.Rows, more ...any) (relay.Event, error) {
	var headers []byte
	var key string
	e, err := scanEvent(rows, append([]any{&headers, &key}, more...)...)
	if err != nil {
		return relay.Event{}, err
	}
	if key != e.AggregateID {
		e.PartitionKey = key
	}
	e.Headers, e.Malformed = decodeTheirHeaders(headers)
	switch {
	case key == "":
		e.Malformed = fmt.Errorf("it has no key: %s is NULL or empty", s.mapping.key())
	case e.EventID == "":
		e.Malformed = fmt.Errorf("it has no event id: %s is NULL or empty", s.mapping.EventID)
	case e.EventType == "":
		e.Malformed = fmt.Errorf("it has no event type: %s is NULL or empty", s.mapping.EventType)
	case e.Payload == nil && strings.ContainsAny(s.mapping.Payload, "(>"): // a column's own NULL is an empty payload
		e.Malformed = fmt.Errorf("it has no payload: %s is NULL, or cannot be read", s.mapping.Payload)
	case s.config.Payload == PayloadJSON && len(e.Payload) > 0 && !json.Valid(e.Payload):
		e.Malformed = fmt.Errorf("its payload, %s, is no JSON; if it need not be, set the payload to %s", s.mapping.Payload, PayloadBinary)
	}
	return e, nil
}

// decodeTheirHeaders reads the text of a JSON object, and the headers that have terms of their own, which come in one
// array. Foreign writers put null for what is not there, and numbers.
func decodeTheirHeaders(text []byte) (map[string]string, error) {
	if text == nil {
		return nil, nil
	}
	var both struct {
		text  *string
		terms map[string]*string
	}
	if err := json.Unmarshal(text, &[]any{&both.text, &both.terms}); err != nil {
		return nil, fmt.Errorf("headers cannot be read: %w", err)
	}
	headers := make(map[string]string)
	if both.text != nil {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(*both.text), &members); err != nil {
			return nil, fmt.Errorf("headers are no JSON object: %w", err)
		}
		for name, value := range members {
			if string(value) == "null" {
				continue
			}
			var word string
			if json.Unmarshal(value, &word) != nil {
				word = string(value)
			}
			headers[name] = word
		}
	}
	for name, value := range both.terms {
		if value != nil {
			headers[name] = *value
		}
	}
	if len(headers) == 0 {
		return nil, nil
	}
	return headers, nil
}

// settleFailed writes failed outcomes. What their table refuses, such as a word that a trigger does not know, must not
// lose the outcome: then the side table alone has it.
func (s *Store) settleFailed(ctx context.Context, op string, m relay.Member, rows []settlement) ([]string, error) {
	name := s.aside("settle_failed")
	settled, err := s.settle(ctx, op, name, m, rows)
	if s.mapping == nil || name != "settle_failed" || err == nil || !s.refused(ctx, err) {
		return settled, err
	}
	if len(rows) == 1 {
		return s.settle(ctx, op, "settle_failed_aside", m, rows)
	}
	for i := range rows {
		one, err := s.settleFailed(ctx, op, m, rows[i:i+1])
		if err != nil {
			return settled, err
		}
		settled = append(settled, one...)
	}
	return settled, nil
}

// refused says that the database was at work and did not want what it was given.
func (s *Store) refused(ctx context.Context, err error) bool {
	return ctx.Err() == nil && s.cause(err) == nil && !errors.Is(err, sql.ErrConnDone)
}

// rowScanner reads rows of the outbox's table.
func (s *Store) rowScanner() func(*sql.Rows) (operator.Row, error) {
	if s.mapping == nil {
		return func(rows *sql.Rows) (operator.Row, error) { return scanRow(rows) }
	}
	return func(rows *sql.Rows) (operator.Row, error) {
		var headers []byte
		r, err := scanRow(rows, &headers)
		r.Headers, _ = decodeTheirHeaders(headers) // a relay gives an event with malformed ones its reason as DEAD
		return r, err
	}
}
