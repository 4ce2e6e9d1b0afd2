package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

const mysqlNumber = "id BIGINT AUTO_INCREMENT PRIMARY KEY"

// eachTasks runs test on both servers with a table that has a status and the columns given besides.
func eachTasks(t *testing.T, columns string, test func(t *testing.T, m mapped)) {
	eachMySQL(t, func(t *testing.T, d database) {
		if strings.Contains(columns, "UUID") && strings.HasSuffix(t.Name(), "mysql") {
			columns = strings.ReplaceAll(columns, "UUID", "CHAR(36)") // MySQL has no such type
		}
		execute(t, d.db, "CREATE TABLE tasks ("+columns+`, who VARCHAR(100), what VARCHAR(100) NOT NULL DEFAULT 'Done', body TEXT DEFAULT ('{}'),
			status VARCHAR(20) NOT NULL DEFAULT 'NEW') DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci`)
		test(t, mapped{database: d.named("tasks"), mapping: sqlstore.Mapping{
			ID: "id", AggregateID: "who", EventType: "what", Payload: "body", Status: "status",
			Words: sqlstore.Words{Pending: []string{"NEW"}, Published: "SENT", Dead: "FAILED"},
		}})
	})
}

// sorted are the numbers of what can be read, in their order, whatever their shards.
func (h held) sorted() []string {
	h.t.Helper()
	ids := h.ids()
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return ids
}

func TestMappedTableOfMySQLThatDoesNotFitIsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		table  string
		change func(*mapped)
		want   string
		hint   string
	}{
		{"a missing column", mysqlNumber, func(m *mapped) { m.mapping.Topic = "channel" }, "column channel of", "it has the columns body, id, status, what, who"},
		{"a missing table", mysqlNumber, func(m *mapped) { m.database = m.named("nothing") }, "nothing does not exist", "is its name right"},
		{"an id that is not unique", "id BIGINT", nil, "has no unique index", "CREATE UNIQUE INDEX postrider_id ON"},
		{"an id that is unique by its beginning only", "id VARCHAR(100), UNIQUE (id(10))", nil, "has no unique index", "CREATE UNIQUE INDEX"},
		{"an id of bytes", "id VARBINARY(20) PRIMARY KEY", nil, "mapped as id, is of type varbinary(20)", "integer, uuid, text"},
		{"a payload of a wrong type", mysqlNumber + ", n INT", func(m *mapped) { m.mapping.Payload = "n" }, "mapped as payload, is of type int", "json"},
		{"a time of a wrong type", mysqlNumber + ", n DATE", func(m *mapped) { m.mapping.NextAttemptAt = "n" }, "mapped as next_attempt_at, is of type date", "time"},
		{"a number with fractions as the version", mysqlNumber + ", n DECIMAL(10,2)", func(m *mapped) { m.mapping.AggregateVersion = "n" }, "mapped as aggregate_version, is of type decimal(10,2)", "integer"},
		{"members of a column without any", mysqlNumber + ", n INT", func(m *mapped) { m.mapping.AggregateID = "n->a" }, "which has no members", "JSON"},
		{"a word that does not fit", mysqlNumber + ", mood VARCHAR(3)", func(m *mapped) { m.mapping.Status = "mood" }, `cannot hold the word "SENT"`, "leave out"},
		{"a word that the enumeration lacks", mysqlNumber + ", mood ENUM('NEW', 'SENT', 'it''s \"so\"')", func(m *mapped) { m.mapping.Status = "mood" }, `cannot hold the word "FAILED"`, "leave out"},
		{"a word that is no number", mysqlNumber + ", n TINYINT(1)", func(m *mapped) { m.mapping.Status = "n" }, `cannot hold the word "NEW"`, "leave out"},
		{"words that the collation cannot tell apart", mysqlNumber, func(m *mapped) { m.mapping.Words.Dead = "Sent" }, `the words "SENT" and "Sent" are the same`, "tells apart"},
		{"an unknown time zone", mysqlNumber, func(m *mapped) { m.mapping.TimeZone = "Mars/Olympus" }, `outbox.time_zone "Mars/Olympus" is not known`, "offset"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachTasks(t, test.table, func(t *testing.T, m mapped) {
				if test.change != nil {
					test.change(&m)
				}
				s := m.openMapped(t)
				_, err := s.Renew(t.Context(), relay.Heartbeat{Member: relay.Member{Name: "main", ID: "a", Shards: shards}}, nil)
				for _, err := range []error{s.Init(t.Context()), err} {
					if !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.hint) {
						t.Errorf("%v, want ErrSchema with %q and %q", err, test.want, test.hint)
					}
				}
				if !slices.ContainsFunc(s.Verify(t.Context()), func(f operator.Finding) bool {
					return f.Level == operator.LevelError && strings.Contains(f.Subject+" "+f.Message, test.want) && strings.Contains(f.Hint, test.hint)
				}) {
					t.Errorf("findings %+v", s.Verify(t.Context()))
				}
				m.rows(t, "SELECT table_name FROM information_schema.tables WHERE table_schema = database() AND table_name <> 'tasks'")
			})
		})
	}
}

