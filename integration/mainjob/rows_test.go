package mainjob_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/await"
)

// Plain SQL can insert what the library refuses. Each such row ends PUBLISHED or DEAD with a reason, and neither the
// rows beside it nor later ones of other keys suffer.
func TestRowsThatNobodyCheckedHarmOnlyThemselves(t *testing.T) {
	const insert = "INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload, content_type, headers, topic, aggregate_version, retry_count) VALUES "
	rows := map[string]string{
		"headers of numbers":      `('wallet', 'bad-1', 'E', '{}', 'application/json', '{"a": 1}', NULL, NULL, 0)`,
		"nested headers":          `('wallet', 'bad-2', 'E', '{}', 'application/json', '{"a": {"b": "c"}}', NULL, NULL, 0)`,
		"null header":             `('wallet', 'bad-3', 'E', '{}', 'application/json', '{"a": null}', NULL, NULL, 0)`,
		"empty header name":       `('wallet', 'bad-4', 'E', '{}', 'application/json', '{"": "b"}', NULL, NULL, 0)`,
		"line break in a header":  `('wallet', 'bad-5', 'E', '{}', 'application/json', '{"a\r\nb": "c\r\nd"}', NULL, NULL, 0)`,
		"NUL in a header":         `('wallet', 'bad-6', 'E', '{}', 'application/json', '{"a": "\u0000"}', NULL, NULL, 0)`,
		"header twice":            `('wallet', 'bad-7', 'E', '{}', 'application/json', '{"a": "1", "a": "2", "A": "3"}', NULL, NULL, 0)`,
		"header of the relay":     `('wallet', 'bad-8', 'E', '{}', 'application/json', '{"x-event-id": "1"}', NULL, NULL, 0)`,
		"many headers":            `('wallet', 'bad-9', 'E', '{}', 'application/json', (SELECT json_object_agg('h' || n, repeat('x', 1000)) FROM generate_series(1, 2000) n), NULL, NULL, 0)`,
		"empty topic":             `('wallet', 'bad-10', 'E', '{}', 'application/json', NULL, '', NULL, 0)`,
		"topic that cannot be":    `('wallet', 'bad-11', 'E', '{}', 'application/json', NULL, 'no topic/at all', NULL, 0)`,
		"topic of dots":           `('wallet', 'bad-12', 'E', '{}', 'application/json', NULL, '..', NULL, 0)`,
		"long topic":              `('wallet', 'bad-13', 'E', '{}', 'application/json', NULL, repeat('t', 3000), NULL, 0)`,
		"long key":                `('wallet', repeat('k', 100000), 'E', '{}', 'application/json', NULL, NULL, NULL, 0)`,
		"line break in a key":     `('wallet', E'bad\n14', E'E\n', '{}', E'application/json\n', NULL, NULL, NULL, 0)`,
		"empty content type":      `('wallet', 'bad-15', 'E', '{}', '', NULL, NULL, NULL, 0)`,
		"negative version":        `('wallet', 'bad-16', 'E', '{}', 'application/json', NULL, NULL, -9223372036854775808, 0)`,
		"many attempts":           `('wallet', 'bad-17', 'E', '{}', 'application/json', NULL, 'none', NULL, 2147483647)`,
		"type that is no pattern": `('wal[let', 'bad-18', 'E*?[', '{}', 'application/json', NULL, NULL, NULL, 0)`,
		"large payload":           `('wallet', 'bad-19', 'E', ('"' || repeat('x', 3000000) || '"')::json, 'application/json', NULL, NULL, NULL, 0)`,
		"payload of escaped NULs": `('wallet', 'bad-20', 'E', '"\u0000\ud800"', 'application/json', NULL, NULL, NULL, 0)`,
		"emoji everywhere":        `('🐎', '🐎', '🐎', '"🐎"', '🐎', '{"🐎": "🐎"}', NULL, NULL, 0)`,
	}
	s := newStage(t)
	s.relay["retry"] = "{schedule: [100ms]}"
	relay := s.startReady(t, "one")[0]
	var b batch
	names := make(map[string]string)
	tx := s.begin(t)
	for name, row := range rows {
		var id string
		if err := tx.QueryRowContext(t.Context(), insert+row+" RETURNING id").Scan(&id); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		names[id] = name
	}
	for i := range 100 {
		b.event(fmt.Sprintf("w-%d", i%10), payload(i))
	}
	b.add(t, tx)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}

	await.True(t, soon, "nothing is PENDING", func() bool { return s.inState("PENDING") == 0 })
	if n := s.count("SELECT count(*) FROM outbox_events WHERE aggregate_id LIKE 'w-%' AND status = 'PUBLISHED' AND retry_count = 0"); n != len(b.events) {
		t.Errorf("%d of %d good events were published at the first attempt", n, len(b.events))
	}
	result, err := s.db.QueryContext(t.Context(), "SELECT id, status, coalesce(last_error, '') FROM outbox_events WHERE aggregate_id NOT LIKE 'w-%' ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()
	for result.Next() {
		var id, status, reason string
		if err := result.Scan(&id, &status, &reason); err != nil {
			t.Fatal(err)
		}
		t.Logf("%-25s %-9s %.150s", names[id], status, reason)
		if status == "DEAD" && strings.TrimSpace(reason) == "" {
			t.Errorf("%s: DEAD without a reason", names[id])
		}
	}
	if err := result.Err(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(relay.Output(), "panic") {
		t.Error("the relay panicked")
	}
	var later batch
	later.event("w-later", payload(1))
	later.commit(t, s)
	await.True(t, soon, "a later event is published", func() bool {
		return s.count("SELECT count(*) FROM outbox_events WHERE aggregate_id = 'w-later' AND status = 'PUBLISHED'") == 1
	})
}
