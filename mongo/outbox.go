package mongo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// Config says how an Outbox writes. Every zero value means the default that its comment gives.
type Config struct {
	// Binary says that payloads are bytes and not JSON; they are kept as binary data.
	Binary bool

	// MaxPayload bounds a payload, in bytes; default postrider.DefaultMaxPayload.
	MaxPayload int

	// Trace, when set, is called once by each Add for headers such as traceparent and tracestate, which events
	// get that do not have them already.
	Trace func(ctx context.Context) map[string]string

	// Validate, when set, says what is wrong with an event, as that of postrider.Config does.
	Validate func(postrider.Event) error
}

// Outbox adds events to one outbox collection. It starts no goroutine, needs no closing, and is safe for concurrent use.
type Outbox struct {
	collections
	rules  postrider.Config
	shards atomic.Int64 // 0 until the layout was read
	last   atomic.Int64 // the highest position given so far
}

// New returns an Outbox that writes to the collection events, which Store.Init has created, or an error with every mistake
// in config. It does not talk to the server.
func New(events *driver.Collection, config Config) (*Outbox, error) {
	all, collectionErr := collectionsOf(events)
	rules := postrider.Config{Binary: config.Binary, MaxPayload: config.MaxPayload, Trace: config.Trace, Validate: config.Validate}
	_, configErr := postrider.Prepare(context.Background(), postrider.Config{MaxPayload: config.MaxPayload}, nil)
	if err := errors.Join(collectionErr, configErr); err != nil {
		return nil, err
	}
	return &Outbox{collections: all, rules: rules}, nil
}

// TransactionError says that the context given to Add carries no running transaction. What is written without one would
// not commit and roll back together with the caller's own data.
type TransactionError struct {
	Problem string // what is wrong with the context
}

func (e *TransactionError) Error() string {
	return e.Problem + ": begin a transaction (Session.WithTransaction), write your data in it, and pass the context that it gives you"
}

// inTransaction returns a *TransactionError unless ctx carries a running transaction.
func inTransaction(ctx context.Context) error {
	switch session := driver.SessionFromContext(ctx); {
	case session == nil:
		return &TransactionError{"the context carries no session"}
	case !session.TransactionRunning():
		return &TransactionError{"the session in the context has no running transaction"}
	default:
		return nil
	}
}

// Add writes events to the outbox in the transaction that ctx carries, as Session.WithTransaction or
// NewSessionContext give it, and tells what became of each, in their order. They are published once the transaction
// has committed, and never if it is aborted.
//
// It returns a *TransactionError when ctx carries no running transaction, and postrider.EventErrors when events are not
// fit to be added; then nothing was sent. After any other error the transaction cannot commit. When the error has the
// label TransientTransactionError, because another transaction added events of the same key or dedup key at the same time,
// run the whole transaction again, as Session.WithTransaction does.
func (o *Outbox) Add(ctx context.Context, events ...postrider.Event) ([]postrider.Added, error) {
	added, err := o.add(ctx, events)
	if err != nil {
		return nil, fmt.Errorf("add events to %s: %w", o.events.Name(), err)
	}
	return added, nil
}

func (o *Outbox) add(ctx context.Context, events []postrider.Event) ([]postrider.Added, error) {
	if err := inTransaction(ctx); err != nil {
		return nil, err
	}
	events, err := postrider.Prepare(ctx, o.rules, events)
	if err != nil {
		return nil, err
	}
	added, fresh, err := o.dropDuplicates(ctx, events)
	if err != nil || len(fresh) == 0 {
		return added, err
	}
	docs, err := o.documents(ctx, fresh)
	if err != nil {
		return nil, err
	}
	_, err = o.events.InsertMany(ctx, docs)
	return added, err
}

// dropDuplicates tells what becomes of each event and returns those that are to be written. It looks instead of letting
// the unique index decide, since an error of a write would end the transaction.
func (o *Outbox) dropDuplicates(ctx context.Context, events []postrider.Event) (added []postrider.Added, fresh []postrider.Event, err error) {
	taken, err := o.takenDedupKeys(ctx, events)
	if err != nil {
		return nil, nil, err
	}
	added = make([]postrider.Added, len(events))
	for i, e := range events {
		if e.DedupKey != "" && taken[e.DedupKey] {
			added[i].Dropped = true
			continue
		}
		taken[e.DedupKey] = true
		added[i].EventID = e.ID
		fresh = append(fresh, e)
	}
	return added, fresh, nil
}

