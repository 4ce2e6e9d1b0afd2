package store

import (
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// eachServer runs test on all servers with a table of tasks whose ids the test gives, and with the columns given besides. The column
// of the key has a name that the side table has as well.
func eachServer(t *testing.T, columns string, test func(t *testing.T, m mapped)) {
	ours := func(m mapped) mapped {
		m.mapping.AggregateID = "event_key"
		return m
	}
	t.Run("postgres", func(t *testing.T) {
		test(t, ours(plain(t, "id bigint PRIMARY KEY, event_key text NOT NULL"+columns)))
	})
	eachTasks(t, "id BIGINT PRIMARY KEY, event_key VARCHAR(100) NOT NULL"+columns, func(t *testing.T, m mapped) { test(t, ours(m)) })
}

// reuse deletes the row and gives its id to a new one.
func (m mapped) reuse(t *testing.T, id, key string) {
	t.Helper()
	execute(t, m.db, "DELETE FROM tasks WHERE id = "+id)
	execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES ("+id+", '"+key+"')")
}

// noWordForDead makes the side table alone know what is DEAD, as it does where their table has no word for it.
func noWordForDead(m *mapped) {
	m.mapping.Words = sqlstore.Words{Pending: []string{"NEW"}, Published: "SENT"}
}

func TestARowWithAReusedIDStartsAnew(t *testing.T) {
	eachServer(t, "", func(t *testing.T, m mapped) {
		noWordForDead(&m)
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'a')")
		h := m.hold(t)
		h.settle(h.find("1"), postrider.StatePending, "old")
		for _, id := range []string{"2", "3", "4"} {
			h.settle(h.find(id), postrider.StateDead, "old")
		}
		if got := h.sorted(); !slices.Equal(got, []string{"1"}) {
			t.Fatalf("read %v, want only the one that failed", got)
		}
		for i, id := range []string{"1", "2", "3", "4"} {
			m.reuse(t, id, "new "+id)
			if row, err := h.Event(t.Context(), id); err != nil || row.RetryCount != 0 || row.LastError != "" || row.Status != postrider.StatePending {
				t.Errorf("row %d: %+v, %v", i, row, err)
			}
		}
		if got := h.sorted(); !slices.Equal(got, []string{"1", "2", "3", "4", "5"}) {
			t.Errorf("read %v, want the new rows and the one that waited for an old one", got)
		}
		if b, err := h.Backlog(t.Context()); err != nil || b.Dead != 0 || b.Pending != 5 {
			t.Errorf("backlog %+v, %v", b, err)
		}
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
		h.settle(h.find("2"), postrider.StatePending, "new")
		h.settle(h.find("3"), postrider.StateDead, "new")
		h.settle(h.find("4"), postrider.StatePublished, "")
		m.rows(t, "SELECT concat(event, ' ', event_key, ' ', state, ' ', retry_count, ' ', last_error) FROM tasks_failures ORDER BY event",
			"1 a PENDING 1 old", "2 new 2 PENDING 1 new", "3 new 3 DEAD 1 new")
		if _, err := h.Clean(t.Context(), relay.CleanRequest{Limit: 10}); err != nil {
			t.Error(err)
		}
		m.rows(t, "SELECT event FROM tasks_failures ORDER BY event", "2", "3")
	})
}

// TestAnEventWithAReusedIDCountsForTheVersionsBehindIt is about a gap that there would be if the event were DEAD, as the old one was.
func TestAnEventWithAReusedIDCountsForTheVersionsBehindIt(t *testing.T) {
	eachServer(t, ", version INT", func(t *testing.T, m mapped) {
		noWordForDead(&m)
		m.mapping.AggregateVersion = "version"
		execute(t, m.db, "INSERT INTO tasks (id, event_key, version) VALUES (1, 'a', 1), (2, 'b', 1), (3, 'a', 3)")
		h := m.hold(t)
		h.settle(h.find("1"), postrider.StatePublished, "")
		h.settle(h.find("2"), postrider.StateDead, "old")
		if e := h.find("3"); e.After == nil || *e.After != 2 {
			t.Fatalf("read %+v, want that it waits for version 2", e)
		}
		m.reuse(t, "2", "a")
		execute(t, m.db, "UPDATE tasks SET version = 2 WHERE id = 2")
		if e := h.find("3"); e.After != nil {
			t.Errorf("waits for %d, which comes before it", *e.After)
		}
	})
}

func TestARowWithAReusedIDIsDeletedOncePublished(t *testing.T) {
	eachServer(t, "", func(t *testing.T, m mapped) {
		noWordForDead(&m)
		m.config.DeletePublished = true
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (1, 'a')")
		h := m.hold(t)
		h.settle(h.find("1"), postrider.StateDead, "old")
		m.reuse(t, "1", "new")
		h.settle(h.find("1"), postrider.StatePublished, "")
		m.rows(t, "SELECT id FROM tasks")
		m.rows(t, "SELECT event FROM tasks_failures")
	})
}

// TestADeadRowWithAReusedIDIsDiscardedAsItIs where their table has a word for DEAD, which an operator's decision goes by.
func TestADeadRowWithAReusedIDIsDiscardedAsItIs(t *testing.T) {
	eachServer(t, ", note TEXT", func(t *testing.T, m mapped) {
		m.mapping.LastError, m.mapping.Words.Discarded = "note", "DROPPED"
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (1, 'a')")
		h := m.hold(t)
		h.settle(h.find("1"), postrider.StateDead, "old")
		m.reuse(t, "1", "new")
		execute(t, m.db, "UPDATE tasks SET status = 'FAILED', note = 'given up'")
		if n, err := h.Discard(t.Context(), operator.Filter{}, operator.Action{Who: "me", Reason: "test"}); n != 1 || err != nil {
			t.Fatalf("discarded %d, %v", n, err)
		}
		if row, err := h.Event(t.Context(), "1"); err != nil || row.Status != postrider.StateDiscarded || row.LastError != "given up" || row.RetryCount != 0 {
			t.Errorf("row %+v, %v", row, err)
		}
		m.rows(t, "SELECT concat(event_key, ' ', state, ' ', their_state) FROM tasks_failures", "new DISCARDED DISCARDED")
	})
}

// TestARowWithAReusedIDIsClaimedAnew where single rows are claimed.
func TestARowWithAReusedIDIsClaimedAnew(t *testing.T) {
	eachServer(t, ", token VARCHAR(40), until_time TIMESTAMP NULL", func(t *testing.T, m mapped) {
		noWordForDead(&m)
		m.mapping.Words.Processing, m.mapping.ClaimToken, m.mapping.ProcessingUntil = "BUSY", "token", "until_time"
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (1, 'a')")
		r := rowClaimer(t, m.init(t), "a", time.Hour)
		claim := func() relay.Event {
			t.Helper()
			events, err := r.Read(t.Context(), everything(10))
			if err != nil || len(events) != 1 {
				t.Fatalf("claimed %+v, %v", events, err)
			}
			return events[0]
		}
		for _, state := range []postrider.State{postrider.StatePending, postrider.StateDead} {
			one := relay.Settlement{ID: claim().ID, State: state, RetryCount: 3, Error: "old"}
			if ids, err := r.Settle(t.Context(), relay.Member{Name: "main", ID: "a"}, []relay.Settlement{one}); err != nil || len(ids) != 1 {
				t.Fatalf("settled %v, %v", ids, err)
			}
		}
		m.reuse(t, "1", "new")
		if e := claim(); e.RetryCount != 0 || e.AggregateID != "new" {
			t.Errorf("claimed %+v", e)
		}
	})
}
