package postrider_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/postrider/postrider"
)

// The order and its event are committed together. The UPDATE before Add makes transactions on one order take turns,
// so that its events are numbered in the order of their commits.
func ExampleOutbox_Add() {
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL})
	if err != nil {
		panic(err)
	}
	ship := func(ctx context.Context, db *sql.DB, order string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // after Commit it does nothing

		if _, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'shipped' WHERE id = $1", order); err != nil {
			return err
		}
		if _, err := outbox.Add(ctx, tx, postrider.Event{
			AggregateType: "order",
			AggregateID:   order,
			Type:          "OrderShipped",
			Payload:       []byte(`{"carrier": "postrider"}`),
		}); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = ship
}

func ExampleOutbox_Add_badEvents() {
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL})
	if err != nil {
		panic(err)
	}
	tx := begin()
	_, err = outbox.Add(context.Background(), tx,
		postrider.Event{AggregateType: "order", Type: "OrderShipped", Payload: []byte(`{}`)},
		postrider.Event{AggregateType: "order", AggregateID: "17", Type: "OrderShipped", Payload: []byte(`{`)},
	)
	if problems, ok := errors.AsType[postrider.EventErrors](err); ok {
		for _, problem := range problems {
			fmt.Println(problem.Index, problem.Field)
		}
	}
	// Output:
	// 0 aggregate_id
	// 1 payload
}

func ExampleOutbox_Add_pool() {
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL})
	if err != nil {
		panic(err)
	}
	db := open()
	_, err = outbox.Add(context.Background(), db, postrider.Event{
		AggregateType: "order", AggregateID: "17", Type: "OrderShipped", Payload: []byte(`{}`),
	})
	if refused, ok := errors.AsType[*postrider.TxError](err); ok {
		fmt.Println(refused.Type, refused.Problem)
	}
	// Output: *sql.DB is a connection pool, not a transaction
}

// begin and open stand for the application's own database. The examples that run do not get as far as using it.
func begin() *sql.Tx { return new(sql.Tx) }
func open() *sql.DB  { return new(sql.DB) }
