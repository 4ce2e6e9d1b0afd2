package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Rules are what is said of an inbox in any kind of database. Config has the same fields, and says what they mean.
type Rules struct {
	Consumer string
	DedupKey func(Message) (string, error)
	Window   time.Duration
	Filter   Filter
}

// identity is how an inbox knows messages. It has the rules, checked and with their defaults.
type identity struct {
	consumer string
	dedupKey func(Message) (string, error)
	window   time.Duration
	filter   Filter // may be nil
}

// identity returns an error with every mistake.
func (r Rules) identity() (identity, error) {
	var mistakes []error
	if problem := problemOf(r.Consumer); problem != "" {
		mistakes = append(mistakes, fmt.Errorf("Consumer %s: it names who applies, such as billing", problem))
	}
	if r.Window == 0 {
		r.Window = DefaultWindow
	}
	if r.Window < time.Second {
		mistakes = append(mistakes, fmt.Errorf("Window is %v: it must be a second or more", r.Window))
	}
	return identity{r.Consumer, r.DedupKey, r.Window, r.Filter}, errors.Join(mistakes...)
}

// Consumer returns the name of the consumer.
func (id *identity) Consumer() string { return id.consumer }

// Window returns how long receipts are kept.
func (id *identity) Window() time.Duration { return id.window }

// writeFunc writes receipts within a transaction and returns those that it met, by their keys. No two entries have the same
// key; it brings them into the order of their keys.
type writeFunc func(ctx context.Context, entries []*entry) (met map[string]Receipt, err error)

// transactFunc calls f in a transaction and commits it, again and again while others are in the way. Its errors have their
// classes.
type transactFunc[T any] func(ctx context.Context, f func(ctx context.Context, tx T, write writeFunc) error) error

// readFunc returns the receipts of entries, by their keys. It writes nothing.
type readFunc func(ctx context.Context, entries []*entry) (met map[string]Receipt, err error)

// database is where an inbox has its receipts.
type database[T any] struct {
	transact transactFunc[T]
	read     readFunc
}

// process applies one message in a transaction of its own.
func process[T any](ctx context.Context, id *identity, db database[T], m Message, effect func(context.Context, T) error) (Result, error) {
	e, err := id.entryOf(m)
	if err != nil {
		return failed(m, err)
	}
	if met, found := id.metBefore(ctx, db.read, []*entry{e})[e.DedupKey]; found {
		return Result{Outcome: Duplicate, Receipt: met}, nil
	}
	var result Result
	err = db.transact(ctx, func(ctx context.Context, tx T, write writeFunc) (err error) {
		result, err = id.apply(ctx, e, write, func(ctx context.Context) error { return effect(ctx, tx) })
		return err
	})
	if err != nil {
		return failed(m, err)
	}
	id.remember(ctx, []*entry{e})
	return result, nil
}

// apply writes a receipt and runs effect, unless the receipt is there.
func (id *identity) apply(ctx context.Context, e *entry, write writeFunc, effect func(ctx context.Context) error) (Result, error) {
	met, err := write(ctx, []*entry{e})
	if err != nil {
		return Result{}, err
	}
	if len(met) > 0 {
		return Result{Outcome: Duplicate, Receipt: met[e.DedupKey]}, nil
	}
	if err := effect(ctx); err != nil {
		return Result{}, err
	}
	return Result{Outcome: Applied, Receipt: id.written(e)}, nil
}

// failed is the result of a message with an error, twice.
func failed(m Message, err error) (Result, error) {
	err = fmt.Errorf("apply %s: %w", m, err)
	return Result{Err: err}, err
}
