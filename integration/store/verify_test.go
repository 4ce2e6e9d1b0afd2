package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// everyDatabase runs a test on every database.
func everyDatabase(t *testing.T, test func(t *testing.T, d database)) {
	everyServer(t, test)
	t.Run("sqlite", func(t *testing.T) { test(t, newSQLite(t)) })
}

// everyServer is everyDatabase without SQLite, which locks no rows.
func everyServer(t *testing.T, test func(t *testing.T, d database)) {
	t.Run("postgres", func(t *testing.T) { test(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES")) })
	t.Run("postgres18", func(t *testing.T) { test(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES18")) })
	eachMySQL(t, test)
}

func TestVerifyFindsNothingWrongWithFreshTables(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		for _, f := range d.store(t, sqlstore.Config{}).Verify(t.Context()) {
			if f.Level != operator.LevelOK {
				t.Errorf("%+v", f)
			}
		}
	})
}

func TestVerifyFindsWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		name string
		harm string // done to the table
		want string // level, subject and message begin like this, after the schema's name was left out
	}{
		{"a missing index", "DROP INDEX %s_ready", "error index outbox_events_ready: is missing"},
		{"a missing column", "ALTER TABLE %s DROP COLUMN topic", "error column topic of outbox_events: is missing"},
		{"a missing table", "DROP TABLE %s", "error column id of outbox_events: is missing"},
		{"no record of the tables", "DELETE FROM outbox_schema", "error table outbox_events: the outbox tables do not fit this version: the tables are not complete"},
		{"newer tables", "INSERT INTO outbox_schema SELECT 99, applied_at, outbox_table, shards, payload FROM outbox_schema WHERE version = 1",
			"error table outbox_events: the outbox tables do not fit this version: they have version 99"},
		{"a row that nobody picks up",
			"INSERT INTO %s (aggregate_type, aggregate_id, event_type, payload, status) VALUES ('a', 'b', 'c', '{}', 'PROCESSING')",
			"warning table outbox_events: 1 or more events are PROCESSING without a processing_until, so that no relay takes them"},
		{"a claim that no relay takes over",
			"INSERT INTO %s (aggregate_type, aggregate_id, event_type, payload, status, processing_until, claim_token) VALUES ('a', 'b', 'c', '{}', 'PROCESSING', '2000-01-01 00:00:00.000', '0192f0c1-9a3b-8c4d-8e5f-012345678900')",
			"warning table outbox_events: 1 or more events are PROCESSING although their claims ran out"},
		{"a claim that relays with row claims do not take over",
			"INSERT INTO %s (aggregate_type, aggregate_id, event_type, payload, status, processing_until) VALUES ('a', 'b', 'c', '{}', 'PROCESSING', '2000-01-01 00:00:00.000')",
			"warning table outbox_events: 1 or more events are PROCESSING without a claim_token although their time ran out"},
		{"an event that is never due",
			"INSERT INTO %s (aggregate_type, aggregate_id, event_type, payload, next_attempt_at) VALUES ('a', 'b', 'c', '{}', '2999-01-01 00:00:00.000')",
			"warning table outbox_events: 1 or more events are PENDING but not due"},
	} {
		t.Run(test.name, func(t *testing.T) {
			everyDatabase(t, func(t *testing.T, d database) {
				d.store(t, sqlstore.Config{})
				execute(t, d.db, d.words(strings.ReplaceAll(test.harm, "%s", d.table)))
				assertFinding(t, d, sqlstore.Config{}, test.want)
			})
		})
	}
}

// TestVerifyIsSilentAboutClaimsThatRelaysTakeOver because they have an end, although nobody's token.
func TestVerifyIsSilentAboutClaimsThatRelaysTakeOver(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		for _, until := range []string{"2000-01-01 00:00:00.000", "2999-01-01 00:00:00.000"} {
			execute(t, d.db, "INSERT INTO "+d.table+" (aggregate_type, aggregate_id, event_type, payload, status, processing_until) VALUES ('a', '"+until[:4]+"', 'c', '{}', 'PROCESSING', '"+until+"')")
		}
		ownAll(t, s, relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour})
		if _, err := s.Backlog(t.Context()); err != nil {
			t.Fatal(err)
		}
		if events, err := s.Read(t.Context(), everything(10)); err != nil || len(events) != 1 || events[0].AggregateID != "2000" {
			t.Errorf("read %+v, %v", events, err)
		}
		for _, f := range s.Verify(t.Context()) {
			if f.Level != operator.LevelOK {
				t.Errorf("%+v", f)
			}
		}
	})
}

// words puts a DROP INDEX into the words of the database.
func (d database) words(statement string) string {
	if d.dialect.String() == sqlstore.MySQL.String() && strings.HasPrefix(statement, "DROP INDEX ") {
		_, index, _ := strings.Cut(statement, ".")
		return "DROP INDEX " + index + " ON " + d.table
	}
	return statement
}

func TestVerifyFindsAnotherConfiguration(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		assertFinding(t, d, sqlstore.Config{Shards: 5}, "error table outbox_events: the outbox tables do not fit this version: they are laid out for 4 shards")
		assertFinding(t, d, sqlstore.Config{Shards: 4, Payload: sqlstore.PayloadBinary}, "error table outbox_events: the outbox tables do not fit this version: the payload column is json")
	})
}

