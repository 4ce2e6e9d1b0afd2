package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
)

// BatchEffect applies messages within tx, in their order. It is called with those of a batch that were not applied before,
// each key once, and with one at a time when a batch has failed; so it must not keep anything of a call that failed.
type BatchEffect[T any] func(ctx context.Context, tx T, fresh []Message) error

// ProcessBatch applies messages in one transaction: all receipts in one statement, effect for those that are new, one commit.
// It returns a Result for each message, in their order. A message that has the same dedup key as an earlier one of the batch
// is a Duplicate of it.
//
// When the batch fails, for whatever it was that effect did, its messages are processed one by one, so that a bad one harms no
// other. Messages of one key stand in order: once one has failed, later ones of its key are not tried, and come back with
// ErrSkipped. The key is Message.Key, else the aggregate id; messages without either are in no order.
//
// What Process says about beginning again and about classes of errors holds here as well; when the database is unavailable the
// messages that are left are not tried, and have that error or, behind one of their key that has it, ErrSkipped. A panic of effect is an error of it.
func (in *Inbox) ProcessBatch(ctx context.Context, db *sql.DB, messages []Message, effect BatchEffect[*sql.Tx]) []Result {
	return ProcessBatchIn(ctx, in, beginSQL(db), messages, effect)
}

// Handler returns ProcessBatch as the handler of a consumer.Consumer.
func (in *Inbox) Handler(db *sql.DB, effect BatchEffect[*sql.Tx]) func(ctx context.Context, messages []Message) []Result {
	return HandlerIn(in, beginSQL(db), effect)
}

// HandlerIn is Inbox.Handler with transactions of any kind.
func HandlerIn[T any](in *Inbox, begin Begin[T], effect BatchEffect[T]) func(ctx context.Context, messages []Message) []Result {
	return func(ctx context.Context, messages []Message) []Result {
		return ProcessBatchIn(ctx, in, begin, messages, effect)
	}
}

// ProcessBatchIn is Inbox.ProcessBatch with transactions of any kind.
func ProcessBatchIn[T any](ctx context.Context, in *Inbox, begin Begin[T], messages []Message, effect BatchEffect[T]) []Result {
	return processBatch(ctx, &in.identity, databaseOf(in, begin), messages, effect)
}

func processBatch[T any](ctx context.Context, id *identity, db database[T], messages []Message, effect BatchEffect[T]) []Result {
	b := &batch[T]{id: id, db: db, effect: protected(effect), results: make([]Result, len(messages)), blocked: map[string]bool{}}
	b.add(messages)
	b.process(ctx)
	return b.results
}

// batch is the work of one processBatch.
type batch[T any] struct {
	id      *identity
	db      database[T]
	effect  BatchEffect[T]
	results []Result
	blocked map[string]bool    // keys of which a message has failed
	items   []item             // what is to be tried, in the order of the messages
	known   map[string]Receipt // that the filter has found
}

// item is a message of a batch.
type item struct {
	Message
	entry entry
	place int // in the batch
}

// add checks the messages. Those that have no key for their receipt have their result then, and so have those that wait for them.
func (b *batch[T]) add(messages []Message) {
	for i, m := range messages {
		if b.isSkipped(i, m) {
			continue
		}
		e, err := b.id.entryOf(m)
		if err != nil {
			b.fail(i, m, err)
			continue
		}
		b.items = append(b.items, item{m, *e, i})
	}
}

func (b *batch[T]) isSkipped(place int, m Message) bool {
	if !b.blocked[orderKey(m)] {
		return false
	}
	b.results[place] = Result{Err: fmt.Errorf("%s: %w", m, ErrSkipped)}
	return true
}

func (b *batch[T]) fail(place int, m Message, err error) {
	b.results[place], _ = failed(m, err)
	if key := orderKey(m); key != "" {
		b.blocked[key] = true
	}
}

// orderKey is what the messages that must stay in order have in common; empty where there is no order.
func orderKey(m Message) string {
	if m.Key != "" {
		return "k" + m.Key
	}
	if id := m.AggregateID(); id != "" {
		return "a" + id
	}
	return ""
}

func (b *batch[T]) process(ctx context.Context) {
	if len(b.items) == 0 {
		return
	}
	entries, _ := distinct(b.items)
	b.known = b.id.metBefore(ctx, b.db.read, entries)
	err := b.try(ctx, b.items)
	switch {
	case err == nil:
	case len(b.items) == 1 || ClassOf(err) == ClassUnavailable:
		b.failAll(b.items, err)
	default:
		b.singly(ctx)
	}
}

func (b *batch[T]) failAll(items []item, err error) {
	for _, it := range items {
		if !b.isSkipped(it.place, it.Message) {
			b.fail(it.place, it.Message, err)
		}
	}
}

func (b *batch[T]) singly(ctx context.Context) {
	for i, it := range b.items {
		if b.isSkipped(it.place, it.Message) {
			continue
		}
		err := b.try(ctx, b.items[i:i+1])
		if err != nil && ClassOf(err) == ClassUnavailable {
			b.failAll(b.items[i:], err)
			return
		}
		if err != nil {
			b.fail(it.place, it.Message, err)
		}
	}
}

// try applies items in one transaction, and sets their results when it has committed.
func (b *batch[T]) try(ctx context.Context, items []item) error {
	unique, fresh := distinct(items)
	unique = slices.DeleteFunc(unique, func(e *entry) bool {
		_, found := b.known[e.DedupKey]
		return found
	})
	if len(unique) == 0 {
		b.succeed(items, fresh, b.known)
		return nil
	}
	met := make(map[string]Receipt)
	err := b.db.transact(ctx, func(ctx context.Context, tx T, write writeFunc) error {
		receipts, err := write(ctx, unique)
		if err != nil {
			return err
		}
		clear(met)
		maps.Copy(met, receipts)
		maps.Copy(met, b.known)
		if messages := unmet(fresh, met); len(messages) > 0 {
			return b.effect(ctx, tx, messages)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.succeed(items, fresh, met)
	b.id.remember(ctx, unique)
	return nil
}

// distinct returns what is to be written for items, each key once, and the first item of each key, in their order.
func distinct(items []item) (unique []*entry, first []item) {
	byKey := make(map[string]*entry, len(items))
	for _, it := range items {
		if e, ok := byKey[it.entry.DedupKey]; ok {
			e.Duplicates++
			continue
		}
		e := it.entry
		byKey[e.DedupKey] = &e
		unique, first = append(unique, &e), append(first, it)
	}
	return unique, first
}

func unmet(items []item, met map[string]Receipt) (messages []Message) {
	for _, it := range items {
		if _, found := met[it.entry.DedupKey]; !found {
			messages = append(messages, it.Message)
		}
	}
	return messages
}

func (b *batch[T]) succeed(items, fresh []item, met map[string]Receipt) {
	applied := make(map[string]Receipt, len(fresh))
	for _, it := range fresh {
		if _, found := met[it.entry.DedupKey]; !found {
			applied[it.entry.DedupKey] = b.id.written(&it.entry)
			b.results[it.place] = Result{Outcome: Applied, Receipt: applied[it.entry.DedupKey]}
		}
	}
	for _, it := range items {
		switch receipt, found := met[it.entry.DedupKey]; {
		case found:
			b.results[it.place] = Result{Outcome: Duplicate, Receipt: receipt}
		case b.results[it.place].Outcome == "":
			b.results[it.place] = Result{Outcome: Duplicate, Receipt: applied[it.entry.DedupKey]}
		}
	}
}
