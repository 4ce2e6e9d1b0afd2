package store

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// holdsAll is a Store with the leases of all shards, on an outbox with the events 1 and 2 of the keys a and b, which are DEAD and
// hold their keys, and 11 and 12 of the same keys.
func holdsAll(t *testing.T, d database) held {
	t.Helper()
	s, a := d.store(t, sqlstore.Config{}), relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	h := held{s, t, a, ownAll(t, s, a)}
	execute(t, d.db, "INSERT INTO "+d.table+` (id, aggregate_type, aggregate_id, event_type, payload)
		VALUES (1, 'order', 'a', 'E', '{}'), (2, 'order', 'b', 'E', '{}'), (11, 'order', 'a', 'E', '{}'), (12, 'order', 'b', 'E', '{}')`)
	h.die(h.find("1"))
	h.die(h.find("2"))
	h.want(t, "with all keys held")
	return h
}

func (h held) tidy() {
	h.t.Helper()
	if err := h.Tidy(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func (h held) wantHeldKeys(t *testing.T, want int64) {
	t.Helper()
	if status, err := h.Status(t.Context(), h.member.Name); err != nil || status.HeldKeys != want {
		t.Errorf("%d keys are held, want %d; %v", status.HeldKeys, want, err)
	}
}

// TestAKeyGoesOnWhenItsDeadRowWasChangedByHand looks at what people do by SQL to a row that holds its key.
func TestAKeyGoesOnWhenItsDeadRowWasChangedByHand(t *testing.T) {
	for name, tidy := range map[string]func(held) error{
		"Tidy": func(h held) error { return h.Tidy(t.Context()) },
		"Clean": func(h held) error {
			_, err := h.Clean(t.Context(), relay.CleanRequest{Retention: time.Hour, Limit: 10})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			everyDatabase(t, func(t *testing.T, d database) {
				h := holdsAll(t, d)
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				must(tidy(h))
				h.want(t, "after nothing was changed")
				h.wantHeldKeys(t, 2)
				execute(t, d.db, "DELETE FROM "+d.table+" WHERE id = 1")
				execute(t, d.db, "UPDATE "+d.table+" SET status = 'PENDING', last_error = NULL WHERE id = 2")
				if row, err := h.Event(t.Context(), "2"); err != nil || row.Holds {
					t.Errorf("row is %+v, %v; want that it holds nothing", row, err)
				}
				must(tidy(h))
				h.want(t, "after one was deleted and one made pending", "2", "11", "12")
				h.wantHeldKeys(t, 0)
			})
		})
	}
}

// TestTidyLooksAtABoundedNumberOfHolds and goes on from where it ended.
func TestTidyLooksAtABoundedNumberOfHolds(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		h := holdsAll(t, d)
		d.addHolds(t, 1500)
		h.wantHeldKeys(t, 1502)
		h.tidy()
		h.wantHeldKeys(t, 504) // it has seen the two of events that are there
		h.tidy()
		h.wantHeldKeys(t, 2)
		execute(t, d.db, "DELETE FROM "+d.table+" WHERE id = 1")
		h.tidy()
		h.want(t, "after one was deleted", "11")
	})
}

// side is the name of a side table.
func (d database) side(name string) string {
	return strings.TrimSuffix(d.table, "outbox_events") + "outbox_" + name
}

// addHolds makes n keys held by events that are not there.
func (d database) addHolds(t testing.TB, n int) {
	t.Helper()
	var values string
	for i := range n {
		values += ", (" + strconv.Itoa(1_000_000+i) + ", 'gone-" + strconv.Itoa(i) + "')"
	}
	execute(t, d.db, "INSERT INTO "+d.side("holds")+" (event, event_key) VALUES "+values[2:])
}

// TestTidyLeavesAHoldWhoseEventSomebodyHasLocked lest a row that is passed over be taken for one that is gone.
func TestTidyLeavesAHoldWhoseEventSomebodyHasLocked(t *testing.T) {
	everyServer(t, func(t *testing.T, d database) {
		h := holdsAll(t, d)
		tx := begin(t, d)
		lock(t, tx, "SELECT id FROM "+d.table+" WHERE id = 1 FOR UPDATE")
		h.tidy()
		tx.Rollback(t)
		h.wantHeldKeys(t, 2)
	})
}

// TestTidyLeavesAHoldThatIsWrittenAnew in a transaction which has begun before it looks, and commits afterwards.
func TestTidyLeavesAHoldThatIsWrittenAnew(t *testing.T) {
	everyServer(t, func(t *testing.T, d database) {
		h := holdsAll(t, d)
		execute(t, d.db, "UPDATE "+d.table+" SET status = 'PENDING' WHERE id = 1")
		settle, now := begin(t, d), map[string]string{"postgres": "clock_timestamp()", "mysql": "utc_timestamp(6)"}[d.dialect.String()]
		lock(t, settle, "UPDATE "+d.table+" SET status = 'DEAD' WHERE id = 1")
		lock(t, settle, "UPDATE "+d.side("holds")+" SET held_at = "+now+" WHERE event = 1")
		tidied := make(chan error)
		go func() { tidied <- h.Tidy(t.Context()) }()
		if d.dialect.String() == sqlstore.Postgres.String() { // the others pass over what is locked
			awaitRow(t, d.db, `SELECT 1 FROM pg_stat_activity
				WHERE wait_event_type = 'Lock' AND query LIKE '%DELETE FROM%outbox_holds%' AND query LIKE '%' || current_schema() || '%'`)
			settle.Commit(t)
		}
		if err := <-tidied; err != nil {
			t.Error(err)
		}
		if d.dialect.String() != sqlstore.Postgres.String() {
			settle.Commit(t)
		}
		h.wantHeldKeys(t, 2)
	})
}

