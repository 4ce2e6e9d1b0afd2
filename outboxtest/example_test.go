package outboxtest_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/outboxtest"
	"github.com/postrider/postrider/relay"
)

// Shipping an order adds one event, and a transaction that rolls back adds none.
func ExampleTable() {
	test := func(t *testing.T, db *sql.DB) {
		outbox := outboxtest.Table{Dialect: postrider.PostgreSQL}
		mark := outbox.Mark(t, db)

		if err := ship(t.Context(), db, "17"); err != nil {
			t.Fatal(err)
		}
		outboxtest.Require(t, outbox.Added(t, db, mark), outboxtest.Want{
			Type: "OrderShipped", AggregateID: "17", Includes: `{"carrier": "postrider"}`,
		})

		mark = outbox.Mark(t, db)
		if err := ship(t.Context(), db, "an order that does not exist"); err == nil {
			t.Fatal("it was shipped")
		}
		outboxtest.Require(t, outbox.Added(t, db, mark)) // none
	}
	_ = test
}

func ExampleDiff() {
	added := []postrider.Event{
		{AggregateType: "order", AggregateID: "17", Type: "OrderPaid", Payload: []byte(`{"amount": 12, "currency": "EUR"}`)},
		{AggregateType: "order", AggregateID: "17", Type: "OrderShipped", Payload: []byte(`{}`)},
	}
	fmt.Println(outboxtest.Diff(added,
		outboxtest.Want{Type: "OrderPaid", Includes: `{"amount": 13}`},
		outboxtest.Want{Type: "OrderShipped"},
		outboxtest.Want{Type: "OrderClosed", AggregateID: "17"},
	))
	// Output:
	//   OrderPaid of order 17, payload {"amount": 12, "currency": "EUR"}:
	//     payload/amount is 12, want 13
	//   missing: type OrderClosed, aggregate id 17
}

// In an application setup makes a database, and Snapshot reads the tables that messages change.
func ExampleIdempotent() {
	test := func(t *testing.T) {
		outboxtest.Idempotent(t, func(t testing.TB) outboxtest.Consumer {
			db := newDatabase(t)
			return outboxtest.Consumer{
				Deliver: func(ctx context.Context, m inbox.Message) error { return handle(ctx, db, m) },
				Snapshot: func(ctx context.Context) (string, error) {
					return outboxtest.Rows(ctx, db, "SELECT id, balance FROM wallets ORDER BY id")
				},
			}
		}, inbox.Message{
			Coordinates: "memory:wallets/0@0",
			Headers:     []inbox.Header{{Name: "X-Event-Id", Value: "0192f0c1-9a3b-7c4d-8e5f-0123456789ab"}},
			Payload:     []byte(`{"wallet": "w-1", "amount": 5}`),
		})
	}
	_ = test
}

// A confirmation that is lost makes a publisher send a message twice, and a consumer get it twice.
func ExampleBroker() {
	ctx := context.Background()
	broker := outboxtest.NewBroker(outboxtest.BrokerConfig{})
	broker.LoseConfirms(1)

	sink := broker.Sink()
	message := relay.Message{Topic: "orders", Key: "17", Headers: []relay.Header{{Name: "X-Event-Id", Value: "e-1"}}}
	for {
		outcome := sink.Publish(ctx, []relay.Message{message})[0]
		fmt.Println(outcome.Class)
		if outcome.Class == relay.ClassPublished {
			break
		}
	}

	source := broker.Source("billing", "orders")
	deliveries, err := source.Fetch(ctx, 10)
	if err != nil {
		panic(err)
	}
	for _, d := range deliveries {
		fmt.Println(d.Message)
	}
	source.Finish(deliveries...)
	// Output:
	// unavailable
	// published
	// event "e-1" at memory:orders/1@0
	// event "e-1" at memory:orders/1@1
}

// These stand for the application.
func ship(context.Context, *sql.DB, string) error          { return nil }
func newDatabase(testing.TB) *sql.DB                       { return nil }
func handle(context.Context, *sql.DB, inbox.Message) error { return nil }
