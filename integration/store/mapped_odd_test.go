package store

import (
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

// plain maps a table with a status and the columns given besides.
func plain(t testing.TB, columns string) mapped {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES").named("tasks")
	execute(t, d.db, "CREATE TABLE tasks ("+columns+", who text, what text NOT NULL DEFAULT 'Done', body text DEFAULT '{}', status text NOT NULL DEFAULT 'NEW')")
	return mapped{database: d, mapping: sqlstore.Mapping{
		ID: "id", AggregateID: "who", EventType: "what", Payload: "body", Status: "status",
		Words: sqlstore.Words{Pending: []string{"NEW"}, Published: "SENT", Dead: "FAILED"},
	}}
}

const number = "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"

// held is a Store on their table with the leases of all shards.
type held struct {
	*sqlstore.Store
	t      *testing.T
	member relay.Member
	leases []relay.Lease
}

func (m mapped) hold(t *testing.T) held {
	t.Helper()
	s, a := m.init(t), relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	return held{s, t, a, ownAll(t, s, a)}
}

func (h held) read() []relay.Event {
	h.t.Helper()
	events, err := h.Read(h.t.Context(), everything(100))
	if err != nil {
		h.t.Fatal(err)
	}
	return events
}

// find reads the event of the id.
func (h held) find(id string) relay.Event {
	h.t.Helper()
	for _, e := range h.read() {
		if e.ID == id {
			return e
		}
	}
	h.t.Fatalf("event %s cannot be read", id)
	return relay.Event{}
}

func (h held) ids() (list []string) {
	h.t.Helper()
	for _, e := range h.read() {
		list = append(list, e.ID)
	}
	return list
}

func (h held) settle(e relay.Event, state postrider.State, reason string) {
	h.t.Helper()
	h.settleAll(relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: state, RetryCount: e.RetryCount + 1, Error: reason, PublishedTo: "test:1"})
}

func (h held) settleAll(list ...relay.Settlement) {
	h.t.Helper()
	if ids, err := h.Settle(h.t.Context(), h.member, list); err != nil || len(ids) != len(list) {
		h.t.Fatalf("settled %v of %d: %v", ids, len(list), err)
	}
}

func TestMappedTableThatDoesNotFitIsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		table  string
		change func(*sqlstore.Mapping)
		want   string
		hint   string
	}{
		{"a missing column", number, func(m *sqlstore.Mapping) { m.Topic = "channel" }, "column channel of", "it has the columns body, id, status, what, who"},
		{"a missing column with a member", number, func(m *sqlstore.Mapping) { m.Headers = "meta->x" }, "mapped as headers, is missing", "columns"},
		{"a missing table", number, nil, "table nothing does not exist", "is its name right"},
		{"an id that is not unique", "id bigint", nil, "has no unique index", "CREATE UNIQUE INDEX"},
		{"an id that is unique with another column only", "id bigint, more int, UNIQUE (id, more)", nil, "has no unique index", "CREATE UNIQUE INDEX"},
		{"an id of a type without equality", "id bytea PRIMARY KEY", nil, "mapped as id, is of type bytea", "integer, uuid, text"},
		{"a payload of a wrong type", number + ", n int", func(m *sqlstore.Mapping) { m.Payload = "n" }, "mapped as payload, is of type integer", "json"},
		{"a time of a wrong type", number + ", n text", func(m *sqlstore.Mapping) { m.NextAttemptAt = "n" }, "mapped as next_attempt_at, is of type text", "time"},
		{"members of a column without any", number + ", n int", func(m *sqlstore.Mapping) { m.AggregateID = "n->a" }, "which has no members", "JSON"},
		{"a word that the column cannot hold", number + ", mood varchar(3)", func(m *sqlstore.Mapping) { m.Status = "mood" }, `cannot hold the word "SENT"`, "leave out"},
		{"an unknown time zone", number, func(m *sqlstore.Mapping) { m.TimeZone = "Asia/Soul" }, `outbox.time_zone "Asia/Soul" is not known`, "offset"},
		{"a word that is no number", number + ", n int", func(m *sqlstore.Mapping) { m.Status = "n" }, `cannot hold the word "NEW"`, "leave out"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := plain(t, test.table)
			if test.change != nil {
				test.change(&m.mapping)
			} else if test.name == "a missing table" {
				m.table = "nothing"
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
			m.rows(t, "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'tasks'")
		})
	}
}

