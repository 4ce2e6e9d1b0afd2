package sqlstore

import (
	"bytes"
	"strings"
	"testing"
)

func TestOpenRefusesWhatItCannotWorkWith(t *testing.T) {
	for _, test := range []struct {
		d      Dialect
		config Config
		want   string
	}{
		{Postgres, Config{Table: `a"b`}, `"name" or "schema.name"`},
		{Postgres, Config{Table: "a'b"}, `"name" or "schema.name"`},
		{Postgres, Config{Table: "a.b.c"}, `"name" or "schema.name"`},
		{Postgres, Config{Table: ".b"}, `"name" or "schema.name"`},
		{Postgres, Config{Table: "a."}, `"name" or "schema.name"`},
		{Postgres, Config{Table: strings.Repeat("x", 46)}, "no more than 45"},
		{SQLite, Config{Table: "a.b"}, "has no schemas"},
		{SQLite, Config{Shards: 40000}, "1 to 32767"},
		{SQLite, Config{Shards: -1}, "1 to 32767"},
		{SQLite, Config{Payload: "xml"}, `payload is "xml"`},
		{SQLite, Config{Table: "a.b", Shards: -1, Payload: "xml"}, "1 to 32767"},
		{SQLite, Config{Table: "a.b", Shards: -1, Payload: "xml"}, "has no schemas"},
	} {
		if _, err := Open(nil, test.d, test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Open(%s, %+v): %v, want %q", test.d, test.config, err, test.want)
		}
	}
}

func TestNamesOfTables(t *testing.T) {
	for table, want := range map[string]string{
		"":                  `"outbox_events" "outbox_shards"`,
		"app.outbox_events": `"app"."outbox_events" "app"."outbox_shards"`,
		"app.Billing":       `"app"."Billing" "app"."Billing_shards"`,
	} {
		tokens := openTest(t, Postgres, Config{Table: table}).tokens()
		if got := tokens["events"] + " " + tokens["shards"]; got != want {
			t.Errorf("table %q: %s, want %s", table, got, want)
		}
	}
}

func TestPrintFillsEveryToken(t *testing.T) {
	for _, d := range []Dialect{Postgres, SQLite} {
		var script bytes.Buffer
		if err := openTest(t, d, Config{Shards: 7}).Print(&script); err != nil {
			t.Fatal(err)
		}
		if left := token.FindString(script.String()); left != "" {
			t.Errorf("%s: %s is left", d, left)
		}
		if !strings.Contains(script.String(), "% 7)") || !strings.HasPrefix(script.String(), "BEGIN;") || !strings.HasSuffix(script.String(), "COMMIT;\n") {
			t.Errorf("%s: printed %s", d, script.String())
		}
	}
}

func TestPostgresDSN(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://h/db":                              "postgres://h/db?default_query_exec_mode=cache_describe",
		"postgres://h/db?a=b":                          "postgres://h/db?a=b&default_query_exec_mode=cache_describe",
		"host=h dbname=db":                             "host=h dbname=db default_query_exec_mode=cache_describe",
		"postgres://h/db?default_query_exec_mode=exec": "postgres://h/db?default_query_exec_mode=exec",
	} {
		if got := PostgresDSN(dsn); got != want {
			t.Errorf("PostgresDSN(%q) = %q, want %q", dsn, got, want)
		}
	}
}

func TestSQLiteDSNEscapesThePath(t *testing.T) {
	if got := SQLiteDSN("/a?b#c%d"); !strings.HasPrefix(got, "file:/a%3fb%23c%25d?") {
		t.Errorf("got %q", got)
	}
}
