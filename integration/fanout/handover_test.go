package fanout_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sink/outbox"
)

const (
	toMain  = "outbox_events_to_main"
	toHooks = "outbox_events_to_hooks"
)

// newSink creates two outboxes and opens a sink that hands over to them.
func newSink(t *testing.T, db testdb.Database, committed func(string)) *outbox.Sink {
	t.Helper()
	for _, table := range []string{toMain, toHooks} {
		db.InitOutbox(t, postrider.Config{Table: table, Binary: true})
	}
	sink, err := outbox.Open(outbox.Config{DB: db.DB, Dialect: db.Dialect, Tables: []string{toMain, toHooks}, Committed: committed})
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

// messageOf is the message that a relay makes of an event for tables.
func messageOf(e relay.Event, tables ...string) relay.Message {
	return relay.Message{EventID: e.EventID, Key: e.Key(), Topic: outbox.Topic(tables...), Payload: e.Payload, Event: &e}
}

func event(n int, key string) relay.Event {
	return relay.Event{
		ID: fmt.Sprint(n), EventID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n),
		AggregateType: "order", AggregateID: key, EventType: "Paid", Payload: fmt.Appendf(nil, `{"n": %d}`, n), ContentType: "application/json",
	}
}

func batchOf(events ...relay.Event) (batch []relay.Message) {
	for _, e := range events {
		batch = append(batch, messageOf(e, toMain, toHooks))
	}
	return batch
}

func publish(t *testing.T, sink relay.Sink, batch []relay.Message) []relay.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return sink.Publish(ctx, batch)
}

func wantClasses(t *testing.T, outcomes []relay.Outcome, want ...relay.Class) {
	t.Helper()
	var got []relay.Class
	for _, o := range outcomes {
		got = append(got, o.Class)
	}
	if !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v: %+v", got, want, outcomes)
	}
}

// idsIn returns the event ids of an outbox in its order.
func idsIn(t *testing.T, db *sql.DB, table string) (ids []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT event_id FROM "+table+" ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

func wantCopies(t *testing.T, db *sql.DB, table string, events ...relay.Event) {
	t.Helper()
	var want []string
	for _, e := range events {
		want = append(want, outbox.CopyID(e.EventID))
	}
	if got := idsIn(t, db, table); !slices.Equal(got, want) {
		t.Errorf("%s holds %v, want %v", table, got, want)
	}
}

func TestEveryDestinationGetsItsCopies(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		var told []string
		sink := newSink(t, db, func(table string) { told = append(told, table) })
		a, b, c := event(1, "a"), event(2, "b"), event(3, "a")
		outcomes := publish(t, sink, []relay.Message{messageOf(a, toMain, toHooks), messageOf(b, toHooks), messageOf(c, toMain, toHooks)})
		wantClasses(t, outcomes, relay.ClassPublished, relay.ClassPublished, relay.ClassPublished)
		if got := outcomes[0].Coordinates + " " + outcomes[1].Coordinates; got != "outbox:"+toMain+","+toHooks+" outbox:"+toHooks {
			t.Errorf("coordinates %q", got)
		}
		wantCopies(t, db.DB, toMain, a, c)
		wantCopies(t, db.DB, toHooks, a, b, c)
		if !slices.Equal(told, []string{toMain, toHooks}) {
			t.Errorf("told of %q", told)
		}
	})
}

func TestHandingOverAgainAddsNothing(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		sink := newSink(t, db, nil)
		odd := event(4, "b")
		odd.EventID = "no UUID"
		events := []relay.Event{event(1, "a"), event(2, "a"), odd}
		for range 2 {
			wantClasses(t, publish(t, sink, batchOf(events...)), relay.ClassPublished, relay.ClassPublished, relay.ClassPublished)
		}
		late := event(3, "a")
		wantClasses(t, publish(t, sink, batchOf(events[1], late)), relay.ClassPublished, relay.ClassPublished)
		for _, table := range []string{toMain, toHooks} {
			wantCopies(t, db.DB, table, append(slices.Clone(events), late)...)
		}
	})
}

// The second table is missing: what was written to the first is not there either.
func TestCopiesAppearTogetherOrNotAtAll(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		sink := newSink(t, db, func(string) { t.Error("something was committed") })
		if _, err := db.ExecContext(t.Context(), "DROP TABLE "+toHooks); err != nil {
			t.Fatal(err)
		}
		outcomes := publish(t, sink, batchOf(event(1, "a"), event(2, "b"), event(3, "c")))
		wantClasses(t, outcomes, relay.ClassUnavailable, relay.ClassUnavailable, relay.ClassUnavailable)
		wantCopies(t, db.DB, toMain)
	})
}