// TestHowTheirPayloadsAreReadCanChange after Init has recorded it.
func TestHowTheirPayloadsAreReadCanChange(t *testing.T) {
	eachServer(t, "", func(t *testing.T, m mapped) {
		execute(t, m.db, "INSERT INTO tasks (id, event_key, body) VALUES (1, 'a', 'no JSON')")
		if e := m.hold(t).read()[0]; e.Malformed == nil {
			t.Errorf("read %+v, want it malformed", e)
		}
		m.config.Payload = sqlstore.PayloadBinary
		if e := m.hold(t).read()[0]; e.Malformed != nil || string(e.Payload) != "no JSON" {
			t.Errorf("read %+v with payload %q, want the bytes as they are", e, e.Payload)
		}
		m.finds(t, "ok", "payload binary")
	})
}

func TestWordsOfAnEnumerationAreChecked(t *testing.T) {
	m := plain(t, number)
	execute(t, m.db, "CREATE TYPE mood AS ENUM ('NEW', 'SENT', 'LOST')")
	execute(t, m.db, "ALTER TABLE tasks ADD COLUMN mood mood NOT NULL DEFAULT 'NEW'")
	m.mapping.Status = "mood"
	if err := m.openMapped(t).Init(t.Context()); err == nil || !strings.Contains(err.Error(), `is of type mood and cannot hold the word "FAILED"`) {
		t.Errorf("Init: %v", err)
	}
	m.mapping.Words.Dead = "LOST"
	execute(t, m.db, "INSERT INTO tasks (who) VALUES ('a'), ('a')")
	h := m.hold(t)
	h.settle(h.read()[0], postrider.StateDead, "x")
	h.settle(h.read()[0], postrider.StatePublished, "")
	m.rows(t, "SELECT mood::text FROM tasks ORDER BY id", "LOST", "SENT")
}

func TestEventsThatCannotBeReadBecomeMalformedAlone(t *testing.T) {
	m := plain(t, number+", meta text, extra json")
	m.mapping.Headers, m.mapping.HeaderTerms = "meta", map[string]string{"X-Extra": "extra->deep->er", "X-Kind": "what"}
	m.mapping.EventID = "meta->id, id"
	execute(t, m.db, `INSERT INTO tasks (who, body, meta, extra) VALUES
		(NULL, '{}', NULL, NULL), ('', '{}', NULL, NULL), ('a', '{"cut', NULL, NULL), ('a', '{}', '[1]', NULL), ('a', '{}', 'no JSON', NULL),
		('a', NULL, NULL, NULL), ('a', '"x"', '{"id": "seven", "n": 7, "none": null, "X-Kind": "other"}', '{"deep": {"er": "here"}}')`)
	h := m.hold(t)
	reasons := []string{"it has no key: who is NULL", "it has no key", "is no JSON", "headers are no JSON object", "headers are no JSON object", "", ""}
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
	if left := h.ids(); len(left) != 2 {
		t.Errorf("left are %v", left)
	}
	if e := events["6"]; len(e.Payload) != 0 || e.EventID != "6" {
		t.Errorf("payload %q, event id %q of an event with neither", e.Payload, e.EventID)
	}
	e := events["7"]
	if e.EventID != "seven" || len(e.Headers) != 4 || e.Headers["n"] != "7" || e.Headers["X-Kind"] != "Done" || e.Headers["X-Extra"] != "here" {
		t.Errorf("event id %q, headers %v", e.EventID, e.Headers)
	}
	m.config.Payload = sqlstore.PayloadBinary
	execute(t, m.db, "DROP TABLE tasks_schema, tasks_shards, tasks_relays, tasks_attempts, tasks_versions, tasks_holds, tasks_jobs, tasks_job_events, tasks_failures; DROP FUNCTION tasks_json")
	execute(t, m.db, "UPDATE tasks SET status = 'NEW' WHERE id = 3")
	for _, e := range m.hold(t).read() {
		if e.ID == "3" && (e.Malformed != nil || e.ContentType != "application/octet-stream") {
			t.Errorf("with a binary payload: %v, %s", e.Malformed, e.ContentType)
		}
	}
}