func (o *Outbox) takenDedupKeys(ctx context.Context, events []postrider.Event) (map[string]bool, error) {
	asked := map[string]bool{}
	for _, e := range events {
		if e.DedupKey != "" {
			asked[e.DedupKey] = true
		}
	}
	taken := map[string]bool{}
	if len(asked) == 0 {
		return taken, nil
	}
	type key struct {
		DedupKey string `bson:"dedup_key"`
	}
	found, err := find[key](ctx, o.events, bson.M{"dedup_key": bson.M{"$exists": true, "$in": slices.Collect(maps.Keys(asked))}},
		options.Find().SetProjection(bson.M{"dedup_key": 1}))
	for _, f := range found {
		taken[f.DedupKey] = true
	}
	return taken, err
}

// documents takes the events' positions and lays them out as documents, in their order.
func (o *Outbox) documents(ctx context.Context, events []postrider.Event) ([]document, error) {
	shards, err := o.shardCount(ctx)
	if err != nil {
		return nil, err
	}
	ofKey := map[string]*run{}
	for _, e := range events {
		if ofKey[e.AggregateID] == nil {
			ofKey[e.AggregateID] = &run{}
		}
		ofKey[e.AggregateID].n++
	}
	docs := make([]document, len(events))
	for i, e := range events {
		r := ofKey[e.AggregateID]
		if r.next == 0 {
			if err := o.reserve(ctx, e.AggregateID, r); err != nil {
				return nil, err
			}
		}
		docs[i] = o.document(e, idAt(r.next), r.now, shardOf(e.AggregateID, shards))
		r.next++
	}
	return docs, nil
}

// run is the positions in a row of the events of one key.
type run struct {
	n    int
	next int64
	now  time.Time
}

// reserve takes the run's positions. Positions of one Outbox rise over all keys in the order of the Adds.
func (o *Outbox) reserve(ctx context.Context, key string, r *run) (err error) {
	r.next, r.now, err = reserve(ctx, o.keys, key, r.n, o.last.Load()+1)
	if err != nil {
		return err
	}
	highest := r.next + int64(r.n) - 1
	for {
		last := o.last.Load()
		if last >= highest || o.last.CompareAndSwap(last, highest) {
			return nil
		}
	}
}

// shardCount reads the outbox's number of shards, once.
func (o *Outbox) shardCount(ctx context.Context) (int, error) {
	if known := o.shards.Load(); known > 0 {
		return int(known), nil
	}
	var l layout
	err := o.schema.FindOne(ctx, bson.M{"_id": layoutID}).Decode(&l)
	if errors.Is(err, driver.ErrNoDocuments) || err == nil && l.Shards < 1 {
		return 0, fmt.Errorf("%w: %s has no layout (run `postrider init`)", relay.ErrSchema, o.schema.Name())
	}
	if err != nil {
		return 0, err
	}
	o.shards.Store(int64(l.Shards))
	return l.Shards, nil
}

func (o *Outbox) document(e postrider.Event, id bson.ObjectID, now time.Time, shard int) document {
	d := document{
		ID:            id,
		EventID:       e.ID,
		AggregateType: e.AggregateType,
		AggregateID:   e.AggregateID,
		EventType:     e.Type,
		Topic:         e.Topic,
		Payload:       string(e.Payload),
		ContentType:   e.ContentType,
		DedupKey:      e.DedupKey,
		Status:        postrider.StatePending,
		Waiting:       e.At.After(now),
		NextAttemptAt: now,
		Shard:         shard,
		CreatedAt:     now,
	}
	if o.rules.Binary {
		d.Payload = bson.Binary{Data: e.Payload}
	}
	if e.AggregateVersion > 0 {
		d.AggregateVersion = &e.AggregateVersion
	}
	if len(e.Headers) > 0 {
		d.Headers = e.Headers
	}
	if d.Waiting {
		d.NextAttemptAt = e.At
	}
	return d
}
