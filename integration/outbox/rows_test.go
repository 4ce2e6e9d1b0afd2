package outbox

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

func add(t *testing.T, outbox *postrider.Outbox, tx postrider.Tx, events ...postrider.Event) []postrider.Added {
	t.Helper()
	added, err := outbox.Add(t.Context(), tx, events...)
	if err != nil {
		t.Fatal(err)
	}
	if len(added) != len(events) {
		t.Fatalf("%d added, want %d", len(added), len(events))
	}
	return added
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

type row struct{ eventID, key string }

// written reads the outbox in outbox order.
func written(t *testing.T, db querier) (all []row) {
	t.Helper()
	for _, columns := range table(t, db) {
		all = append(all, row{columns["event_id"].(string), columns["aggregate_id"].(string)})
	}
	return all
}

// table reads every column of the outbox in outbox order, whatever is text as a string.
func table(t *testing.T, db querier) (all []map[string]any) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT * FROM outbox_events ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values := make([]any, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		columns := map[string]any{}
		for i, name := range names {
			if text, ok := values[i].([]byte); ok {
				values[i] = string(text)
			}
			columns[name] = values[i]
		}
		all = append(all, columns)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func payloadOf(t *testing.T, db querier, a postrider.Added) []byte {
	t.Helper()
	for _, columns := range table(t, db) {
		if columns["event_id"] == a.EventID {
			return []byte(columns["payload"].(string))
		}
	}
	t.Fatalf("event %s is not in the table", a.EventID)
	return nil
}

// moment reads a time column: text in SQLite and from the driver of MySQL.
func moment(t *testing.T, value any) time.Time {
	t.Helper()
	if text, ok := value.(string); ok {
		parsed, err := time.Parse("2006-01-02 15:04:05", text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	return value.(time.Time)
}
