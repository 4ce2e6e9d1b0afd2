package main

import (
	"context"
	"database/sql"
	_ "embed" // the statements
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/uuid"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/relay"
)

// effect is one statement for all messages of a batch, as a service with much to do would have it.
//
//go:embed effect.sql
var effect string

// onceAndWithout compares a consumer without an inbox with the same one that applies each message once.
var onceAndWithout = []drain{
	{"effects, no inbox", postgres, toKafka, consumeBy(func(_ *inbox.Inbox, db *sql.DB) consumer.Handler { return withoutInbox(db) })},
	{"effects and receipts", postgres, toKafka, consumeBy(func(in *inbox.Inbox, db *sql.DB) consumer.Handler { return in.Handler(db, applyAll) })},
}

// consumeBy has a consumer read what was published before it began.
func consumeBy(handler func(*inbox.Inbox, *sql.DB) consumer.Handler) func(context.Context, options, place) (result, error) {
	return func(ctx context.Context, o options, p place) (r result, err error) {
		err = hosted(ctx, func(t *host) error {
			in, err := inbox.New(inbox.Config{Dialect: postrider.PostgreSQL, Consumer: "figure"})
			t.must(err)
			t.must(in.Init(ctx, p.db))
			_, err = p.db.ExecContext(ctx, "CREATE TABLE effects (event_id uuid, event_key text, payload bytea)")
			t.must(err)
			publish(t, o, p.topic)
			r.took = consume(t, o, p, handler(in, p.db))
			return nil
		})
		return r, err
	}
}

func publish(t *host, o options, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(server(t, "POSTRIDER_TEST_KAFKA")), kgo.MaxBufferedRecords(o.events))
	t.must(err)
	defer client.Close()
	payload := make([]byte, o.size)
	for i := range o.events {
		id := uuid.NewV7()
		client.Produce(t.Context(), &kgo.Record{
			Topic: topic, Key: fmt.Append(nil, "key-", i%o.keys), Value: payload,
			Headers: []kgo.RecordHeader{{Key: relay.HeaderEventID, Value: []byte(id)}, {Key: relay.HeaderEventType, Value: []byte("Measured")}},
		}, func(_ *kgo.Record, err error) { t.must(err) })
	}
	t.must(client.Flush(t.Context()))
}

// consume returns how long it takes until every message is applied, from the first one that comes: a group takes seconds to
// assemble.
func consume(t *host, o options, p place, handler consumer.Handler) time.Duration {
	address := server(t, "POSTRIDER_TEST_KAFKA")
	source, err := kafka.OpenSource(kafka.SourceConfig{Brokers: []string{address}, Group: p.topic, Topics: []string{p.topic}})
	t.must(err)
	defer source.Close()
	sink, err := kafka.Open(kafka.Config{Brokers: []string{address}})
	t.must(err)
	defer sink.Close()
	var applied atomic.Int64
	var start time.Time
	var began sync.Once
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c, err := consumer.New(consumer.Config{
		Name: "figure", Source: source, Sink: sink, Handler: handler, Batch: o.batch, Workers: 4,
		Hooks: consumer.Hooks{Fetched: func(int) { began.Do(func() { start = time.Now() }) }, Applied: func(inbox.Message, inbox.Outcome) {
			if applied.Add(1) == int64(o.events) {
				stop()
			}
		}},
	})
	t.must(err)
	t.must(c.Run(ctx))
	return time.Since(start)
}

func applyAll(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
	ids, keys, payloads := make([]string, len(fresh)), make([]string, len(fresh)), make([][]byte, len(fresh))
	for i, m := range fresh {
		ids[i], keys[i], payloads[i] = m.EventID(), m.Key, m.Payload
	}
	_, err := tx.ExecContext(ctx, effect, ids, keys, payloads)
	return err
}

// withoutInbox applies each batch in a transaction, and again whatever comes again.
func withoutInbox(db *sql.DB) consumer.Handler {
	return func(ctx context.Context, batch []inbox.Message) []inbox.Result {
		results := make([]inbox.Result, len(batch))
		err := inTransaction(ctx, db, func(tx *sql.Tx) error { return applyAll(ctx, tx, batch) })
		for i := range results {
			results[i] = inbox.Result{Outcome: inbox.Applied, Err: err}
		}
		return results
	}
}

func inTransaction(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
