// Package service is what the services have in common.
package service

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/redis"
)

// Broker says where the streams are.
type Broker struct {
	Address  string // host:port
	Prefix   string // of the streams' names
	Instance string // names this process among those of its service; one that is killed comes back under its name
}

// Branch is one thing that a service does about events of one type. It has a consumer group and receipts of its own, under
// Inbox.Consumer: branches of the same type each get every event, and apply it independently of each other.
type Branch struct {
	Inbox     inbox.Config
	EventType string
	Effect    inbox.BatchEffect[*sql.Tx]
}

// Consume runs the branches until ctx ends, and then stops in order. When one of them cannot begin, none goes on.
func Consume(ctx context.Context, db *sql.DB, broker Broker, branches ...Branch) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	errs := make([]error, len(branches))
	for i, b := range branches {
		running.Go(func() {
			defer stop()
			errs[i] = b.consume(ctx, db, broker)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (b Branch) consume(ctx context.Context, db *sql.DB, broker Broker) error {
	in, err := inbox.New(b.Inbox)
	if err != nil {
		return err
	}
	if err := in.Init(ctx, db); err != nil {
		return err
	}
	source, err := redis.OpenSource(redis.SourceConfig{
		Addresses: []string{broker.Address},
		Streams:   []string{broker.Prefix + b.EventType},
		Group:     in.Consumer(),
		Consumer:  broker.Instance,
	})
	if err != nil {
		return err
	}
	defer source.Close()
	sink, err := redis.Open(redis.Config{Addresses: []string{broker.Address}}) // for dead letters
	if err != nil {
		return err
	}
	defer sink.Close()
	log := slog.With("consumer", in.Consumer())
	c, err := consumer.New(consumer.Config{
		Name: in.Consumer(), Source: source, Sink: sink, Handler: in.Handler(db, b.Effect), Types: []string{b.EventType}, Logger: log,
		Hooks: consumer.Hooks{Applied: func(m inbox.Message, outcome inbox.Outcome) {
			log.Info("handled", "outcome", outcome, "event", m.EventID(), "learner", m.AggregateID())
		}},
	})
	if err != nil {
		return err
	}
	var cleaner sync.WaitGroup
	defer cleaner.Wait()
	cleaner.Go(func() {
		in.RunCleaner(ctx, db, func(err error) { log.Error("old receipts stay for now", "err", err) })
	})
	return c.Run(ctx)
}
