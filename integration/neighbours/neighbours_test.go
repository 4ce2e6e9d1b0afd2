// Package neighbours_test runs one relay with a sink of every type, and lets one after the other fail: nobody else notices.
package neighbours_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

const (
	perSink = 400 // events of each round and sink
	keys    = 20
	limit   = 2 * time.Minute
)

// neighbour is a sink with its destination.
type neighbour struct {
	name    string
	sink    relay.Sink
	topic   string
	trouble func()                 // lets the destination fail
	heal    func()                 // ends it
	count   func(t *testing.T) int // events there
}

func TestAFailingSinkHarmsNoOther(t *testing.T) {
	db := database{testdb.Postgres(t, "pgx")}
	store, err := sqlstore.Open(db.DB, sqlstore.Postgres, sqlstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := []neighbour{newKafka(t), newNATS(t), newRabbitMQ(t), newRedis(t), newWebhook(t)}
	run(t, store, all)
	added := make(map[string]int)
	for _, failing := range all {
		if failing.trouble == nil {
			continue
		}
		t.Run(failing.name, func(t *testing.T) {
			failing.trouble()
			add(t, db, all)
			for _, other := range all {
				added[other.name] += perSink
				if other.name != failing.name {
					await.True(t, limit, other.name+" has everything", func() bool { return other.count(t) >= added[other.name] })
				}
			}
			if left := db.waiting(t, failing.name); left == 0 {
				t.Errorf("nothing waits for %s, which failed", failing.name)
			}
			failing.heal()
			await.True(t, limit, failing.name+" has everything", func() bool { return failing.count(t) >= added[failing.name] })
			await.True(t, limit, "everything is settled", func() bool { return db.waiting(t, "") == 0 })
		})
	}
	if spent := db.attempts(t); spent != 0 {
		t.Errorf("%d attempts were spent on sinks that were unavailable", spent)
	}
}

// run runs a relay until the end of the test.
func run(t *testing.T, store *sqlstore.Store, all []neighbour) {
	t.Helper()
	cfg := relay.Config{Store: store, Name: "neighbours", Lease: 5 * time.Second, PublishTimeout: time.Second}
	for _, n := range all {
		cfg.Sinks = append(cfg.Sinks, relay.NamedSink{Name: n.name, Type: n.name, Sink: n.sink})
		cfg.Routes = append(cfg.Routes, relay.Route{AggregateType: n.name, Sink: n.name, Topic: n.topic})
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
		for _, n := range all {
			if err := n.sink.Close(); err != nil {
				t.Errorf("%s: %v", n.name, err)
			}
		}
	})
}

// add adds events for every sink, of keys that all sinks share.
func add(t *testing.T, db database, all []neighbour) {
	t.Helper()
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL})
	if err != nil {
		t.Fatal(err)
	}
	for i := range perSink {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range all {
			e := postrider.Event{AggregateType: n.name, AggregateID: fmt.Sprint(n.name, i%keys), Type: "added", Payload: fmt.Append(nil, i)}
			if _, err := outbox.Add(t.Context(), tx, e); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

type database struct{ testdb.Database }

// waiting counts the events for a sink, or for any when it is empty, that are not PUBLISHED.
func (db database) waiting(t *testing.T, sink string) (n int) {
	t.Helper()
	query := "SELECT count(*) FROM outbox_events WHERE status <> 'PUBLISHED' AND (aggregate_type = $1 OR $1 = '')"
	if err := db.QueryRowContext(t.Context(), query, sink).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (db database) attempts(t *testing.T) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT coalesce(sum(retry_count), 0) FROM outbox_events").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