// TestIDsOfEveryTypeOfMySQL takes events of one key through their lives, whatever their ids are.
func TestIDsOfEveryTypeOfMySQL(t *testing.T) {
	for _, test := range []struct {
		columns string
		ids     []any // in the order in which they are inserted
		want    []string
		order   string
	}{
		{"id BIGINT UNSIGNED PRIMARY KEY", []any{"18446744073709551615", "9", "10"}, []string{"9", "10", "18446744073709551615"}, ""},
		{"id INT PRIMARY KEY", []any{10, -3}, []string{"-3", "10"}, ""},
		{"id DECIMAL(20) PRIMARY KEY", []any{"99999999999999999999", "7"}, []string{"7", "99999999999999999999"}, ""},
		{"id CHAR(36) CHARACTER SET ascii PRIMARY KEY", []any{"f0000000-0000-4000-8000-000000000000", "10000000-0000-4000-8000-000000000000"},
			[]string{"10000000-0000-4000-8000-000000000000", "f0000000-0000-4000-8000-000000000000"}, ""},
		{"id UUID PRIMARY KEY, seq INT AUTO_INCREMENT UNIQUE", []any{"f0000000-0000-4000-8000-000000000000", "10000000-0000-4000-8000-000000000000"},
			[]string{"f0000000-0000-4000-8000-000000000000", "10000000-0000-4000-8000-000000000000"}, "seq"},
		{"id BINARY(16) PRIMARY KEY, seq INT AUTO_INCREMENT UNIQUE", []any{"\xf0\x00\\'5678901234567\xff"[:16], "1234567890123456"},
			[]string{"f0005c27-3536-3738-3930-313233343536", "31323334-3536-3738-3930-313233343536"}, "seq"},
		{"id VARCHAR(40) CHARACTER SET latin1 PRIMARY KEY, seq INT AUTO_INCREMENT UNIQUE", []any{`é:1 it's`, `a\b "q" {picked}`, "-5", "5", "?"}, []string{`é:1 it's`, `a\b "q" {picked}`, "-5", "5", "?"}, "seq"},
		{"id VARCHAR(40) COLLATE utf8mb4_unicode_ci PRIMARY KEY", []any{"B", "a"}, []string{"a", "B"}, ""},
	} {
		t.Run(test.columns, func(t *testing.T) {
			eachTasks(t, test.columns, func(t *testing.T, m mapped) {
				m.mapping.Order = test.order
				for _, id := range test.ids {
					execute(t, m.db, "INSERT INTO tasks (id, who) VALUES (?, 'a')", id)
				}
				h := m.hold(t)
				got := h.ids()
				if !slices.Equal(got, test.want) {
					t.Fatalf("read %q, want %q", got, test.want)
				}
				events := h.read()
				req := everything(100)
				req.InFlight = got[1:]
				if rest, err := h.Read(t.Context(), req); err != nil || len(rest) != 1 || rest[0].ID != got[0] {
					t.Errorf("read %v, %v beside those in flight", rest, err)
				}
				h.settle(events[0], postrider.StatePending, "no")
				if left := h.ids(); !slices.Equal(left, got[:1]) {
					t.Errorf("read %v after the first failed, want it alone", left)
				}
				for _, e := range events {
					h.settle(e, postrider.StateDead, "no")
				}
				if row, err := h.Event(t.Context(), got[1]); err != nil || row.ID != got[1] {
					t.Errorf("Event: %+v, %v", row, err)
				}
				if rows, err := h.Events(t.Context(), operator.Filter{After: got[0]}); err != nil || test.order == "" && len(rows) != len(got)-1 {
					t.Errorf("%d events after the first, %v", len(rows), err)
				}
				if n, err := h.Discard(t.Context(), operator.Filter{IDs: got[:1]}, operator.Action{Who: "me", Reason: "test"}); n != 1 || err != nil {
					t.Errorf("discarded %d, %v", n, err)
				}
				if n, err := h.Redrive(t.Context(), operator.Filter{IDs: got[1:]}, operator.Action{Who: "me"}); n != len(got)-1 || err != nil {
					t.Errorf("redrove %d, %v", n, err)
				}
				if left := h.ids(); !slices.Equal(left, got[1:]) {
					t.Errorf("read %v after the redrive, want %v", left, got[1:])
				}
				if attempts, err := h.Attempts(t.Context(), got[1]); err != nil || len(attempts) != 2 {
					t.Errorf("attempts %+v, %v", attempts, err)
				}
				h.settle(h.read()[0], postrider.StatePublished, "")
				if _, err := h.Clean(t.Context(), relay.CleanRequest{Limit: 10}); err != nil {
					t.Error(err)
				}
				for _, wrong := range []string{"", "x' OR '1'='1", "\x00"} {
					if _, err := h.Event(t.Context(), wrong); !errors.Is(err, operator.ErrNotFound) {
						t.Errorf("Event(%q): %v", wrong, err)
					}
				}
			})
		})
	}
}

