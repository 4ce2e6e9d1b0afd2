package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// application is a small application that takes orders. Every change of an order adds an event in the transaction of
// the change.
type application struct {
	db     *sql.DB
	outbox *postrider.Outbox
	run    string // makes the ids of orders unique over all runs
}

// steps are the changes of an order, in their order.
var steps = []struct{ status, event string }{
	{"placed", "OrderPlaced"}, {"paid", "OrderPaid"}, {"shipped", "OrderShipped"},
}

const (
	openOrders    = 10 // as many orders are worked on side by side
	rollbackEvery = 8  // before every so manyth change the same change is rolled back once
)

// change is one change of one order.
type change struct {
	order   string
	version int // from 1
}

// nth returns the nth change of the run, counted from 0.
func (a *application) nth(n int) change {
	block, rest := n/(openOrders*len(steps)), n%(openOrders*len(steps))
	return change{
		order:   fmt.Sprintf("order-%s-%d", a.run, block*openOrders+rest%openOrders),
		version: rest/openOrders + 1,
	}
}

// work commits the nth change, and rolls some back before.
func (a *application) work(ctx context.Context, n int) error {
	if n%rollbackEvery == rollbackEvery-1 {
		if err := a.changeAndRollBack(ctx, a.nth(n)); err != nil {
			return fmt.Errorf("roll back a change: %w", err)
		}
	}
	if err := a.changeAndCommit(ctx, a.nth(n)); err != nil {
		return fmt.Errorf("change an order: %w", err)
	}
	return nil
}

func (a *application) changeAndCommit(ctx context.Context, c change) error {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if _, err := a.apply(ctx, tx, c); err != nil {
		return err
	}
	return tx.Commit()
}

// changeAndRollBack does all of a change but its commit. The event must never be published.
func (a *application) changeAndRollBack(ctx context.Context, c change) error {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	eventID, err := a.apply(ctx, tx, c)
	if rollbackErr := tx.Rollback(); err == nil {
		err = rollbackErr
	}
	if err != nil {
		return err
	}
	_, err = a.db.ExecContext(ctx, `INSERT INTO rolled_back (event_id) VALUES (?)`, eventID)
	return err
}

// apply writes the order and adds its event, both in tx.
func (a *application) apply(ctx context.Context, tx *sql.Tx, c change) (eventID string, err error) {
	step := steps[c.version-1]
	_, err = tx.ExecContext(ctx, `INSERT INTO orders (id, status, version) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET status = excluded.status, version = excluded.version`, c.order, step.status, c.version)
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(map[string]any{"order": c.order, "status": step.status, "at": time.Now().UTC()})
	if err != nil {
		return "", err
	}
	added, err := a.outbox.Add(ctx, tx, postrider.Event{
		AggregateType:    "order",
		AggregateID:      c.order,
		AggregateVersion: int64(c.version),
		Type:             step.event,
		Payload:          payload,
	})
	if err != nil {
		return "", err
	}
	eventID = added[0].EventID
	_, err = tx.ExecContext(ctx, `INSERT INTO order_changes (event_id, order_id, version) VALUES (?, ?, ?)`,
		eventID, c.order, c.version)
	return eventID, err
}
