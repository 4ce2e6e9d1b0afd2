package inbox

import (
	"context"
	"fmt"
	"time"
)

// Keeper keeps receipts in a database that has no SQL. Those who apply messages need not know of it: it is what adapters, such
// as that of module mongo, give to NewEngine. A context that a Keeper gives to a function carries the transaction.
type Keeper interface {
	// Transact calls f in a transaction and commits it, unless f returns an error or panics. When others are in the way, it
	// begins again, f included. Errors of the database have their class; others are as f returned them.
	Transact(ctx context.Context, f func(ctx context.Context) error) error

	// Receive writes receipts within the transaction of ctx, and returns those that it met instead, by their dedup keys. One
	// that it met counts what is in Duplicates of the one that was to be written, and one more. The receipts are in the order of
	// their keys, no two of which are the same; their times are zero, for the database's clock to set. Its errors have their class.
	Receive(ctx context.Context, receipts []Receipt) (met map[string]Receipt, err error)

	// Read returns the receipts of a consumer that are committed for good, by their dedup keys. It is called outside of transactions.
	Read(ctx context.Context, consumer string, dedupKeys []string) (met map[string]Receipt, err error)

	// Clean removes the receipts of a consumer that are older than its window, as Inbox.Clean does.
	Clean(ctx context.Context, consumer string, window time.Duration) (removed int64, err error)
}

// Engine applies the messages of one consumer, whose receipts a Keeper keeps. What the methods of Inbox with the same names
// say holds here as well. It is safe for concurrent use when the Keeper is.
type Engine struct {
	identity
	keeper Keeper
}

// NewEngine returns an Engine, or an error with every mistake in rules.
func NewEngine(rules Rules, keeper Keeper) (*Engine, error) {
	id, err := rules.identity()
	if err != nil {
		return nil, fmt.Errorf("inbox configuration: %w", err)
	}
	return &Engine{id, keeper}, nil
}

// Apply runs effect within the transaction of ctx, the caller's, unless the receipt for m exists.
func (e *Engine) Apply(ctx context.Context, m Message, effect func(ctx context.Context) error) (Result, error) {
	entry, err := e.entryOf(m)
	if err != nil {
		return failed(m, err)
	}
	result, err := e.apply(ctx, entry, e.write, effect)
	if err != nil {
		return failed(m, err)
	}
	return result, nil
}

// Process runs effect in a transaction of its own.
func (e *Engine) Process(ctx context.Context, m Message, effect func(ctx context.Context) error) (Result, error) {
	return process(ctx, &e.identity, e.database(), m, func(ctx context.Context, _ none) error { return effect(ctx) })
}

// ProcessBatch applies messages in one transaction, and one by one when it fails.
func (e *Engine) ProcessBatch(ctx context.Context, messages []Message, effect func(ctx context.Context, fresh []Message) error) []Result {
	return processBatch(ctx, &e.identity, e.database(), messages, func(ctx context.Context, _ none, fresh []Message) error { return effect(ctx, fresh) })
}

// Clean removes the receipts of the consumer that are older than its window.
func (e *Engine) Clean(ctx context.Context) (removed int64, err error) {
	return e.keeper.Clean(ctx, e.consumer, e.window)
}

// RunCleaner calls Clean about once a minute until ctx ends.
func (e *Engine) RunCleaner(ctx context.Context, failed func(error)) {
	runCleaner(ctx, e.Clean, failed)
}

// none stands for the transaction, which the context carries.
type none struct{}

func (e *Engine) database() database[none] {
	return database[none]{transact: e.transact, read: func(ctx context.Context, entries []*entry) (map[string]Receipt, error) {
		return e.keeper.Read(ctx, e.consumer, keysOf(entries))
	}}
}

func (e *Engine) transact(ctx context.Context, f func(context.Context, none, writeFunc) error) error {
	return e.keeper.Transact(ctx, func(ctx context.Context) error { return f(ctx, none{}, e.write) })
}

func (e *Engine) write(ctx context.Context, entries []*entry) (map[string]Receipt, error) {
	sortByKey(entries)
	receipts := make([]Receipt, len(entries))
	for i, entry := range entries {
		receipts[i] = e.written(entry)
		receipts[i].Duplicates = entry.Duplicates
	}
	return e.keeper.Receive(ctx, receipts)
}