// TestKeysThatTheirCollationCallsEqualStayApart in blocking, skipping and shards.
func TestKeysThatTheirCollationCallsEqualStayApart(t *testing.T) {
	eachTasks(t, mysqlNumber, func(t *testing.T, m mapped) {
		keys := []string{"straße", "STRASSE", "Straße", "straße ", "strasse", "it's {wanted} :1 \\"}
		for range 2 {
			for _, key := range keys {
				execute(t, m.db, "INSERT INTO tasks (who) VALUES (?)", key)
			}
		}
		h := m.hold(t)
		for i, key := range keys {
			if e := h.find(fmt.Sprint(i + 1)); e.AggregateID != key {
				t.Fatalf("key %q, want %q", e.AggregateID, key)
			}
		}
		h.settle(h.find("1"), postrider.StateDead, "no")
		h.settle(h.find("2"), postrider.StatePublished, "")
		e := h.find("3")
		h.settleAll(relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StatePending, RetryCount: 1, RetryAfter: time.Hour, Error: "no"})
		if got := h.sorted(); !slices.Equal(got, []string{"4", "5", "6", "7", "8", "10", "11", "12"}) {
			t.Errorf("read %v while one of the keys waits", got)
		}
		req := everything(100)
		req.SkipKeys = []string{keys[0], keys[5]}
		events, err := h.Read(t.Context(), req)
		if err != nil || len(events) != 5 {
			t.Errorf("read %d events without two keys, %v", len(events), err)
		}
		req.SkipKeys, req.Skip = nil, []relay.Kind{{AggregateType: "tasks", EventType: "done"}}
		if events, err := h.Read(t.Context(), req); err != nil || len(events) != 8 {
			t.Errorf("read %d events without another kind, %v", len(events), err)
		}
		if rows, err := h.Events(t.Context(), operator.Filter{AggregateID: keys[3]}); err != nil || len(rows) != 2 {
			t.Errorf("%d events of one key, %v", len(rows), err)
		}
	})
}

