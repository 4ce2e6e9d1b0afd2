package contract_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/contract"
	"github.com/postrider/postrider/inbox"
)

var orders = map[string][]contract.Field{
	"OrderPlaced": {
		{Path: "/order", Kind: contract.String},
		{Path: "/amount", Kind: contract.Integer},
		{Path: "/note", Kind: contract.String, Optional: true},
	},
}

// An event that breaks its contract is stopped where it is made.
func Example() {
	contracts, err := contract.New(contract.Config{Fields: orders})
	if err != nil {
		panic(err)
	}
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL, Validate: contracts.Event})
	if err != nil {
		panic(err)
	}
	tx := begin()
	_, err = outbox.Add(context.Background(), tx, postrider.Event{
		AggregateType: "order", AggregateID: "17", Type: "OrderPlaced", Payload: []byte(`{"amount": "12.50"}`),
	})
	if problems, ok := errors.AsType[postrider.EventErrors](err); ok {
		for _, problem := range problems {
			fmt.Println(problem)
		}
	}
	// Output:
	// event 0: payload /order is missing
	// event 0: payload /amount is of kind string, not integer
}

// A consumer checks what others publish before it applies it.
func ExampleContract_Message() {
	contracts, err := contract.New(contract.Config{Fields: orders, Strict: true})
	if err != nil {
		panic(err)
	}
	err = contracts.Message(inbox.Message{
		Coordinates: "kafka:orders/3@1042",
		Headers:     []inbox.Header{{Name: "X-Event-Type", Value: "OrderRenamed"}},
	})
	fmt.Println(inbox.ClassOf(err))
	fmt.Println(err)
	// Output:
	// malformed
	// message at kafka:orders/3@1042 of type "OrderRenamed" breaks its contract: event_type has no contract: give it one, or allow others (contract.Config.Strict)
}

// begin stands for the application's own database. The example does not get as far as using it.
func begin() *sql.Tx { return new(sql.Tx) }