func TestARefusedEventHarmsOnlyItsKey(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		sink := newSink(t, db, nil)
		refused := event(2, "b")
		refused.Headers = map[string]string{"X-Event-Id": "another"}
		outcomes := publish(t, sink, batchOf(event(1, "b"), refused, event(3, "b"), event(4, "c")))
		wantClasses(t, outcomes, relay.ClassPublished, relay.ClassPermanent, relay.ClassSkipped, relay.ClassPublished)
		if outcomes[1].Err == nil || !strings.Contains(outcomes[1].Err.Error(), "reserved") {
			t.Errorf("reason: %v", outcomes[1].Err)
		}
		wantCopies(t, db.DB, toMain, event(1, "b"), event(4, "c"))
		wantCopies(t, db.DB, toHooks, event(1, "b"), event(4, "c"))
	})
}

// refuse lets the database refuse one event for a reason that only it knows.
func refuse(t *testing.T, db testdb.Database, table, key string) {
	t.Helper()
	statement := map[postrider.Dialect]string{
		postrider.PostgreSQL: "ALTER TABLE " + table + " ADD CONSTRAINT odd CHECK (aggregate_id <> '" + key + "')",
		postrider.MySQL:      "ALTER TABLE " + table + " ADD CONSTRAINT odd CHECK (aggregate_id <> '" + key + "')",
		postrider.SQLite: "CREATE TRIGGER odd BEFORE INSERT ON " + table + " WHEN new.aggregate_id = '" + key +
			"' BEGIN SELECT raise(ABORT, 'odd'); END",
	}[db.Dialect]
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestTheDatabaseRefusesOneEvent(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		sink := newSink(t, db, nil)
		refuse(t, db, toHooks, "odd")
		var events, taken []relay.Event
		var want []relay.Class
		for i := range 100 {
			e := event(i+1, fmt.Sprintf("key-%d", i%7))
			class := relay.ClassPublished
			switch i {
			case 30, 99: // also the last one, after which nothing shows that the database takes others
				e.AggregateID, class = "odd", relay.ClassRetry
				if i == 99 {
					class = relay.ClassSkipped
				}
			default:
				taken = append(taken, e)
			}
			events, want = append(events, e), append(want, class)
		}
		wantClasses(t, publish(t, sink, batchOf(events...)), want...)
		wantCopies(t, db.DB, toMain, taken...)
		wantCopies(t, db.DB, toHooks, taken...)
		wantClasses(t, publish(t, sink, batchOf(taken[0], events[99])), relay.ClassPublished, relay.ClassRetry)
		wantClasses(t, publish(t, sink, batchOf(events[99])), relay.ClassUnavailable)
		wantCopies(t, db.DB, toHooks, taken...)
	})
}

func TestADatabaseThatIsAwayIsUnavailable(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		sink := newSink(t, db, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantClasses(t, sink.Publish(ctx, batchOf(event(1, "a"))), relay.ClassUnavailable)
		db.SetMaxOpenConns(1)
		conn, err := db.Conn(t.Context()) // so that no connection can be had
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		outcomes := sink.Publish(ctx, batchOf(event(1, "a"), event(2, "a"), event(3, "b")))
		conn.Close()
		wantClasses(t, outcomes, relay.ClassUnavailable, relay.ClassSkipped, relay.ClassUnavailable)
		wantCopies(t, db.DB, toMain)
	})
}

// A database that does not take a whole batch in time gets smaller ones, so that the events leave nevertheless.
func TestASlowDatabaseGetsSmallerBatches(t *testing.T) {
	db := testdb.Postgres(t, "pgx")
	sink := newSink(t, db, nil)
	_, err := db.ExecContext(t.Context(), `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.02); RETURN new; END';
		CREATE TRIGGER slow BEFORE INSERT ON `+toMain+` FOR EACH ROW EXECUTE FUNCTION slow()`)
	if err != nil {
		t.Fatal(err)
	}
	var events, left []relay.Event
	for i := range 150 {
		events = append(events, event(i+1, fmt.Sprintf("key-%d", i)))
	}
	left = events
	for calls := 0; len(left) > 0 && calls < 20; calls++ {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // the whole batch takes 3 s
		outcomes := sink.Publish(ctx, batchOf(left...))
		cancel()
		var rest []relay.Event
		for i, o := range outcomes {
			if o.Class != relay.ClassPublished {
				rest = append(rest, left[i])
			}
		}
		left = rest
	}
	if len(left) > 0 {
		t.Errorf("%d of %d events were not handed over", len(left), len(events))
	}
	wantCopies(t, db.DB, toMain, events...)
}

func TestAMessageWithoutEventOrTable(t *testing.T) {
	db := testdb.SQLite(t)
	sink := newSink(t, db, nil)
	outcomes := publish(t, sink, []relay.Message{{EventID: "1", Key: "a", Topic: toMain}, messageOf(event(2, "b"), toMain, "elsewhere")})
	wantClasses(t, outcomes, relay.ClassPermanent, relay.ClassPermanent)
	wantCopies(t, db.DB, toMain)
}

func TestConfigurationsWithMistakes(t *testing.T) {
	_, err := outbox.Open(outbox.Config{Dialect: "oracle", Tables: []string{"a", "a", "b..c"}})
	for _, part := range []string{"DB is missing", `"oracle"`, `"a" is there twice`, `"b..c"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not tell %s", err, part)
		}
	}
}