func TestStatesOfEveryTypeOfMySQL(t *testing.T) {
	for typ, words := range map[string]sqlstore.Words{
		"TINYINT(1) NOT NULL DEFAULT 0":                                                  {Pending: []string{"0"}, Published: "1", Dead: "2"},
		"BIT(1) NOT NULL DEFAULT b'0'":                                                   {Pending: []string{"0"}, Published: "1"},
		"BOOLEAN NOT NULL DEFAULT FALSE":                                                 {Pending: []string{"0"}, Published: "1"},
		`ENUM('it''s "new"', 'FAILED', 'SENT') NOT NULL DEFAULT 'it''s "new"'`:           {Pending: []string{`it's "new"`}, Published: "SENT", Dead: "FAILED"},
		"CHAR(10) CHARACTER SET latin1 COLLATE latin1_general_cs NOT NULL DEFAULT 'neü'": {Pending: []string{"neü"}, Published: "NEÜ", Dead: "tot"},
	} {
		t.Run(typ, func(t *testing.T) {
			eachTasks(t, mysqlNumber+", mood "+typ+", KEY (mood)", func(t *testing.T, m mapped) {
				m.mapping.Status, m.mapping.Words = "mood", words
				execute(t, m.db, "INSERT INTO tasks (who) VALUES ('a'), ('a'), ('a')")
				h := m.hold(t)
				for _, f := range h.Verify(t.Context()) {
					if f.Level == operator.LevelError {
						t.Errorf("finding %+v", f)
					}
				}
				h.settle(h.find("1"), postrider.StateDead, "no")
				h.settle(h.find("2"), postrider.StatePublished, "")
				if got := h.ids(); !slices.Equal(got, []string{"3"}) {
					t.Errorf("read %v", got)
				}
				if n, err := h.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 1 || err != nil {
					t.Errorf("redrove %d, %v", n, err)
				}
				if got := h.ids(); !slices.Equal(got, []string{"1", "3"}) {
					t.Errorf("read %v after the redrive", got)
				}
				h.settle(h.find("1"), postrider.StatePublished, "")
				h.settle(h.find("3"), postrider.StatePublished, "")
				if b, err := h.Backlog(t.Context()); err != nil || b.Pending != 0 || b.Dead != 0 {
					t.Errorf("backlog %+v, %v", b, err)
				}
			})
		})
	}
}

func TestPayloadsOfEveryTypeOfMySQLKeepTheirBytes(t *testing.T) {
	for typ, text := range map[string]string{
		"LONGBLOB": "\x00\xff{", "VARBINARY(100)": "\x00\x01", "JSON": `{"a": 1.5, "b": "ä😀"}`, "LONGTEXT": `[ 1 ,"😀"]`, "TEXT CHARACTER SET latin1": `["é"]`,
	} {
		t.Run(typ, func(t *testing.T) {
			eachTasks(t, mysqlNumber+", `load` "+typ, func(t *testing.T, m mapped) {
				m.mapping.Payload = "load"
				if strings.Contains(typ, "B") {
					m.config.Payload = sqlstore.PayloadBinary
				}
				execute(t, m.db, "INSERT INTO tasks (who, `load`) VALUES ('a', ?)", text)
				h := m.hold(t)
				if got := string(h.read()[0].Payload); got != text {
					t.Errorf("read %q, want %q", got, text)
				}
				if row, err := h.Event(t.Context(), "1"); err != nil || string(row.Payload) != text {
					t.Errorf("shows %q, %v", row.Payload, err)
				}
			})
		})
	}
}

func TestEventsOfMySQLThatCannotBeReadBecomeMalformedAlone(t *testing.T) {
	eachTasks(t, mysqlNumber+", meta TEXT, extra JSON", func(t *testing.T, m mapped) {
		m.mapping.Headers, m.mapping.HeaderTerms = "meta", map[string]string{"X-Extra": "extra->deep->er", "X-Kind": "what"}
		m.mapping.EventID = "meta->id, id"
		execute(t, m.db, `INSERT INTO tasks (who, body, meta, extra) VALUES
			(NULL, '{}', NULL, NULL), ('', '{}', NULL, NULL), ('a', '{"cut', NULL, NULL), ('a', '{}', '[1]', NULL), ('a', '{}', 'no JSON', NULL),
			('a', NULL, NULL, NULL), ('a', '"x"', '{"id": "seven", "n": 7, "none": null, "X-Kind": "other"}', '{"deep": {"er": "here \\"\\u00e4"}}'),
			('a', '{}', '{"id": null}', '{"deep": 1}')`)
		h := m.hold(t)
		reasons := []string{"it has no key: who is NULL", "it has no key", "is no JSON", "headers are no JSON object", "headers are no JSON object", "", "", ""}
		events := map[string]relay.Event{}
		for _, e := range h.read() {
			events[e.ID] = e
		}
		for i, want := range reasons {
			e := events[fmt.Sprint(i+1)]
			if (e.Malformed != nil) != (want != "") || want != "" && !strings.Contains(e.Malformed.Error(), want) {
				t.Errorf("event %s is malformed: %v, want %q", e.ID, e.Malformed, want)
			}
			if e.Malformed != nil {
				h.settle(e, postrider.StateDead, e.Malformed.Error())
			}
		}
		if left := h.ids(); len(left) != 3 {
			t.Errorf("left are %v", left)
		}
		if e := events["6"]; len(e.Payload) != 0 || e.EventID != "6" {
			t.Errorf("payload %q, event id %q of an event with neither", e.Payload, e.EventID)
		}
		e := events["7"]
		if e.EventID != "seven" || len(e.Headers) != 4 || e.Headers["n"] != "7" || e.Headers["X-Kind"] != "Done" || e.Headers["X-Extra"] != `here "ä` {
			t.Errorf("event id %q, headers %v", e.EventID, e.Headers)
		}
		if e := events["8"]; e.EventID != "8" || len(e.Headers) != 1 {
			t.Errorf("event id %q, headers %v", e.EventID, e.Headers)
		}
	})
}

