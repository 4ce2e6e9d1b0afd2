package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/sqlstore"
)

// TestSideRowsOfEventsThatAreGoneAreTidiedWithoutARetention takes a bounded number at a time, from where the last call ended.
func TestSideRowsOfEventsThatAreGoneAreTidiedWithoutARetention(t *testing.T) {
	eachServer(t, "", func(t *testing.T, m mapped) {
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
		h := m.hold(t)
		for _, e := range h.read() {
			h.settle(e, postrider.StatePending, "no")
		}
		var rows, failures []string
		for n := range 1200 { // these ids come before "2"; the last 200 have no rows
			if n < 1000 {
				rows = append(rows, fmt.Sprintf("(%d, 'a')", 10_000+n))
			}
			failures = append(failures, fmt.Sprintf("('%d', 'a', 'PENDING', 'PENDING', 1, '2026-01-01', 'no')", 10_000+n))
		}
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES "+strings.Join(rows, ", "))
		execute(t, m.db, `INSERT INTO tasks_failures (event, event_key, state, their_state, retry_count, next_attempt_at, last_error)
			VALUES `+strings.Join(failures, ", "))
		m.reuse(t, "3", "new")
		execute(t, m.db, "DELETE FROM tasks WHERE id = 4")
		tidy := func() {
			t.Helper()
			if err := h.Tidy(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		tidy()
		m.rows(t, "SELECT count(*) FROM tasks_failures", "1204")
		tidy()
		m.rows(t, "SELECT count(*) FROM tasks_failures", "1002")
		m.rows(t, "SELECT event FROM tasks_failures WHERE event NOT LIKE '10___' ORDER BY event", "1", "2")
		m.rows(t, "SELECT event FROM tasks_attempts ORDER BY event", "1", "2", "3")
		execute(t, m.db, "DELETE FROM tasks")
		tidy()
		m.rows(t, "SELECT event FROM tasks_failures ORDER BY event", "10999", "2")
		tidy()
		m.rows(t, "SELECT event FROM tasks_failures")
		m.rows(t, "SELECT event FROM tasks_attempts")
	})
}

func TestOneOfTheRelaysThatClaimTidies(t *testing.T) {
	m := outboxEvents(t, "POSTRIDER_TEST_MARIADB")
	m.init(t)
	s := m.openMapped(t)
	execute(t, m.db, `INSERT INTO outbox_failures (event, event_key, state, their_state, retry_count, next_attempt_at, last_error)
		VALUES ('1', 'a', 'PENDING', 'PENDING', 1, '2026-01-01', 'no')`)
	a, b := rowClaimer(t, s, "a", time.Hour), rowClaimer(t, s, "b", time.Hour)
	renewClaims(t, a, "a", time.Hour) // now both know of each other
	for _, step := range []struct {
		tidies *sqlstore.RowClaims
		left   string
	}{{b, "1"}, {a, "0"}} {
		if err := step.tidies.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.rows(t, "SELECT count(*) FROM outbox_failures", step.left)
	}
}

// TestTidyingFollowsIndexes bounds what is touched in a table with 20,000 rows that all have side rows, of which most hold.
func TestTidyingFollowsIndexes(t *testing.T) {
	fill := func(m mapped, series string) {
		execute(t, m.db, "INSERT INTO tasks (id, event_key) SELECT n, 'a' FROM "+series)
		execute(t, m.db, `INSERT INTO tasks_failures (event, event_key, state, their_state, retry_count, next_attempt_at, last_error)
			SELECT n, CASE n % 10 WHEN 0 THEN 'other' ELSE 'a' END, 'PENDING', 'PENDING', 1, '2026-01-01', 'no' FROM `+series)
		execute(t, m.db, "INSERT INTO tasks_attempts (event, outcome) SELECT n, 'retry' FROM "+series)
		execute(t, m.db, "INSERT INTO tasks_attempts (event, outcome) SELECT concat('0', n), 'retry' FROM "+series)
	}
	tidy := func(h held) {
		t.Helper()
		if err := h.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("postgres", func(t *testing.T) {
		m, log := plain(t, "id bigint PRIMARY KEY, event_key text NOT NULL"), &planLog{}
		m.db, m.mapping.AggregateID = log.open(t, m.dsn), "event_key"
		h := m.hold(t)
		fill(m, "generate_series(1, 20000) n")
		for range 2 { // without statistics, and with them
			log.take()
			tidy(h)
			used := log.take()
			used.checkMapped(t, "tidy", "tasks", 20_000)
			used.checkMapped(t, "tidy", "tasks_failures", 20_000)
			used.checkMapped(t, "tidy", "tasks_attempts", 20_000)
			execute(t, m.db, "ANALYZE tasks, tasks_failures, tasks_attempts")
		}
	})
	eachTasks(t, "id BIGINT PRIMARY KEY, event_key VARCHAR(100) NOT NULL", func(t *testing.T, m mapped) {
		m.mapping.AggregateID = "event_key"
		m.db.SetMaxOpenConns(1) // the counters are those of a connection
		h := m.hold(t)
		fill(m, "(SELECT n FROM JSON_TABLE(concat('[0', repeat(',0', 19999), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) numbers) numbers")
		for range 2 {
			m.bound(t, "tidy", effort{reads: 25_000, sorted: 2000}, func() { tidy(h) })
			execute(t, m.db, "ANALYZE TABLE tasks, tasks_failures, tasks_attempts")
		}
	})
}
