package inbox_test

import (
	"context"
	"database/sql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

// A consumer adds to an account. A message that is delivered again adds nothing, and is acknowledged like any other.
func ExampleInbox_Process() {
	in, err := inbox.New(inbox.Config{Dialect: postrider.PostgreSQL})
	if err != nil {
		panic(err)
	}
	handle := func(ctx context.Context, db *sql.DB, headers map[string]string, account string, amount int) error {
		key := inbox.Key{Consumer: "billing", DedupKey: headers["X-Idempotency-Key"]}
		_, err := in.Process(ctx, db, key, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance + $1 WHERE id = $2", amount, account)
			return err
		})
		return err // nil: acknowledge the message
	}
	_ = handle
}
