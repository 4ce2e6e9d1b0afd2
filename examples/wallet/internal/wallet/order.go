package wallet

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	postriderpgx "github.com/postrider/postrider/pgx"
)

// Order is something that was bought from a wallet's money.
type Order struct {
	ID     string `json:"id"`
	Wallet string `json:"wallet"`
	Amount int64  `json:"amount"`
}

// PlaceOrder debits the wallet and records the order, or does neither. Its events are the wallet's and the order's.
// Errors are as with Post; an order id that was used before gives ErrReferenceTaken.
func (s *Service) PlaceOrder(ctx context.Context, o Order) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := s.post(ctx, tx, o.Wallet, []Entry{{Amount: -o.Amount, Reference: "order " + o.ID}}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO orders (id, wallet, amount) VALUES ($1, $2, $3)", o.ID, o.Wallet, o.Amount)
		if err != nil {
			return taken(err)
		}
		_, err = s.outbox.Add(ctx, postriderpgx.Tx(tx), postrider.Event{
			AggregateType:    "order",
			AggregateID:      o.ID,
			AggregateVersion: 1,
			Type:             "OrderPlaced",
			Payload:          encode(o),
		})
		return err
	})
}

// GetOrder returns an order, or ErrNotFound.
func (s *Service) GetOrder(ctx context.Context, id string) (Order, error) {
	o := Order{ID: id}
	err := s.pool.QueryRow(ctx, "SELECT wallet, amount FROM orders WHERE id = $1", id).Scan(&o.Wallet, &o.Amount)
	return o, notFound(err)
}
