package postriderpgx_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	postriderpgx "github.com/postrider/postrider/pgx"
)

// The order and its event are committed together.
func ExampleTx() {
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.PostgreSQL})
	if err != nil {
		panic(err)
	}
	ship := func(ctx context.Context, pool *pgxpool.Pool, order string) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "UPDATE orders SET status = 'shipped' WHERE id = $1", order); err != nil {
				return err
			}
			_, err := outbox.Add(ctx, postriderpgx.Tx(tx), postrider.Event{
				AggregateType: "order",
				AggregateID:   order,
				Type:          "OrderShipped",
				Payload:       []byte(`{"carrier": "postrider"}`),
			})
			return err
		})
	}
	_ = ship
}