// TestRedrivenEventsAreNotPassedBelowAFloor has a relay whose reads have passed the events of a key long before another process
// redrives them.
func TestRedrivenEventsAreNotPassedBelowAFloor(t *testing.T) {
	t.Run("each of them holds the key", func(t *testing.T) { redriveBelowAFloor(t, 0) })
	t.Run("the last of them holds the key", func(t *testing.T) { redriveBelowAFloor(t, 99) })
}

// redriveBelowAFloor has the first events die without holding the key, as they do before on_dead is changed.
func redriveBelowAFloor(t *testing.T, without int) {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	s, a := d.store(t, sqlstore.Config{}), relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	h := held{s, t, a, ownAll(t, s, a)}
	const dead, later = 100, 5
	add := func(n int) {
		execute(t, d.db, "INSERT INTO "+d.table+` (aggregate_type, aggregate_id, event_type, payload)
			SELECT 'order', 'a', 'E', '{}' FROM generate_series(1, $1::int)`, n)
	}
	add(dead)
	var all []string
	for i, e := range h.read() {
		all = append(all, e.ID)
		if i < without {
			h.settle(e, postrider.StateDead, "refused")
		} else {
			h.die(e)
		}
	}
	add(later)
	for start := time.Now(); time.Since(start) < 1500*time.Millisecond; { // the floors rise to the later events
		h.want(t, "while the key is held")
	}
	if n, err := d.open(t, sqlstore.Config{}).Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != dead || err != nil {
		t.Fatalf("redrove %d, %v", n, err)
	}
	for i := range later {
		all = append(all, strconv.Itoa(dead+i+1))
	}
	req := everything(1000)
	for sent := 0; sent < len(all); {
		req.PerShard = 30
		events, err := h.Read(t.Context(), req)
		if err != nil || len(events) == 0 {
			t.Fatalf("read %d events, %v", len(events), err)
		}
		var done []relay.Settlement
		for _, e := range events {
			if e.ID != all[sent] {
				t.Fatalf("read %s, want %s", e.ID, all[sent])
			}
			done = append(done, relay.Settlement{ID: e.ID, Lease: h.leases[e.Shard], State: postrider.StatePublished})
			sent++
		}
		h.settleAll(done...)
	}
}

// TestAMarkOfARedriveGoesAfterSomeMinutes and until then outlives Tidy.
func TestAMarkOfARedriveGoesAfterSomeMinutes(t *testing.T) {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	h := holdsAll(t, d)
	if n, err := h.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 2 || err != nil {
		t.Fatalf("redrove %d, %v", n, err)
	}
	wantMarks := func(want ...int64) {
		t.Helper()
		h.tidy()
		var marks []int64
		rows, err := d.db.Query("SELECT event FROM " + d.side("holds"))
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			marks = append(marks, id)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(marks, want) {
			t.Errorf("marks are at %v, want %v", marks, want)
		}
	}
	wantMarks(1)
	execute(t, d.db, "UPDATE "+d.side("holds")+" SET held_at = held_at - interval '4 minutes'")
	wantMarks(1)
	execute(t, d.db, "UPDATE "+d.side("holds")+" SET held_at = held_at - interval '1 minute'")
	wantMarks()
}

// TestRedrivenEventsOfAKeyThatWentOnAreNotPassed has a floor between the dead events of one key, where one of another key waits.
func TestRedrivenEventsOfAKeyThatWentOnAreNotPassed(t *testing.T) {
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	s, a := d.store(t, sqlstore.Config{}), relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	h := held{s, t, a, ownAll(t, s, a)}
	add := func(key string) {
		execute(t, d.db, "INSERT INTO "+d.table+" (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', $1, 'E', '{}')", key)
	}
	var neighbour string
	err := d.db.QueryRow(`SELECT 'k' || n FROM generate_series(1, 1000) n
		WHERE (hashtextextended('k' || n, 0) & 9223372036854775807) % $1 = (hashtextextended('a', 0) & 9223372036854775807) % $1 LIMIT 1`,
		shards).Scan(&neighbour)
	if err != nil {
		t.Fatal(err)
	}
	add("a")
	add(neighbour)
	add("a")
	h.settle(h.find("1"), postrider.StateDead, "refused")
	h.settle(h.find("3"), postrider.StateDead, "refused")
	for start := time.Now(); time.Since(start) < 1500*time.Millisecond; { // the floor rises to the neighbour
		h.want(t, "while both are dead", "2")
	}
	if n, err := d.open(t, sqlstore.Config{}).Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 2 || err != nil {
		t.Fatalf("redrove %d, %v", n, err)
	}
	h.want(t, "at once after the redrive", "1", "2", "3")
}