func TestPayloadsOfEveryTypeKeepTheirBytes(t *testing.T) {
	for typ, text := range map[string]string{"bytea": "\x00\xff{", "json": `{"b": 1,  "a": 1.0}`, "text": `[ 1 ]`, "jsonb": `{"a": 1.0, "b": 1}`} {
		m := plain(t, number+", load "+typ)
		m.mapping.Payload = "load"
		if typ == "bytea" {
			m.config.Payload = sqlstore.PayloadBinary
		}
		execute(t, m.db, "INSERT INTO tasks (who, load) VALUES ('a', $1)", []byte(text))
		h := m.hold(t)
		if got := string(h.read()[0].Payload); got != text {
			t.Errorf("%s: read %q, want %q", typ, got, text)
		}
		if row, err := h.Event(t.Context(), "1"); err != nil || string(row.Payload) != text {
			t.Errorf("%s: shows %q, %v", typ, row.Payload, err)
		}
	}
}

func TestRowsWithUnknownWordsAreNeverTouched(t *testing.T) {
	m := plain(t, number+", note text")
	m.mapping.LastError = "note"
	execute(t, m.db, "INSERT INTO tasks (who, status) VALUES ('a', 'PARKED'), ('a', 'parked'), ('b', 'PARKED'), ('b', 'NEW')")
	h := m.hold(t)
	if got := h.ids(); !slices.Equal(got, []string{"4"}) {
		t.Errorf("read %v", got)
	}
	m.finds(t, "warning", "2 or more events are marked 'PARKED', which is none of the words of the mapping (look at one with `postrider events show 1` and correct them by SQL, or leave them: nothing touches them)")
	act := operator.Action{Who: "me", Reason: "test"}
	for name, do := range map[string]func() (int, error){
		"Redrive": func() (int, error) { return h.Redrive(t.Context(), operator.Filter{}, act) },
		"Discard": func() (int, error) { return h.Discard(t.Context(), operator.Filter{}, act) },
		"Retry":   func() (int, error) { return h.Retry(t.Context(), operator.Filter{}, act) },
	} {
		if n, err := do(); n != 0 || err != nil {
			t.Errorf("%s changed %d, %v", name, n, err)
		}
	}
	m.rows(t, "SELECT status FROM tasks ORDER BY id", "PARKED", "parked", "PARKED", "NEW")
}

// finds asserts a finding of Verify.
func (m mapped) finds(t testing.TB, level, words string) {
	t.Helper()
	findings := m.openMapped(t).Verify(t.Context())
	if !slices.ContainsFunc(findings, func(f operator.Finding) bool {
		return string(f.Level) == level && strings.Contains(f.Subject+": "+f.Message+" ("+f.Hint+")", words)
	}) {
		t.Errorf("findings %+v, want %s %q", findings, level, words)
	}
}