// TestTimesOfMySQLAreNeitherEarlyNorLost whatever the precision and the time zone of their columns, in sessions of another
// one.
func TestTimesOfMySQLAreNeitherEarlyNorLost(t *testing.T) {
	for _, test := range []struct{ typ, zone, now string }{
		{"DATETIME", "UTC", "utc_timestamp(6)"},
		{"DATETIME(3)", "+09:00", "utc_timestamp(6) + INTERVAL 9 HOUR"},
		{"DATETIME(6)", "-03:30", "utc_timestamp(6) - INTERVAL 210 MINUTE"},
		{"TIMESTAMP NULL", "UTC", "now(6)"},
		{"TIMESTAMP(6) NULL", "UTC", "now(6)"},
	} {
		t.Run(test.typ+" "+test.zone, func(t *testing.T) {
			eachTasks(t, mysqlNumber+", due "+test.typ+", added "+test.typ+", sent "+test.typ, func(t *testing.T, m mapped) {
				m.mapping.NextAttemptAt, m.mapping.CreatedAt, m.mapping.PublishedAt, m.mapping.TimeZone = "due", "added", "sent", test.zone
				execute(t, m.db, "INSERT INTO tasks (who, due, added) VALUES ('a', NULL, "+test.now+"), ('b', "+test.now+" - INTERVAL 2 SECOND, "+test.now+"), ('c', "+test.now+" + INTERVAL 1 HOUR, "+test.now+")")
				h := m.hold(t)
				if got := h.sorted(); !slices.Equal(got, []string{"1", "2"}) {
					t.Fatalf("read %v", got)
				}
				e := h.find("2")
				if e.Age > time.Minute {
					t.Errorf("age %v", e.Age)
				}
				h.settleAll(relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StateDead, RetryCount: 1, RetryAfter: 1500 * time.Millisecond, Error: "no"})
				// A column is up to its unit later than the side table, and one statement of the settle later.
				late := "SELECT concat(timestampdiff(MICROSECOND, f.next_attempt_at, %s) BETWEEN 0 AND 5000000) FROM tasks t JOIN tasks_failures f ON f.event = t.id WHERE t.id = "
				due := map[bool]string{true: "from_unixtime(unix_timestamp(t.due)) + INTERVAL 5 HOUR", false: "t.due - INTERVAL timestampdiff(MINUTE, utc_timestamp(6), " + test.now + ") MINUTE"}[strings.HasPrefix(test.typ, "TIMESTAMP")]
				e = h.find("1")
				h.settleAll(relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StatePending, RetryCount: 1, RetryAfter: time.Hour, Error: "no"})
				m.rows(t, fmt.Sprintf(late, due)+"1", "1")
				if n, err := h.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 1 || err != nil {
					t.Fatalf("redrove %d, %v", n, err)
				}
				h.settle(h.find("2"), postrider.StatePublished, "") // it is due at once
				row, err := h.Event(t.Context(), "2")
				if err != nil || time.Since(*row.PublishedAt) > time.Minute || time.Until(*row.PublishedAt) > 0 || time.Since(row.CreatedAt).Abs() > time.Minute {
					t.Errorf("row %+v, %v", row, err)
				}
			})
		})
	}
}

