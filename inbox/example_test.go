package inbox_test

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

// deposit is what the messages of the examples ask for.
type deposit struct {
	Account string
	Amount  int
}

// A consumer adds to an account. A message that is delivered again adds nothing, and is acknowledged like any other.
func ExampleInbox_Process() {
	in, err := inbox.New(inbox.Config{Dialect: postrider.PostgreSQL, Consumer: "billing"})
	if err != nil {
		panic(err)
	}
	handle := func(ctx context.Context, db *sql.DB, m inbox.Message) error {
		var d deposit
		if err := json.Unmarshal(m.Payload, &d); err != nil {
			return inbox.Malformed(err)
		}
		_, err := in.Process(ctx, db, m, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance + $1 WHERE id = $2", d.Amount, d.Account)
			return err
		})
		return err // nil: acknowledge the message
	}
	_ = handle
}

// Messages that come in batches share a transaction. What the effect gets was not applied before.
func ExampleInbox_ProcessBatch() {
	in, err := inbox.New(inbox.Config{Dialect: postrider.PostgreSQL, Consumer: "billing"})
	if err != nil {
		panic(err)
	}
	handle := func(ctx context.Context, db *sql.DB, messages []inbox.Message) []inbox.Result {
		return in.ProcessBatch(ctx, db, messages, func(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
			for _, m := range fresh {
				var d deposit
				if err := json.Unmarshal(m.Payload, &d); err != nil {
					return inbox.Malformed(err) // the messages are then processed one by one, and only this one fails
				}
				if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance + $1 WHERE id = $2", d.Amount, d.Account); err != nil {
					return err
				}
			}
			return nil
		})
	}
	_ = handle
}

// Two events that ask for the same reward give it once.
func ExampleBusinessKey() {
	in, err := inbox.New(inbox.Config{
		Dialect:  postrider.PostgreSQL,
		Consumer: "rewards",
		DedupKey: func(m inbox.Message) (string, error) {
			var completed struct{ User, Quest string }
			if err := json.Unmarshal(m.Payload, &completed); err != nil {
				return "", err
			}
			return inbox.BusinessKey("quest", completed.User, completed.Quest)
		},
	})
	if err != nil {
		panic(err)
	}
	_ = in
}
