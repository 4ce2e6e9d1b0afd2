package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// rejects asserts that Verify and a relay say that the table cannot be served, and what to do.
func (m mapped) rejects(t *testing.T, words, hint string) {
	t.Helper()
	m.finds(t, "error", words)
	m.finds(t, "error", hint)
	err := m.openMapped(t).Init(t.Context())
	if !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), hint) {
		t.Errorf("Init: %v, want ErrSchema with %q and %q", err, words, hint)
	}
}

func TestAViewIsNoMappedTable(t *testing.T) {
	const hint = "name the table that it shows, with a filter"
	eachServer(t, "", func(t *testing.T, m mapped) {
		execute(t, m.db, "CREATE VIEW shown AS SELECT * FROM tasks")
		m.database = m.named("shown")
		m.rejects(t, "is a view and no table", hint)
	})
	m := plain(t, number)
	execute(t, m.db, "CREATE MATERIALIZED VIEW kept AS SELECT * FROM tasks")
	execute(t, m.db, "CREATE UNIQUE INDEX ON kept (id)")
	m.database = m.named("kept")
	m.rejects(t, "is a materialized view and no table", hint)
}

// eachPartitioned runs test on all servers with a table of tasks in two partitions by a column, and with row claims.
func eachPartitioned(t *testing.T, by string, test func(t *testing.T, m mapped)) {
	columns := `id bigint NOT NULL, part int NOT NULL DEFAULT 0, who varchar(100), what varchar(100) NOT NULL DEFAULT 'Done',
		body varchar(100) DEFAULT '{}', status varchar(20) NOT NULL DEFAULT 'NEW', added timestamp NOT NULL DEFAULT current_timestamp,
		token varchar(40), till timestamp NULL, PRIMARY KEY (` + by + ")"
	tasks := func(d database) mapped {
		return mapped{database: d.named("tasks"), mapping: sqlstore.Mapping{
			ID: "id", AggregateID: "who", EventType: "what", Payload: "body", Status: "status", CreatedAt: "added",
			ClaimToken: "token", ProcessingUntil: "till",
			Words: sqlstore.Words{Pending: []string{"NEW"}, Processing: "BUSY", Published: "SENT", Dead: "FAILED"},
		}}
	}
	last := by[strings.LastIndex(by, " ")+1:]
	for _, server := range []string{"POSTRIDER_TEST_POSTGRES", "POSTRIDER_TEST_POSTGRES18"} {
		t.Run(server, func(t *testing.T) {
			d := newPostgres(t, server)
			execute(t, d.db, "CREATE TABLE tasks ("+columns+") PARTITION BY RANGE ("+last+")")
			execute(t, d.db, "CREATE TABLE tasks_low PARTITION OF tasks FOR VALUES FROM (0) TO (3)")
			execute(t, d.db, "CREATE TABLE tasks_high PARTITION OF tasks FOR VALUES FROM (3) TO (MAXVALUE)")
			test(t, tasks(d))
		})
	}
	eachMySQL(t, func(t *testing.T, d database) {
		execute(t, d.db, "CREATE TABLE tasks ("+columns+") PARTITION BY RANGE ("+last+") (PARTITION low VALUES LESS THAN (3), PARTITION high VALUES LESS THAN MAXVALUE)")
		test(t, tasks(d))
	})
}

func TestAPartitionedTableIsServedLikeAnyOther(t *testing.T) {
	act := operator.Action{Who: "me", Reason: "test"}
	eachPartitioned(t, "id", func(t *testing.T, m mapped) {
		execute(t, m.db, "INSERT INTO tasks (id, who) VALUES (1, 'a'), (2, 'b'), (3, 'a'), (4, 'c'), (5, 'd')")
		h := m.hold(t)
		for id, state := range map[string]postrider.State{
			"1": postrider.StatePending, "2": postrider.StateDead, "4": postrider.StateDead, "5": postrider.StatePublished,
		} {
			h.settle(h.find(id), state, "no")
		}
		if got := h.sorted(); !slices.Equal(got, []string{"1"}) {
			t.Errorf("read %v, want the one that others of its key wait for", got)
		}
		if n, err := h.Redrive(t.Context(), operator.Filter{IDs: []string{"4"}}, act); n != 1 || err != nil {
			t.Errorf("redrove %d, %v", n, err)
		}
		if n, err := h.Discard(t.Context(), operator.Filter{}, act); n != 1 || err != nil {
			t.Errorf("discarded %d, %v", n, err)
		}
		if b, err := h.Backlog(t.Context()); err != nil || b.Pending != 3 || b.Dead != 0 {
			t.Errorf("backlog %+v, %v", b, err)
		}
		if res, err := h.Clean(t.Context(), relay.CleanRequest{Limit: 10}); err != nil || res.Deleted != 2 || !res.Done {
			t.Errorf("clean %+v, %v", res, err)
		}
		m.rows(t, "SELECT concat(id, ' ', status) FROM tasks ORDER BY id", "1 NEW", "3 NEW", "4 NEW")
		for _, f := range h.Verify(t.Context()) {
			if f.Level == operator.LevelError {
				t.Errorf("finding %+v", f)
			}
			if _, statement, found := strings.Cut(f.Hint, "run: "); found {
				execute(t, m.db, statement)
			}
		}
	})
	eachPartitioned(t, "id", func(t *testing.T, m mapped) {
		m.config.DeletePublished = true
		execute(t, m.db, "INSERT INTO tasks (id, who) VALUES (1, 'a'), (2, 'b'), (4, 'c')")
		r := rowClaimer(t, m.init(t), "a", time.Hour)
		events, err := r.Read(t.Context(), everything(10))
		if err != nil || len(events) != 3 {
			t.Fatalf("claimed %+v, %v", events, err)
		}
		for i, state := range []postrider.State{postrider.StatePublished, postrider.StateDead, postrider.StatePublished} {
			one := relay.Settlement{ID: []string{"1", "2", "4"}[i], State: state, RetryCount: 1, Error: "no"}
			if ids, err := r.Settle(t.Context(), relay.Member{Name: "main", ID: "a"}, []relay.Settlement{one}); err != nil || len(ids) != 1 {
				t.Errorf("settled %v, %v", ids, err)
			}
		}
		m.rows(t, "SELECT concat(id, ' ', status) FROM tasks", "2 FAILED")
	})
}

func TestAPartitionedTableIsServedByTheColumnOfItsPartitions(t *testing.T) {
	eachPartitioned(t, "id, part", func(t *testing.T, m mapped) {
		m.rejects(t, "has no unique index", "in a partitioned table this can only be the one by which it is partitioned")
	})
}