func TestTheirOwnToolRedrivesByTheWord(t *testing.T) {
	m := plain(t, number+", note varchar(10), tries smallint NOT NULL DEFAULT 0")
	m.mapping.LastError, m.mapping.RetryCount = "note", "tries"
	execute(t, m.db, "INSERT INTO tasks (who) VALUES ('a'), ('a'), ('b')")
	h := m.hold(t)
	e := h.find("1")
	e.RetryCount = 40_000
	h.settle(e, postrider.StateDead, "refused by the broker")
	m.rows(t, "SELECT status || ' ' || note || ' ' || tries FROM tasks WHERE id = 1", "FAILED refused by 32767")
	if got := h.ids(); slices.Contains(got, "1") || len(got) != 2 {
		t.Errorf("read %v", got)
	}
	if row, err := h.Event(t.Context(), "1"); err != nil || row.LastError != "refused by the broker" || row.RetryCount != 40_001 {
		t.Errorf("row %+v, %v", row, err)
	}
	execute(t, m.db, "UPDATE tasks SET status = 'NEW' WHERE id = 1")
	again := h.read()
	if i := slices.IndexFunc(again, func(e relay.Event) bool { return e.ID == "1" }); i < 0 || again[i].RetryCount != 0 || len(again) != 3 {
		t.Errorf("read %+v, want the first again, with no attempts", again)
	}
	execute(t, m.db, "UPDATE tasks SET status = 'FAILED' WHERE id = 3")
	if row, err := h.Event(t.Context(), "3"); err != nil || row.Status != postrider.StateDead {
		t.Errorf("an event that their own tool gave up: %+v, %v", row, err)
	}
	if n, err := h.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 1 || err != nil {
		t.Errorf("redrove %d, %v", n, err)
	}
	if got := h.ids(); len(got) != 3 {
		t.Errorf("read %v", got)
	}
}

func TestAnOutcomeThatTheirTableRefusesIsKeptAside(t *testing.T) {
	m := plain(t, number)
	execute(t, m.db, "ALTER TABLE tasks ADD CHECK (status <> 'FAILED' OR who <> 'a')")
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
	if rows, err := h.Events(t.Context(), operator.Filter{State: postrider.StateDead}); err != nil || len(rows) != 2 {
		t.Errorf("dead are %+v, %v", rows, err)
	}
	if n, err := h.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 2 || err != nil {
		t.Errorf("redrove %d, %v", n, err)
	}
	if got := h.ids(); len(got) != 3 {
		t.Errorf("read %v after the redrive", got)
	}
}

