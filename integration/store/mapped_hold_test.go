package store

import (
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

func (h held) die(e relay.Event) {
	h.t.Helper()
	h.settleAll(relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StateDead, RetryCount: 1,
		Error: "refused", HoldsKey: true})
}

// TestAKeyGoesOnWhenTheRowThatHoldsItIsGone looks at what people do to their own table: they delete the dead row, give its id
// to another event, or send it by their own means.
func TestAKeyGoesOnWhenTheRowThatHoldsItIsGone(t *testing.T) {
	for name, forget := range map[string]func(*mapped){"with a word for dead": func(*mapped) {}, "without a word for dead": noWordForDead} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, "", func(t *testing.T, m mapped) {
				forget(&m)
				execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (11, 'a'), (12, 'b'), (13, 'c'), (14, 'd')")
				h := m.hold(t)
				for _, id := range []string{"1", "2", "3", "4"} {
					h.die(h.find(id))
				}
				h.want(t, "with all keys held")
				h.wantHeldKeys(t, 4)
				execute(t, m.db, "DELETE FROM tasks WHERE id = 1")
				m.reuse(t, "2", "other")
				execute(t, m.db, "UPDATE tasks SET status = 'SENT' WHERE id = 3")
				h.tidy()
				h.want(t, "after three have gone", "2", "11", "12", "13")
				h.wantHeldKeys(t, 1)
				for id, holds := range map[string]bool{"2": false, "3": false, "4": true} {
					if row, err := h.Event(t.Context(), id); err != nil || row.Holds != holds {
						t.Errorf("row is %+v, %v; want that it holds its key: %v", row, err, holds)
					}
				}
			})
		})
	}
}

// TestARowWithTheIDOfOneThatHeldItsKeyHoldsItsOwn although nothing was tidied in between.
func TestARowWithTheIDOfOneThatHeldItsKeyHoldsItsOwn(t *testing.T) {
	eachServer(t, "", func(t *testing.T, m mapped) {
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (1, 'a'), (11, 'a')")
		h := m.hold(t)
		h.die(h.find("1"))
		m.reuse(t, "1", "b")
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (12, 'b')")
		h.want(t, "with the id of one that held its key", "1", "12")
		h.die(h.find("1"))
		h.want(t, "when the new one holds its key", "11")
	})
}

func TestInitUpgradesSideTablesOfTheFirstVersion(t *testing.T) {
	eachServer(t, "", func(t *testing.T, m mapped) {
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (1, 'a'), (2, 'a'), (3, 'b')")
		h := m.hold(t)
		h.settle(h.find("3"), postrider.StateDead, "no")
		for _, statement := range append(withoutJobs("tasks"), "DROP TABLE tasks_holds", "DELETE FROM tasks_schema WHERE version > 1") {
			execute(t, m.db, statement)
		}
		h = m.hold(t)
		for _, f := range h.Verify(t.Context()) {
			if f.Level == operator.LevelError {
				t.Errorf("%+v", f)
			}
		}
		if row, err := h.Event(t.Context(), "3"); err != nil || row.Status != postrider.StateDead || row.LastError != "no" || row.Holds {
			t.Errorf("row is %+v, %v", row, err)
		}
		h.die(h.find("1"))
		h.want(t, "with the key held")
	})
}

// TestARedrivenRowIsNotPassedWhereTimesAreRounded has a column of the next attempt that holds no fractions of a second.
func TestARedrivenRowIsNotPassedWhereTimesAreRounded(t *testing.T) {
	eachServer(t, ", due TIMESTAMP(0)", func(t *testing.T, m mapped) {
		m.mapping.NextAttemptAt = "due"
		execute(t, m.db, "INSERT INTO tasks (id, event_key) VALUES (1, 'a'), (2, 'a')")
		h := m.hold(t)
		for start := time.Now(); time.Since(start) < 1100*time.Millisecond; { // every part of a second
			h.die(h.find("1"))
			if n, err := h.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 1 || err != nil {
				t.Fatalf("redrove %d, %v", n, err)
			}
			if got := h.ids(); !slices.Equal(got, []string{"1", "2"}) {
				t.Fatalf("read %v at once after the redrive", got)
			}
		}
	})
}

func (h held) want(t *testing.T, when string, ids ...string) {
	t.Helper()
	if got := h.sorted(); !slices.Equal(got, ids) {
		t.Errorf("%s: read %v, want %v", when, got, ids)
	}
}
