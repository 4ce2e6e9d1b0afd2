// Package neighbours_test runs one relay with a sink of every type, and lets one after the other fail in several ways: nobody
// else notices.
package neighbours_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/destination"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

const (
	keys  = 20 // of each sink
	limit = 3 * time.Minute
)

// full is set by POSTRIDER_FULL=1. Then each sink meets every trouble, with 20,000 events; else every other one, with fewer.
func full() bool { return os.Getenv("POSTRIDER_FULL") == "1" }

// perSink is how many events each trouble meets, of each sink.
func perSink() int {
	if full() {
		return 4000
	}
	return 100
}

// TestAFailingSinkHarmsNoOther has events for all sinks while one of them is in trouble. Those of the others are published
// meanwhile, its own afterwards, nothing is lost or out of order, and only troubles of single events spend attempts.
func TestAFailingSinkHarmsNoOther(t *testing.T) {
	db := &database{Database: testdb.Postgres(t, "pgx"), added: make(map[string]int), spent: make(map[string]int)}
	store, err := sqlstore.Open(db.DB, sqlstore.Postgres, sqlstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := destination.All(t)
	noticed := run(t, store, all)
	for i, failing := range all {
		for j, trouble := range failing.Troubles {
			if (i+j)%2 == 1 && !full() {
				continue
			}
			if !t.Run(failing.Name+" "+trouble.Name, func(t *testing.T) { db.meet(t, all, failing, trouble, noticed) }) {
				return // what it left would be found in the next ones
			}
		}
	}
	for _, d := range all {
		for _, wrong := range destination.Check(d.Arrived(t), db.keysOf(d)) {
			t.Errorf("%s: %s", d.Name, wrong)
		}
	}
}

// run runs a relay until the end of the test. It returns what the relay notices.
func run(t *testing.T, store *sqlstore.Store, all []destination.Destination) *troubles {
	t.Helper()
	noticed := &troubles{bySink: make(map[string]int)}
	cfg := relay.Config{
		Store: store, Name: "neighbours", Lease: 5 * time.Second, PublishTimeout: 500 * time.Millisecond,
		Hooks: noticed.hooks(),
		// One sink could hold all places, if it were let.
		MaxInFlight: perSink(), Batch: min(perSink()/2, 500),
		Retry: relay.RetryPolicy{Initial: 200 * time.Millisecond, Ceiling: 200 * time.Millisecond, Attempts: 1000},
	}
	for _, d := range all {
		cfg.Sinks = append(cfg.Sinks, relay.NamedSink{Name: d.Name, Type: d.Name, Sink: d.Sink})
		cfg.Routes = append(cfg.Routes, relay.Route{AggregateType: d.Name, Sink: d.Name, Topic: d.Topic})
	}
	r, err := relay.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return noticed
}

// troubles counts what the relay notices, by sink.
type troubles struct {
	mu     sync.Mutex
	bySink map[string]int
}

func (n *troubles) add(sink string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bySink[sink]++
}

func (n *troubles) hooks() relay.Hooks {
	return relay.Hooks{
		Published: func(sink string, outcomes map[relay.Class]int, _ time.Duration) {
			if outcomes[relay.ClassRetry] > 0 {
				n.add(sink)
			}
		},
		Circuit: func(s relay.SinkState) {
			if s.Circuit != relay.CircuitClosed {
				n.add(s.Name)
			}
		},
	}
}

func (n *troubles) of(sink string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bySink[sink]
}

// database is the outbox with what the test has done to it.
type database struct {
	testdb.Database
	added map[string]int // events, by key
	spent map[string]int // attempts, by sink
}

// meet adds events for all while one is in trouble.
func (db *database) meet(t *testing.T, all []destination.Destination, failing destination.Destination, trouble destination.Trouble, noticed *troubles) {
	before := noticed.of(failing.Name)
	trouble.Begin(t)
	db.add(t, all)
	await.True(t, limit, "the relay notices", func() bool { return noticed.of(failing.Name) > before })
	await.True(t, limit, "the others have everything", func() bool {
		waiting := db.waiting(t)
		delete(waiting, failing.Name)
		return len(waiting) == 0
	})
	if left := db.waiting(t)[failing.Name]; left != perSink() {
		t.Errorf("%d events wait for the sink in trouble, want %d", left, perSink())
	}
	trouble.End(t)
	await.True(t, limit, "everything is published", func() bool { return len(db.waiting(t)) == 0 })
	spent := db.attempts(t)
	if trouble.Spends && spent[failing.Name] > db.spent[failing.Name] {
		db.spent[failing.Name] = spent[failing.Name]
	}
	if !maps.Equal(spent, db.spent) {
		t.Errorf("attempts spent by sink: %v, want %v", spent, db.spent)
	}
	db.spent = spent
}

// add adds events for every sink, in turn.
func (db *database) add(t *testing.T, all []destination.Destination) {
	t.Helper()
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	var events []postrider.Event
	for i := range perSink() {
		for _, d := range all {
			key := fmt.Sprint(d.Name, "-", i%keys)
			events = append(events, postrider.Event{AggregateType: d.Name, AggregateID: key, Type: "added", Payload: destination.Payload(key, db.added[key])})
			db.added[key]++
		}
	}
	for chunk := range slices.Chunk(events, 500) {
		if _, err := outbox.Add(t.Context(), tx, chunk...); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// keysOf returns how many events each key of a sink has.
func (db *database) keysOf(d destination.Destination) map[string]int {
	n := make(map[string]int)
	for i := range keys {
		key := fmt.Sprint(d.Name, "-", i)
		n[key] = db.added[key]
	}
	return n
}

// waiting counts the events that are not PUBLISHED, by sink.
func (db *database) waiting(t *testing.T) map[string]int {
	return db.count(t, "SELECT aggregate_type, count(*) FROM outbox_events WHERE status <> 'PUBLISHED' GROUP BY 1")
}

// attempts counts those that were spent, by sink.
func (db *database) attempts(t *testing.T) map[string]int {
	return db.count(t, "SELECT aggregate_type, sum(retry_count) FROM outbox_events GROUP BY 1 HAVING sum(retry_count) > 0")
}

func (db *database) count(t *testing.T, query string) map[string]int {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	counts := make(map[string]int)
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		counts[name] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}