func TestIDsOfEveryTypeCompareAsTheirTypeDoes(t *testing.T) {
	for _, test := range []struct {
		columns  string
		ids      []any // in the order in which they are inserted
		want     []string
		order    string
		doubtful bool
	}{
		{"id bigint PRIMARY KEY", []any{10, 9, -3, 100}, []string{"-3", "9", "10", "100"}, "", false},
		{"id numeric(20) PRIMARY KEY", []any{"18446744073709551615", "7"}, []string{"7", "18446744073709551615"}, "", false},
		{"id uuid PRIMARY KEY", []any{"f0000000-0000-4000-8000-000000000000", "10000000-0000-4000-8000-000000000000"},
			[]string{"10000000-0000-4000-8000-000000000000", "f0000000-0000-4000-8000-000000000000"}, "", true},
		{"id text PRIMARY KEY", []any{"it's", "a b", `"quoted"`, "-5"}, nil, "", true},
		{"id uuid PRIMARY KEY, added timestamptz NOT NULL DEFAULT clock_timestamp()", []any{"f0000000-0000-4000-8000-000000000000", "10000000-0000-4000-8000-000000000000"},
			[]string{"f0000000-0000-4000-8000-000000000000", "10000000-0000-4000-8000-000000000000"}, "", false},
		{"id text UNIQUE, seq bigserial", []any{"b", "a"}, []string{"b", "a"}, "seq", false},
	} {
		t.Run(test.columns, func(t *testing.T) {
			m := plain(t, test.columns)
			m.mapping.Order = test.order
			if strings.Contains(test.columns, "added") {
				m.mapping.CreatedAt = "added"
			}
			for _, id := range test.ids {
				execute(t, m.db, "INSERT INTO tasks (id, who) VALUES ($1, 'a')", id)
			}
			h := m.hold(t)
			got := h.ids()
			if test.want != nil && !slices.Equal(got, test.want) || len(got) != len(test.ids) {
				t.Errorf("read %v, want %v", got, test.want)
			}
			doubtful := slices.ContainsFunc(h.Verify(t.Context()), func(f operator.Finding) bool { return strings.Contains(f.Message, "no order of the events of a key") })
			if doubtful != test.doubtful {
				t.Errorf("%+v, want a warning about the order: %v", h.Verify(t.Context()), test.doubtful)
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
			h.settle(h.read()[0], postrider.StateDead, "no")
			for _, e := range events[1:] {
				h.settle(e, postrider.StateDead, "no")
			}
			if row, err := h.Event(t.Context(), got[1]); err != nil || row.ID != got[1] {
				t.Errorf("Event: %+v, %v", row, err)
			}
			if n, err := h.Redrive(t.Context(), operator.Filter{IDs: got[1:]}, operator.Action{Who: "me"}); n != len(got)-1 || err != nil {
				t.Errorf("redrove %d, %v", n, err)
			}
			if left := h.ids(); !slices.Equal(left, got[1:]) {
				t.Errorf("read %v after the redrive, want %v", left, got[1:])
			}
			for _, wrong := range []string{"", "x' OR '1'='1", "\x00"} {
				if _, err := h.Event(t.Context(), wrong); !errors.Is(err, operator.ErrNotFound) {
					t.Errorf("Event(%q): %v", wrong, err)
				}
			}
		})
	}
}

func TestFilterLeavesOutWhatIsNotOurs(t *testing.T) {
	m := plain(t, number+", tenant text")
	m.mapping.Filter = "tenant = 'us'\n OR tenant IS NULL"
	execute(t, m.db, "INSERT INTO tasks (who, tenant) VALUES ('a', 'us'), ('a', 'them'), ('a', NULL)")
	h := m.hold(t)
	if got := h.ids(); !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("read %v", got)
	}
	other := h.read()[0]
	other.ID = "2"
	if ids, err := h.Settle(t.Context(), h.member, []relay.Settlement{{ID: "2", Lease: h.leases[other.Shard], State: postrider.StatePublished}}); err != nil || len(ids) != 0 {
		t.Errorf("settled %v, %v", ids, err)
	}
	if b, err := h.Backlog(t.Context()); err != nil || b.Pending != 2 {
		t.Errorf("backlog %+v, %v", b, err)
	}
}

func TestTimesWithoutAZoneAreOfTheZoneOfTheMapping(t *testing.T) {
	for zone, shift := range map[string]string{"UTC": "0", "+09:00": "9 hours", "Asia/Seoul": "9 hours", "asia/seoul": "9 hours", "MSK": "3 hours", "-03:30": "-3.5 hours"} {
		m := plain(t, number+", due timestamp, added timestamp, sent timestamp")
		m.mapping.NextAttemptAt, m.mapping.CreatedAt, m.mapping.PublishedAt, m.mapping.TimeZone = "due", "added", "sent", zone
		execute(t, m.db, `INSERT INTO tasks (who, due, added) SELECT 'a', at + due * interval '1 second', at
			FROM (SELECT now() AT TIME ZONE 'UTC' + $1::text::interval AS at) n, (VALUES (-1), (3600)) v(due)`, shift)
		h := m.hold(t)
		events := h.read()
		if len(events) != 1 || events[0].Age > time.Minute {
			t.Fatalf("%s: read %+v", zone, events)
		}
		h.settle(events[0], postrider.StatePending, "no")
		m.rows(t, "SELECT (abs(extract(epoch FROM due - added)) < 60)::text FROM tasks WHERE id = 1", "true")
		h.settle(h.read()[0], postrider.StatePublished, "")
		m.rows(t, "SELECT (abs(extract(epoch FROM sent - added)) < 60)::text FROM tasks WHERE id = 1", "true")
	}
	m := plain(t, number+", added timestamp")
	m.mapping.CreatedAt = "added"
	execute(t, m.db, "INSERT INTO tasks (who, added) VALUES ('a', now() AT TIME ZONE 'Asia/Seoul')")
	m.init(t)
	m.finds(t, "warning", "created in the future, so that the time zone may be another one (look at one with `postrider events show 1` and set outbox.time_zone to")
	m.finds(t, "ok", "times in added are taken as UTC")
	execute(t, m.db, "ALTER TABLE tasks ALTER COLUMN added TYPE timestamptz USING added AT TIME ZONE 'UTC'")
	m.finds(t, "warning", "created in the future by the clock of the database (look at one with `postrider events show 1` and correct them by SQL)")
}

