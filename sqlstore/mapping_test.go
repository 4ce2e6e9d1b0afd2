package sqlstore

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseTerm(t *testing.T) {
	text := func(s string) *string { return &s }
	for in, want := range map[string]term{
		"":                       nil,
		"a":                      {{column: "a", path: []string{}}},
		" Order Id ":             {{column: "Order Id", path: []string{}}},
		"h->a->b c":              {{column: "h", path: []string{"a", "b c"}}},
		"'it, (is)'":             {{constant: text("it, (is)")}},
		"''":                     {{constant: text("")}},
		"h->KEY, id":             {{column: "h", path: []string{"KEY"}}, {column: "id", path: []string{}}},
		"(f(a, ')')\n|| b), 'x'": {{expression: "(f(a, ')') || b)"}, {constant: text("x")}},
	} {
		got, err := parseTerm(in)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{",", "a,", "a->", "->a", "a;b", `a"b`, "a'b", "'a", "'a'b'", "(a", "a)", "a\x00"} {
		if got, err := parseTerm(in); err == nil {
			t.Errorf("%q was taken for %+v", in, got)
		}
	}
}

// complete is a mapping that nothing is wrong with.
func complete() Mapping {
	return Mapping{ID: "id", AggregateID: "who", EventType: "what", Payload: "body", Status: "status",
		Words: Words{Pending: []string{"NEW"}, Published: "SENT", Dead: "FAILED"}}
}

func TestOpenRefusesMappingsThatCannotWork(t *testing.T) {
	for want, change := range map[string]func(*Mapping){
		"id is missing":                                func(m *Mapping) { m.ID = "" },
		"aggregate_id is missing":                      func(m *Mapping) { m.AggregateID = "" },
		"event_type is missing":                        func(m *Mapping) { m.EventType = "" },
		"payload is missing":                           func(m *Mapping) { m.Payload = "" },
		`id is "(a)"; it must be the name of a column`: func(m *Mapping) { m.ID = "(a)" },
		`status is "a->b"; it must be the name of`:     func(m *Mapping) { m.Status = "a->b" },
		`topic: "a'": it is no column`:                 func(m *Mapping) { m.Topic = "a'" },
		`the header X: "b;": it is no column`:          func(m *Mapping) { m.HeaderTerms = map[string]string{"X": "b;"} },
		"status.pending is missing":                    func(m *Mapping) { m.Words.Pending = nil },
		"status.published is missing":                  func(m *Mapping) { m.Words.Published = "" },
		`the word "SENT" stands for two states`:        func(m *Mapping) { m.Words.Dead = "SENT" },
		`the word "NEW" stands for two states`:         func(m *Mapping) { m.Words.Pending = []string{"NEW", "NEW"} },
		"name status or published_at":                  func(m *Mapping) { m.Status = "" },
		`time_zone is "Mars; DROP"`:                    func(m *Mapping) { m.TimeZone = "Mars; DROP" },
		`side_schema is "a\"b"`:                        func(m *Mapping) { m.SideSchema = `a"b` },
	} {
		m := complete()
		change(&m)
		if _, err := Open(nil, Postgres, Config{Mapping: &m}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	all := Mapping{TimeZone: "?"}
	if _, err := Open(nil, Postgres, Config{Mapping: &all}); err == nil || strings.Count(err.Error(), "mapping: ") != 6 {
		t.Errorf("%v, want all six mistakes", err)
	}
	m := complete()
	if _, err := Open(nil, SQLite, Config{Mapping: &m}); err == nil || !strings.Contains(err.Error(), "sqlite has no mapped tables") {
		t.Errorf("%v", err)
	}
	m.Words.Discarded = m.Words.Dead
	if _, err := Open(nil, Postgres, Config{Mapping: &m}); err != nil {
		t.Errorf("one word for DEAD and DISCARDED: %v", err)
	}
}

func TestPresetsAreComplete(t *testing.T) {
	for _, d := range []Dialect{Postgres, MySQL} {
		for _, p := range Presets(d) {
			if _, err := Open(nil, d, Config{Table: p.Table, Mapping: &p.Mapping, DeletePublished: p.DeletePublished}); err != nil || p.About == "" {
				t.Errorf("%s, preset %s (%s): %v", d, p.Name, p.About, err)
			}
			found, ok := FindPreset(d, p.Name)
			if !ok || found.Table != p.Table {
				t.Errorf("%s: preset %s is not found", d, p.Name)
			}
		}
	}
	if _, ok := FindPreset(Postgres, "none"); ok {
		t.Error("an unknown preset was found")
	}
}

func TestNamesOfMappedTables(t *testing.T) {
	for table, want := range map[string]string{
		`"cap.published"`:              `"cap.published" "cap_published_failures"`,
		"app.tasks":                    `"app"."tasks" "app"."tasks_failures"`,
		strings.Repeat("x", 44) + "éé": `"` + strings.Repeat("x", 44) + `éé" "` + strings.Repeat("x", 44) + `_failures"`,
		"outbox_events":                `"outbox_events" "outbox_failures"`,
	} {
		m := complete()
		tokens := openTest(t, Postgres, Config{Table: table, Mapping: &m}).tokens()
		if got := tokens["theirs"] + " " + tokens["failures"]; got != want {
			t.Errorf("table %s: %s, want %s", table, got, want)
		}
	}
	m := complete()
	if got, want := openTest(t, MySQL, Config{Table: `app."cap.published"`, Mapping: &m}).tokens()["theirs"], "`app`.`cap.published`"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, table := range []string{`a.b."c"`, `."c"`, `app"c"`, `"c`, `"a"."b"`} {
		if _, err := Open(nil, MySQL, Config{Table: table, Mapping: &m}); err == nil {
			t.Errorf("%s was taken for a name", table)
		}
	}
	if _, err := Open(nil, Postgres, Config{Table: `"cap.published"`}); err == nil {
		t.Error("a table of ours has a dot in its name")
	}
}

func TestPresetsAreCopies(t *testing.T) {
	first, _ := FindPreset(Postgres, "event-outbox")
	first.Mapping.Words.Pending[0], first.Mapping.ID = "CHANGED", "changed"
	if second, _ := FindPreset(Postgres, "event-outbox"); second.Mapping.Words.Pending[0] != "PENDING" || second.Mapping.ID != "event_id" {
		t.Errorf("the preset was changed: %+v", second)
	}
}

func TestOpenLeavesTheMappingAlone(t *testing.T) {
	m := complete()
	s, err := Open(nil, Postgres, Config{Table: "app.tasks", Mapping: &m})
	if err != nil || !reflect.DeepEqual(m, complete()) {
		t.Errorf("%v: the mapping became %+v", err, m)
	}
	if got := *s.mapping; got.EventID != "id" || got.AggregateType != "'tasks'" || got.ContentType != "'application/json'" || got.TimeZone != "UTC" {
		t.Errorf("completed to %+v", got)
	}
}

// TestEveryQueryOfAMappedTableIsFilled checks that no file leaves something open that nothing fills.
func TestEveryQueryOfAMappedTableIsFilled(t *testing.T) {
	for _, d := range []Dialect{Postgres, MySQL} {
		m := complete()
		s := openTest(t, d, Config{Mapping: &m})
		columns := map[string]column{}
		for _, name := range []string{"id", "who", "what", "body", "status"} {
			columns[name] = column{name: name, kind: kindText, typ: "text"}
		}
		theirs := &theirs{columns: columns}
		theirs.terms = newTerms(s, theirs)
		queries, err := s.theirQueries(theirs)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"read", "settle_published", "settle_deleted", "settle_failed", "settle_failed_aside", "redrive", "list", "tidy"} {
			if len(queries[name]) == 0 {
				t.Errorf("%s: %s is missing", d, name)
			}
		}
		for _, name := range []string{"server", "settings", "schema", "their_kind", "their_columns", "their_indexes", "their_zone", "privileges", "renew", "acquire", "tidy_chunk"} {
			if len(s.queries[name]) == 0 {
				t.Errorf("%s: %s waits for their table", d, name)
			}
		}
	}
}

// TestMappedTablesHaveTheSameQueries in both databases; MySQL's also have parts of some.
func TestMappedTablesHaveTheSameQueries(t *testing.T) {
	texts := func(d Dialect) []string {
		m := complete()
		all, err := openTest(t, d, Config{Mapping: &m}).texts()
		if err != nil {
			t.Fatal(err)
		}
		for _, own := range []string{"floors", "heads", "read_shard", "lock", "unlock", "read_word", "claim_word", "oldest_word"} {
			delete(all, own)
		}
		return sortedKeys(all)
	}
	if mysql, postgres := texts(MySQL), texts(Postgres); !reflect.DeepEqual(mysql, postgres) {
		t.Errorf("have %v, want %v", mysql, postgres)
	}
}

func TestDecodeTheirHeaders(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`[null, {}]`:                           nil,
		`["{}", {"a": null}]`:                  nil,
		`["{\"a\":\"x\",\"b\":null}", {}]`:     {"a": "x"},
		`["{\"a\":1.50,\"b\":{\"c\":1}}", {}]`: {"a": "1.50", "b": `{"c":1}`},
		`["{\"a\":\"x\"}", {"a": "y"}]`:        {"a": "y"},
	} {
		if got, err := decodeTheirHeaders([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{`["[]", {}]`, `["x", {}]`, `["\"s\"", {}]`} {
		if got, err := decodeTheirHeaders([]byte(text)); err == nil {
			t.Errorf("%s became %v", text, got)
		}
	}
}
