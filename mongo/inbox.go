package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/postrider/postrider/inbox"
)

// InboxConfig says who applies messages, and how it knows them. Consumer must be set; every other zero value means the default
// that its comment gives.
type InboxConfig struct {
	// Consumer says who applies: consumers with different names apply the same message each. It must be valid UTF-8
	// without control characters, of 1 to postrider.MaxField bytes.
	Consumer string

	// DedupKey returns what a message has in common with its duplicates, as that of inbox.Config does; default
	// inbox.Message.EventID.
	DedupKey func(inbox.Message) (string, error)

	// Window is how long receipts are kept at least; default inbox.DefaultWindow, not less than a second. A message that is
	// delivered again after that is applied again.
	Window time.Duration

	// Filter stands in front of the receipts for Process and ProcessBatch, as that of inbox.Config does; default none.
	Filter inbox.Filter
}

// Inbox lets a consumer apply each message once, with its effect in MongoDB. What package inbox says of guarantees, of the
// duties of the caller and of Process and its companions holds here as well; a transaction is what the context carries that an
// effect is called with. It starts no goroutine, needs no closing, and is safe for concurrent use.
type Inbox struct {
	*InboxCollections
	engine *inbox.Engine
}

// NewInbox returns an Inbox whose receipts are in the collection receipts, which must be in a database of the cluster that
// the effects write to, or an error with every mistake in config. It does not talk to the server.
func NewInbox(receipts *driver.Collection, config InboxConfig) (*Inbox, error) {
	collections, err := NewInboxCollections(receipts)
	engine, configErr := inbox.NewEngine(inbox.Rules(config), keeper{collections})
	if err := errors.Join(err, configErr); err != nil {
		return nil, err
	}
	return &Inbox{collections, engine}, nil
}

// Consumer returns the name of the consumer.
func (in *Inbox) Consumer() string { return in.engine.Consumer() }

// Window returns how long receipts are kept.
func (in *Inbox) Window() time.Duration { return in.engine.Window() }

// Apply runs effect within the transaction that ctx carries, the caller's, unless the receipt for m exists. effect passes on the
// context that it gets.
//
// It returns a *TransactionError when ctx carries no running transaction, an *inbox.KeyError when m has no key that is fit for
// a receipt, an error of inbox.ClassUnavailable when the receipt cannot be written, and the error of effect, wrapped. It is the
// Result's Err as well. After any error the transaction must be aborted. When the error has the label TransientTransactionError,
// because another transaction applies the same, run the whole transaction again, as Session.WithTransaction does: it meets the
// receipt of the other one then. The commit must wait for a majority of the members, as it does unless the session or the client
// was told otherwise: else a fail-over can take back a receipt and the effect after the message was acknowledged.
func (in *Inbox) Apply(ctx context.Context, m inbox.Message, effect func(ctx context.Context) error) (inbox.Result, error) {
	err := inTransaction(ctx)
	if err == nil {
		err = in.ready(ctx)
	}
	if err != nil {
		err = fmt.Errorf("apply %s: %w", m, err)
		return inbox.Result{Err: err}, err
	}
	return in.engine.Apply(ctx, m, effect)
}

// Process runs effect in a transaction of its own, as Apply does, and commits it, for a majority of the members and with
// everything in it seen at one moment. When another transaction is in the way it begins again, effect included, for up to two
// minutes: of deliveries at the same time one is applied, and the others come to meet its receipt. When the connection breaks it
// begins again up to ten times. A commit whose answer got lost is asked for again, as often.
//
// When it returns an error nothing was applied, with one exception: after a commit that ended with an error of
// inbox.ClassUnavailable the outcome is unknown. In either case the message is to be processed again: the receipt tells then. Errors of the server are
// of inbox.ClassUnavailable where inbox.Inbox.Process says so.
func (in *Inbox) Process(ctx context.Context, m inbox.Message, effect func(ctx context.Context) error) (inbox.Result, error) {
	return in.engine.Process(ctx, m, effect)
}

// ProcessBatch applies messages in one transaction, and one by one when that fails, as inbox.Inbox.ProcessBatch does. effect is
// called with those that were not applied before.
func (in *Inbox) ProcessBatch(ctx context.Context, messages []inbox.Message, effect func(ctx context.Context, fresh []inbox.Message) error) []inbox.Result {
	return in.engine.ProcessBatch(ctx, messages, effect)
}

// Handler returns ProcessBatch as the handler of a consumer.Consumer.
func (in *Inbox) Handler(effect func(ctx context.Context, fresh []inbox.Message) error) func(ctx context.Context, messages []inbox.Message) []inbox.Result {
	return func(ctx context.Context, messages []inbox.Message) []inbox.Result {
		return in.ProcessBatch(ctx, messages, effect)
	}
}

// Clean removes the receipts of the consumer that are older than its window, in chunks, and returns how many they were. It also
// stores the window, for people and for postrider check. One process cleans at a time: when another one has begun within half a
// minute, Clean removes nothing. It takes the server's clock.
func (in *Inbox) Clean(ctx context.Context) (removed int64, err error) { return in.engine.Clean(ctx) }

// RunCleaner calls Clean about once a minute until ctx ends. It blocks. Every process of a consumer may run it. failed, which
// may be nil, is called with each error; the next minute is another attempt.
func (in *Inbox) RunCleaner(ctx context.Context, failed func(error)) {
	in.engine.RunCleaner(ctx, failed)
}
