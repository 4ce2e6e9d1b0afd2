package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postrider/postrider/relay"
)

// Read implements relay.Store.
func (s *Store) Read(ctx context.Context, req relay.ReadRequest) ([]relay.Event, error) {
	const op = "read"
	ids, err := s.ids(ctx, op)
	if err != nil {
		return nil, err
	}
	flight, err := ids.json(req.InFlight)
	if err != nil {
		return nil, s.fail(op, err)
	}
	if s.mapping != nil {
		return s.readTheirs(ctx, op, req, flight)
	}
	if err := s.raiseFloors(ctx, op, req.Shards); err != nil {
		return nil, err
	}
	var events []relay.Event
	read := func(rows *sql.Rows) error {
		events = nil
		for size := 0; size < req.MaxBytes && rows.Next(); {
			e, err := scanEvent(rows)
			if err != nil {
				return err
			}
			events = append(events, e)
			size += e.Size()
		}
		return nil
	}
	q, err := s.readQuery(ctx, op, req)
	if q == nil || err != nil {
		return nil, err
	}
	args := []any{toJSON(req.Shards), toJSON(s.floors.of(req.Shards)), flight,
		kindsJSON(req.Skip), toJSON(append([]string{}, req.SkipKeys...)), req.PerShard, req.Limit}
	err = s.repeat(ctx, op, func() error { return s.runOnce(ctx, q, read, args) })
	s.flight.add(events)
	return events, err
}

func kindsJSON(kinds []relay.Kind) string {
	type row struct {
		AggregateType string `json:"aggregate_type"`
		EventType     string `json:"event_type"`
	}
	rows := make([]row, len(kinds))
	for i, k := range kinds {
		rows[i] = row(k)
	}
	return toJSON(rows)
}

// scanEvent reads the columns of an event; more takes those behind them.
func scanEvent(rows *sql.Rows, more ...any) (relay.Event, error) {
	var (
		e       relay.Event
		version sql.NullInt64
		after   sql.NullInt64
		topic   sql.NullString
		headers []byte
		age     float64
	)
	err := rows.Scan(append([]any{&e.ID, &e.EventID, &e.Shard, &e.AggregateType, &e.AggregateID, &e.EventType, &version, &topic,
		&e.Payload, &e.ContentType, &headers, &e.RetryCount, &age, &after}, more...)...)
	if err != nil {
		return relay.Event{}, err
	}
	if version.Valid {
		e.AggregateVersion = &version.Int64
	}
	if after.Valid {
		e.After = &after.Int64
	}
	e.Topic = topic.String
	e.Age = max(seconds(age), 0)
	e.Headers, e.Malformed = decodeHeaders(headers)
	return e, nil
}

// decodeHeaders is strict: a value that is not a string, null among them, is no header.
func decodeHeaders(text []byte) (map[string]string, error) {
	if text == nil {
		return nil, nil
	}
	var values map[string]*string
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("headers are no JSON object of strings: %w", err)
	}
	headers := make(map[string]string, len(values))
	for name, value := range values {
		if value == nil {
			return nil, fmt.Errorf("headers are no JSON object of strings: %q is null", name)
		}
		headers[name] = *value
	}
	return headers, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
