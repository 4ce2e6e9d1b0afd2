package store

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
	"github.com/postrider/postrider/storetest"
)

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
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if strings.Contains(statement, "CREATE") {
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
		Store: s, Claims: func() relay.Store { return s.RowClaims() }, Operator: s, Jobs: s, Shards: shards, Init: s.Init, Lacks: m.lacks,
		Begin: func(t *testing.T) storetest.Tx { return begin(t, d) },
	}
}

func (m mapped) insertTheirs(table string, columns map[string]any, e storetest.Event) (string, []any) {
	if d := m.dialect.String(); d == sqlstore.MySQL.String() {
		statement, args := insertMySQL(table, m.theirNames(columns), e)
		statement = strings.Replace(statement, "next_attempt_at", m.names["next_attempt_at"], 1)
		return strings.Replace(statement, "UPDATE id = id", "UPDATE "+m.id+" = "+m.id, 1), args
	}
	statement, args := insert(table, m.theirNames(columns), "(now() + $%d * interval '1 second') AT TIME ZONE 'UTC'", "$%d", e)
	statement, _, _ = strings.Cut(strings.Replace(statement, "next_attempt_at", m.names["next_attempt_at"], 1), " ON CONFLICT")
	if m.unique != "" {
		statement += fmt.Sprintf(" ON CONFLICT (%s) DO NOTHING", m.unique)
	}
	return statement + " RETURNING " + m.id, args
}

// theirNames puts their names in the place of ours, and leaves out what their table does not have.
func (m mapped) theirNames(columns map[string]any) map[string]any {
	theirs := make(map[string]any)
	for name, value := range columns {
		if theirName, ok := m.names[name]; ok {
			theirs[theirName] = value
		}
	}
	return theirs
}

// full maps a table with every column that a mapping knows.
func full(t testing.TB, server string) mapped {
	d := newPostgres(t, server).named("journal")
	d.create(t, "testdata/tables/full-postgres.sql")
	return journal(d)
}

func journal(d database) mapped {
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
func minimal(t testing.TB, server string) mapped {
	d := newPostgres(t, server).named("letters")
	execute(t, d.db, "CREATE TABLE letters (no serial PRIMARY KEY, whom text NOT NULL, what text NOT NULL, body json NOT NULL)")
	return letters(d)
}

func letters(d database) mapped {
	return mapped{
		database: d, names: map[string]string{"aggregate_id": "whom", "event_type": "what", "payload": "body"}, id: "no",
		config:  sqlstore.Config{DeletePublished: true},
		mapping: sqlstore.Mapping{ID: "no", AggregateID: "whom", EventType: "what", Payload: "body"},
		lacks:   []storetest.Feature{storetest.Columns, storetest.Schedule, storetest.History, storetest.Age, storetest.Strict},
	}
}

func TestMappedTables(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, string) mapped{"full": full, "minimal": minimal} {
		for _, server := range []string{"POSTRIDER_TEST_POSTGRES", "POSTRIDER_TEST_POSTGRES18"} {
			t.Run(name+"/"+server, func(t *testing.T) {
				storetest.Run(t, func(t *testing.T) storetest.Harness { return open(t, server).harness(t) })
			})
		}
	}
}
