package mongo

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// preparer checks events and fills in what Add fills in, by the rules of package postrider.
type preparer struct {
	rules  *postrider.Outbox
	binary bool
}

func newPreparer(c Config) (preparer, error) {
	rules, err := postrider.New(postrider.Config{
		Dialect: postrider.SQLite, Binary: c.Binary, MaxPayload: c.MaxPayload, Trace: c.Trace,
	})
	return preparer{rules, c.Binary}, err
}

// prepare returns the events with everything that Add sets, or postrider.EventErrors.
func (p preparer) prepare(ctx context.Context, events []postrider.Event) ([]postrider.Event, error) {
	r := recorder{binary: p.binary}
	if _, err := p.rules.Add(ctx, &r, events...); err != nil {
		return nil, err
	}
	return r.events, nil
}

// recorder takes the events that an Outbox would write to an SQL database.
type recorder struct {
	binary bool
	events []postrider.Event
}

// ExecContext implements postrider.Tx.
func (r *recorder) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ids, err := r.QueryStrings(ctx, query, args...)
	return rows(len(ids)), err
}

// QueryStrings implements postrider.ReturningTx.
func (r *recorder) QueryStrings(_ context.Context, _ string, args ...any) ([]string, error) {
	var records []struct {
		ID               string            `json:"event_id"`
		AggregateType    string            `json:"aggregate_type"`
		AggregateID      string            `json:"aggregate_id"`
		Type             string            `json:"event_type"`
		AggregateVersion int64             `json:"aggregate_version"`
		Topic            string            `json:"topic"`
		Payload          string            `json:"payload"`
		ContentType      string            `json:"content_type"`
		Headers          map[string]string `json:"headers"`
		DedupKey         string            `json:"dedup_key"`
		At               string            `json:"next_attempt_at"`
	}
	if err := json.Unmarshal([]byte(fmt.Sprint(args[0])), &records); err != nil {
		return nil, err
	}
	ids := make([]string, len(records))
	for i, record := range records {
		e := postrider.Event{
			ID: record.ID, AggregateType: record.AggregateType, AggregateID: record.AggregateID, Type: record.Type,
			AggregateVersion: record.AggregateVersion, Topic: record.Topic, Payload: []byte(record.Payload),
			ContentType: record.ContentType, Headers: record.Headers, DedupKey: record.DedupKey,
		}
		if r.binary {
			e.Payload, _ = hex.DecodeString(record.Payload) // it was encoded a moment ago
		}
		if record.At != "" {
			e.At, _ = time.Parse("2006-01-02 15:04:05.000", record.At)
		}
		r.events = append(r.events, e)
		ids[i] = record.ID
	}
	return ids, nil
}

type rows int64

func (n rows) LastInsertId() (int64, error) { return 0, nil }
func (n rows) RowsAffected() (int64, error) { return int64(n), nil }