func TestSideTablesInAnotherSchema(t *testing.T) {
	m := plain(t, number)
	other := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	m.mapping.SideSchema, _, _ = strings.Cut(other.table, ".")
	execute(t, m.db, "INSERT INTO tasks (who) VALUES ('a')")
	h := m.hold(t)
	h.settle(h.read()[0], postrider.StateDead, "x")
	m.rows(t, "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()", "tasks")
	m.rows(t, "SELECT event FROM "+m.mapping.SideSchema+".tasks_failures", "1")
}

func TestOrphansOfTheSideTableAreCleaned(t *testing.T) {
	m := plain(t, number)
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
	m.rows(t, "SELECT id::text FROM tasks ORDER BY id", "2", "3")
}

func TestMappedTableOfAnotherKindOfOutboxIsRefused(t *testing.T) {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	d.store(t, sqlstore.Config{})
	m := mapped{database: d, mapping: sqlstore.Mapping{ID: "id", AggregateID: "aggregate_id", EventType: "event_type", Payload: "payload", PublishedAt: "published_at"}}
	if err := m.openMapped(t).Init(t.Context()); !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), `belong to the outbox "outbox_events"`) {
		t.Errorf("Init: %v", err)
	}
}

func TestWhatTheirWorkersAreAtWorkOnIsLeftToThem(t *testing.T) {
	m := plain(t, number)
	m.mapping.Words.Processing = "BUSY"
	execute(t, m.db, "INSERT INTO tasks (who) VALUES ('a'), ('b')")
	h := m.hold(t)
	h.settle(h.find("1"), postrider.StatePending, "no")
	execute(t, m.db, "UPDATE tasks SET status = 'BUSY'")
	if got := h.ids(); len(got) != 0 {
		t.Errorf("read %v", got)
	}
	if rows, err := h.Events(t.Context(), operator.Filter{State: postrider.StateProcessing}); err != nil || len(rows) != 2 {
		t.Errorf("PROCESSING are %+v, %v", rows, err)
	}
	m.finds(t, "warning", "2 or more events are PROCESSING, which only row claims use")
	if _, err := h.Clean(t.Context(), relay.CleanRequest{Limit: 10}); err != nil {
		t.Fatal(err)
	}
	execute(t, m.db, "UPDATE tasks SET status = 'NEW'")
	if e := h.find("1"); e.RetryCount != 1 {
		t.Errorf("%d attempts after they gave it back, want 1", e.RetryCount)
	}
}

func TestRowsOfATableWithoutColumnsForClaimsCannotBeClaimedOneByOne(t *testing.T) {
	m := plain(t, number)
	_, err := m.init(t).RowClaims().Renew(t.Context(), relay.Heartbeat{Member: relay.Member{Name: "main", ID: "a", Shards: shards}}, nil)
	if !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), "no columns for claims (map claim_token, processing_until and status.processing, or use claim: shard)") {
		t.Errorf("got %v", err)
	}
}

func TestInitCompletesWhereTheSideTablesWereDropped(t *testing.T) {
	m := plain(t, number)
	m.init(t)
	for _, side := range []string{"failures", "shards", "relays", "attempts", "versions", "holds", "jobs", "job_events", "schema"} {
		execute(t, m.db, "DROP TABLE tasks_"+side)
	}
	execute(t, m.db, "INSERT INTO tasks (who) VALUES ('a')")
	if ids := m.hold(t).ids(); len(ids) != 1 {
		t.Errorf("read %v", ids)
	}
}
