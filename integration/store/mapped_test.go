package store

import (
	"embed"
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider/sqlstore"
	"github.com/postrider/postrider/storetest"
)

//go:embed testdata/tables
var tables embed.FS

// mapped is a database with a table that somebody else designed.
type mapped struct {
	database
	mapping sqlstore.Mapping
	config  sqlstore.Config
	names   map[string]string // their names for our columns, for the suite's events
	id      string            // their name of the id
	unique  string            // their name of dedup_key
	lacks   []storetest.Feature
}

// create creates the table of a file; its statements are separated by semicolons at the ends of lines.
func (d database) create(t testing.TB, file string) {
	t.Helper()
	text, err := tables.ReadFile("testdata/tables/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range strings.Split(string(text), ";\n") {
		if strings.TrimSpace(statement) != "" {
			execute(t, d.db, statement)
		}
	}
}

// named puts another table into the place of the database's own.
func (d database) named(table string) database {
	if schema, _, qualified := strings.Cut(d.table, "."); qualified {
		table = schema + "." + table
	}
	d.table = table
	return d
}

// openMapped opens a Store on their table.
func (m mapped) openMapped(t testing.TB) *sqlstore.Store {
	t.Helper()
	config := m.config
	config.Mapping = &m.mapping
	return m.open(t, config)
}

// init opens a Store on their table and creates its side tables.
func (m mapped) init(t testing.TB) *sqlstore.Store {
	t.Helper()
	s := m.openMapped(t)
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (m mapped) harness(t *testing.T) storetest.Harness {
	s := m.init(t)
	d := m.database
	d.insert = m.insertTheirs
	return storetest.Harness{
		Store: s, Operator: s, Shards: shards, Init: s.Init, Lacks: m.lacks,
		Begin: func(t *testing.T) storetest.Tx { return begin(t, d) },
	}
}

func (m mapped) insertTheirs(table string, columns map[string]any, e storetest.Event) (string, []any) {
	theirs := make(map[string]any)
	for name, value := range columns {
		if theirName, ok := m.names[name]; ok {
			theirs[theirName] = value
		}
	}
	statement, args := insert(table, theirs, "(now() + $%d * interval '1 second') AT TIME ZONE 'UTC'", "$%d", e)
	statement, _, _ = strings.Cut(strings.Replace(statement, "next_attempt_at", m.names["next_attempt_at"], 1), " ON CONFLICT")
	if m.unique != "" {
		statement += fmt.Sprintf(" ON CONFLICT (%s) DO NOTHING", m.unique)
	}
	return statement + " RETURNING " + m.id, args
}

// full maps a table with every column that a mapping knows.
func full(t testing.TB) mapped {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES").named("journal")
	d.create(t, "full-postgres.sql")
	names := map[string]string{
		"event_id": "uid", "aggregate_type": "entity", "aggregate_id": "entity_no", "event_type": "kind", "aggregate_version": "revision",
		"topic": "channel", "payload": "body", "content_type": "mime", "headers": "meta", "dedup_key": "once", "next_attempt_at": "due",
	}
	return mapped{
		database: d, names: names, id: "row_no", unique: "once", lacks: []storetest.Feature{storetest.Strict},
		mapping: sqlstore.Mapping{
			ID: "row_no", EventID: "uid", AggregateType: "entity", AggregateID: "entity_no", EventType: "kind", AggregateVersion: "revision",
			Topic: "channel", Payload: "body", ContentType: "mime, 'application/json'", Headers: "meta", DedupKey: "once",
			Status: "state", RetryCount: "tries", NextAttemptAt: "due", LastError: "problem", UpdatedAt: "changed", PublishedAt: "sent",
			PublishedTo: "sent_to", ClaimToken: "token", ProcessingUntil: "busy_till", CreatedAt: "added",
			Words: sqlstore.Words{Pending: []string{"NEW", "AGAIN"}, Processing: "BUSY", Published: "SENT", Dead: "BROKEN", Discarded: "DROPPED"},
		},
	}
}

// minimal maps a table with no more than what is required, from which published rows are deleted.
func minimal(t testing.TB) mapped {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES").named("letters")
	execute(t, d.db, "CREATE TABLE letters (no serial PRIMARY KEY, whom text NOT NULL, what text NOT NULL, body json NOT NULL)")
	return mapped{
		database: d, names: map[string]string{"aggregate_id": "whom", "event_type": "what", "payload": "body"}, id: "no",
		config:  sqlstore.Config{DeletePublished: true},
		mapping: sqlstore.Mapping{ID: "no", AggregateID: "whom", EventType: "what", Payload: "body"},
		lacks:   []storetest.Feature{storetest.Columns, storetest.Schedule, storetest.History, storetest.Age, storetest.Strict},
	}
}

func TestMappedTables(t *testing.T) {
	for name, open := range map[string]func(testing.TB) mapped{"full": full, "minimal": minimal} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness { return open(t).harness(t) })
		})
	}
}