func TestRowsOfMySQLWithUnknownWordsAreNeverTouched(t *testing.T) {
	eachTasks(t, mysqlNumber+", note VARCHAR(10) CHARACTER SET latin1", func(t *testing.T, m mapped) {
		m.mapping.LastError = "note"
		execute(t, m.db, "INSERT INTO tasks (who, status) VALUES ('a', 'PARKED'), ('b', 'PARKED'), ('b', 'NEW')")
		h := m.hold(t)
		if got := h.ids(); !slices.Equal(got, []string{"3"}) {
			t.Errorf("read %v", got)
		}
		m.finds(t, "warning", "2 or more events are marked 'PARKED', which is none of the words of the mapping (look at one with `postrider events show 1` and correct them by SQL, or leave them: nothing touches them)")
		m.finds(t, "warning", "CREATE INDEX postrider_waiting ON `")
		for name, do := range map[string]func() (int, error){
			"Redrive": func() (int, error) { return h.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}) },
			"Discard": func() (int, error) {
				return h.Discard(t.Context(), operator.Filter{}, operator.Action{Who: "me", Reason: "test"})
			},
			"Retry": func() (int, error) { return h.Retry(t.Context(), operator.Filter{}, operator.Action{Who: "me"}) },
		} {
			if n, err := do(); n != 0 || err != nil {
				t.Errorf("%s changed %d, %v", name, n, err)
			}
		}
		h.settle(h.find("3"), postrider.StateDead, "日本 refused by the broker")
		m.rows(t, "SELECT concat(status, coalesce(note, '')) FROM tasks ORDER BY id", "PARKED", "PARKED", "FAILED?? refused")
	})
}

func TestAnOutcomeThatTheirTableOfMySQLRefusesIsKeptAside(t *testing.T) {
	eachTasks(t, mysqlNumber+", CONSTRAINT odd CHECK (status <> 'FAILED' OR who <> 'a')", func(t *testing.T, m mapped) {
		execute(t, m.db, "INSERT INTO tasks (who) VALUES ('a'), ('b'), ('a')")
		h := m.hold(t)
		var dead []relay.Settlement
		for _, e := range h.read() {
			if e.ID != "3" {
				dead = append(dead, relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StateDead, Error: "refused"})
			}
		}
		h.settleAll(dead...)
		m.rows(t, "SELECT status FROM tasks ORDER BY id", "NEW", "FAILED", "NEW")
		if got := h.ids(); !slices.Equal(got, []string{"3"}) {
			t.Errorf("read %v", got)
		}
		if n, err := h.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 2 || err != nil {
			t.Errorf("redrove %d, %v", n, err)
		}
		if got := h.ids(); len(got) != 3 {
			t.Errorf("read %v after the redrive", got)
		}
	})
}

func TestFiltersOfMySQLStandAsTheyAre(t *testing.T) {
	eachTasks(t, mysqlNumber+", tenant VARCHAR(20)", func(t *testing.T, m mapped) {
		m.mapping.Filter = "tenant = 'us:1'\n OR tenant IS NULL OR tenant = '?'"
		m.mapping.AggregateType = `(concat('"', tenant, ':2'))`
		execute(t, m.db, "INSERT INTO tasks (who, tenant) VALUES ('a', 'us:1'), ('a', 'them'), ('a', '?')")
		h := m.hold(t)
		if got := h.ids(); !slices.Equal(got, []string{"1", "3"}) {
			t.Errorf("read %v", got)
		}
		if e := h.find("1"); e.AggregateType != `"us:1:2` {
			t.Errorf("type %q", e.AggregateType)
		}
		if ids, err := h.Settle(t.Context(), h.member, []relay.Settlement{{ID: "2", Lease: h.leases[h.find("1").Shard], State: postrider.StatePublished}}); err != nil || len(ids) != 0 {
			t.Errorf("settled %v, %v", ids, err)
		}
	})
}

func TestOrphansOfTheSideTableOfMySQLAreCleaned(t *testing.T) {
	eachTasks(t, mysqlNumber, func(t *testing.T, m mapped) {
		execute(t, m.db, "INSERT INTO tasks (who) VALUES ('a'), ('b'), ('c')")
		h := m.hold(t)
		for _, e := range h.read() {
			h.settle(e, postrider.StatePending, "no")
		}
		execute(t, m.db, "DELETE FROM tasks WHERE id = 1")
		execute(t, m.db, "UPDATE tasks SET status = 'SENT' WHERE id = 2")
		if res, err := h.Clean(t.Context(), relay.CleanRequest{Limit: 10}); err != nil || res.Deleted != 0 || !res.Done {
			t.Errorf("clean %+v, %v", res, err)
		}
		m.rows(t, "SELECT event FROM tasks_failures", "3")
		m.rows(t, "SELECT event FROM tasks_attempts ORDER BY event", "2", "3")
		m.rows(t, "SELECT id FROM tasks ORDER BY id", "2", "3")
	})
}