func TestVerifyFindsMissingPrivileges(t *testing.T) {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	d.store(t, sqlstore.Config{})
	schema, _, _ := strings.Cut(d.table, ".")
	execute(t, d.db, "CREATE ROLE "+schema+" LOGIN")
	t.Cleanup(func() {
		execute(t, d.db, "DROP OWNED BY "+schema)
		execute(t, d.db, "DROP ROLE "+schema)
	})
	execute(t, d.db, "GRANT USAGE ON SCHEMA "+schema+" TO "+schema)
	execute(t, d.db, "GRANT SELECT ON ALL TABLES IN SCHEMA "+schema+" TO "+schema)
	d.db.SetMaxOpenConns(1)
	execute(t, d.db, "SET ROLE "+schema)
	assertFinding(t, d, sqlstore.Config{}, "error table outbox_events: no privilege to UPDATE")
	assertFinding(t, d, sqlstore.Config{}, "error table outbox_attempts: no privilege to INSERT")

	s := d.open(t, sqlstore.Config{})
	if err := s.Leave(t.Context(), relay.Member{ID: "a"}); !errors.Is(err, sqlstore.ErrDenied) {
		t.Errorf("writing without the privilege: %v, want ErrDenied", err)
	}
	execute(t, d.db, "RESET ROLE")
}

func TestVerifyWarnsOfConnectionsThatAreMadeUnwisely(t *testing.T) {
	postgres := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	postgres.store(t, sqlstore.Config{})
	postgres.db = connect(t, "pgx", withParameter(t, postgres.dsn, "default_query_exec_mode", "cache_statement"))
	assertFinding(t, postgres, sqlstore.Config{}, "warning database: plans of prepared statements are kept")

	sqlite := newSQLite(t)
	path, _, _ := strings.Cut(sqlite.dsn, "?")
	sqlite.db = connect(t, "sqlite", path+"?_pragma=journal_mode(DELETE)&_pragma=synchronous(OFF)")
	sqlite.store(t, sqlstore.Config{})
	assertFinding(t, sqlite, sqlstore.Config{}, "warning database: readers and writers keep each other waiting")
	assertFinding(t, sqlite, sqlstore.Config{}, "warning database: a commit can be lost")
	assertFinding(t, sqlite, sqlstore.Config{}, "warning database: writers fail")
}

func TestUnreachableDatabaseIsToldApart(t *testing.T) {
	s, err := sqlstore.Open(connect(t, "pgx", "postgres://nobody@127.0.0.1:1/none"), sqlstore.Postgres, sqlstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backlog(t.Context()); !errors.Is(err, sqlstore.ErrUnreachable) || !strings.Contains(err.Error(), "outbox_events") {
		t.Errorf("got %v, want ErrUnreachable that names the table", err)
	}
	findings := s.Verify(t.Context())
	if len(findings) != 1 || findings[0].Level != operator.LevelError || findings[0].Hint == "" {
		t.Errorf("findings %+v", findings)
	}
}

func TestMissingTablesAreNamedWithTheCommandThatCreatesThem(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.open(t, sqlstore.Config{})
		_, err := s.Renew(t.Context(), relay.Heartbeat{Member: relay.Member{Name: "main", ID: "a", Shards: shards}}, nil)
		if !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), "outbox_schema") || !strings.Contains(err.Error(), "postrider init") {
			t.Errorf("Renew without tables: %v", err)
		}
		d.store(t, sqlstore.Config{})
		d.addMany(t, 100)
		execute(t, d.db, "ALTER TABLE "+d.table+" DROP COLUMN content_type")
		_, err = s.Read(t.Context(), relay.ReadRequest{Shards: []int{0}, PerShard: 1, Limit: 1, MaxBytes: 1})
		if !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), "content_type") {
			t.Errorf("Read without a column: %v", err)
		}
	})
}

func TestACancelledCallIsNoFailureOfTheDatabase(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Backlog(ctx)
		if !errors.Is(err, context.Canceled) || errors.Is(err, sqlstore.ErrUnreachable) {
			t.Errorf("got %v, want context.Canceled alone", err)
		}
	})
}

func TestAFullDiskIsTold(t *testing.T) {
	d := newSQLite(t)
	s := d.store(t, sqlstore.Config{})
	d.db.SetMaxOpenConns(1)
	var pages int
	if err := d.db.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	var limit int
	if err := d.db.QueryRowContext(t.Context(), "PRAGMA max_page_count = 1").Scan(&limit); err != nil {
		t.Fatal(err)
	}
	beat := relay.Heartbeat{Member: relay.Member{Name: "main", ID: strings.Repeat("long", 1<<20), Shards: shards}}
	if _, err := s.Renew(t.Context(), beat, nil); !errors.Is(err, sqlstore.ErrFull) {
		t.Errorf("got %v with %d pages of %d, want ErrFull", err, pages, limit)
	}
}

func assertFinding(t *testing.T, d database, config sqlstore.Config, want string) {
	t.Helper()
	s := d.open(t, config)
	schema, _, _ := strings.Cut(d.table, ".")
	var got []string
	for _, f := range s.Verify(t.Context()) {
		text := strings.ReplaceAll(string(f.Level)+" "+f.Subject+": "+f.Message, schema+".", "")
		if strings.HasPrefix(text, want) {
			if f.Hint == "" {
				t.Errorf("%s: no hint", text)
			}
			return
		}
		got = append(got, text)
	}
	t.Errorf("found %q, want %q", got, want)
}
