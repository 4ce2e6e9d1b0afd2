package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrNoReceipt says that there is no such receipt.
var ErrNoReceipt = errors.New("there is no such receipt")

// Forget removes the receipt of a consumer on purpose: when the message is delivered again, it is applied again. Who did it
// and why is written to the audit table in the same transaction; neither may be empty. It delivers nothing: redrive the event or
// the dead letter. The error is ErrNoReceipt when there is none.
func (t *Tables) Forget(ctx context.Context, db *sql.DB, consumer, dedupKey, who, reason string) error {
	if problem := problemOf(who); problem != "" {
		return fmt.Errorf("forget a receipt: who does it %s", problem)
	}
	if reason = printable(reason); reason == "" {
		return errors.New("forget a receipt: the reason is empty")
	}
	err := again(ctx, func() error {
		return t.inTx(ctx, db, func(tx *sql.Tx) error { return t.forget(ctx, tx, consumer, dedupKey, who, reason) })
	})
	if err != nil {
		return t.fail(fmt.Sprintf("forget the receipt %.80q for consumer %.80q in", dedupKey, consumer), err)
	}
	return nil
}

// forget counts what it removes: another one may have removed the receipt meanwhile.
func (t *Tables) forget(ctx context.Context, tx *sql.Tx, consumer, dedupKey, who, reason string) error {
	if _, err := tx.ExecContext(ctx, t.statement("audit"), who, reason, consumer, dedupKey); err != nil {
		return err
	}
	n, err := changed(tx.ExecContext(ctx, t.statement("forget"), consumer, dedupKey))
	if err == nil && n == 0 {
		err = ErrNoReceipt
	}
	return err
}
