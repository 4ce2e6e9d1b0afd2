package once_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumer/parking"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/rabbitmq"
	"github.com/postrider/postrider/relay"
)

// orders say what a process consumes, and where it dies.
type orders struct {
	Driver, DSN string
	Dialect     postrider.Dialect
	Broker      string // kafka or rabbitmq
	Address     string
	Topic       string
	Instance    string // of the group at Kafka
	Parks       bool   // key poisoned fails, and is parked, until it is cured

	Point point
	Hit   int64 // the process dies when it is at the point for so many times
}

// point is a place in the way of a message.
type point string

const (
	beforeReceipt point = "before receipt"
	afterReceipt  point = "after receipt"
	inEffect      point = "in the effect"
	beforeCommit  point = "before commit"
	afterCommit   point = "after commit, before ack"
	afterAck      point = "after ack"
)

var points = []point{beforeReceipt, afterReceipt, inEffect, beforeCommit, afterCommit, afterAck}

// killer ends this process without a warning.
type killer struct {
	orders
	hits atomic.Int64
}

func (k *killer) at(p point) {
	if p == k.Point && k.hits.Add(1) == k.Hit {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// consume runs until SIGTERM, or until the killer strikes.
func consume(text string) {
	k := &killer{}
	must(json.Unmarshal([]byte(text), &k.orders))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	db, err := sql.Open(k.Driver, k.DSN)
	must(err)
	in, err := inbox.New(inbox.Config{Dialect: k.Dialect, Consumer: "once"})
	must(err)
	source, sink := k.open()
	config := consumer.Config{
		Name: "once", Source: acknowledging{source, k}, Sink: sink, Handler: k.handler(in.Handler(db, k.effect)), Workers: 3, Batch: 10,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if k.Parks {
		config.Parking, err = parking.New(db, parking.Config{Dialect: k.Dialect})
		must(err)
		config.ParkingPoll, config.ParkingLease = 20*time.Millisecond, 3*time.Second
		config.Policy = consumer.Policy{Retry: consumer.RetryPark, Schedule: relay.RetryPolicy{Schedule: []time.Duration{50 * time.Millisecond}}}
	}
	c, err := consumer.New(config)
	must(err)
	must(c.Run(ctx))
	must(source.Close())
	must(sink.Close())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func (k *killer) open() (consumer.Source, relay.Sink) {
	if k.Broker == "kafka" {
		source, err := kafka.OpenSource(kafka.SourceConfig{
			Brokers: []string{k.Address}, Group: k.Topic, Topics: []string{k.Topic}, InstanceID: k.Instance,
			// A member that dies while the group assembles is waited for.
			SessionTimeout: 6 * time.Second, RebalanceTimeout: 6 * time.Second,
		})
		must(err)
		sink, err := kafka.Open(kafka.Config{Brokers: []string{k.Address}})
		must(err)
		return source, sink
	}
	source, err := rabbitmq.OpenSource(rabbitmq.SourceConfig{Servers: []string{k.Address}, Queues: []string{k.Topic[1:]}})
	must(err)
	sink, err := rabbitmq.Open(rabbitmq.Config{Servers: []string{k.Address}})
	must(err)
	return source, sink
}

func (k *killer) handler(inner consumer.Handler) consumer.Handler {
	return func(ctx context.Context, batch []inbox.Message) []inbox.Result {
		k.at(beforeReceipt)
		results := inner(ctx, batch)
		k.at(afterCommit)
		return results
	}
}

// effect leaves a row for each time that it has run for a message.
func (k *killer) effect(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
	k.at(afterReceipt)
	insert := "INSERT INTO effects (event_id, event_key) VALUES ($1, $2)"
	if k.Dialect == postrider.MySQL {
		insert = "INSERT INTO effects (event_id, event_key) VALUES (?, ?)"
	}
	for _, m := range fresh {
		if k.Parks && m.AggregateID() == poisoned {
			if err := isCured(ctx, tx); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, insert, m.EventID(), m.AggregateID()); err != nil {
			return err
		}
		k.at(inEffect)
	}
	k.at(beforeCommit)
	return nil
}

// poisoned is the key whose messages fail until they are cured.
const poisoned = "key-0"

func isCured(ctx context.Context, tx *sql.Tx) error {
	var cures int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM cures").Scan(&cures); err != nil {
		return err
	}
	if cures == 0 {
		return errors.New("poison")
	}
	return nil
}

// acknowledging is a source that is flushed with what is finished.
type acknowledging struct {
	consumer.Source
	killer *killer
}

func (s acknowledging) Finish(deliveries ...*consumer.Delivery) {
	s.Source.Finish(deliveries...)
	if s.killer.Point == afterAck {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		must(s.Flush(ctx))
		s.killer.at(afterAck)
	}
}
