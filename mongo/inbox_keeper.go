package mongo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/inbox"
)

// keeper is an inbox.Keeper.
type keeper struct{ *InboxCollections }

const (
	inboxAttempts = 10              // of a transaction whose connection breaks, or that the server ends
	conflictTime  = 2 * time.Minute // beyond the minute after which the server ends a transaction, unless it is told otherwise
	firstPause    = 4 * time.Millisecond
	longPause     = 500 * time.Millisecond
)

// Transact implements inbox.Keeper.
func (k keeper) Transact(ctx context.Context, f func(ctx context.Context) error) error {
	if err := k.ready(ctx); err != nil {
		return err
	}
	began := time.Now()
	for attempt, wait := 1, firstPause; ; attempt, wait = attempt+1, min(2*wait, longPause) {
		err := k.attempt(ctx, f)
		more := attempt < inboxAttempts || isConflict(err) && time.Since(began) < conflictTime
		if !isPassing(err) || !more || !pause(ctx, wait/2+rand.N(wait)) {
			return ofDatabase(err)
		}
	}
}

// attempt calls f in a transaction and commits it. The end of the session aborts what was not to be committed.
func (k keeper) attempt(ctx context.Context, f func(ctx context.Context) error) error {
	session, err := k.receipts.Database().Client().StartSession()
	if err != nil {
		return inbox.Unavailable(fmt.Errorf("begin a session: %w", err))
	}
	defer endSession(ctx, session)
	if err := session.StartTransaction(inOneMoment()); err != nil {
		return inbox.Unavailable(fmt.Errorf("begin a transaction: %w", err))
	}
	if err := f(driver.NewSessionContext(ctx, session)); err != nil {
		return err
	}
	if err := commit(ctx, session); err != nil {
		err = fmt.Errorf("commit: %w", err)
		if isRefusal(err) {
			return err
		}
		return inbox.Unavailable(err)
	}
	return nil
}

// commit asks again while it is not known whether the commit took place. A transaction that begins anew would wait for the one
// that may still be open.
func commit(ctx context.Context, session *driver.Session) error {
	for attempt, wait := 1, firstPause; ; attempt, wait = attempt+1, min(2*wait, longPause) {
		err := session.CommitTransaction(ctx)
		if !hasLabel(err, labelUnknownCommit) || attempt == inboxAttempts || isSelection(err) || isOver(err) || !pause(ctx, wait) {
			return err
		}
	}
}

// isConflict reports whether another transaction writes to the same documents.
func isConflict(err error) bool {
	server, ok := errors.AsType[driver.ServerError](err)
	return ok && server.HasErrorCode(codeWriteConflict)
}

// isPassing reports whether the same is likely to work at once in a new transaction. The driver itself has waited for a server
// when there is none.
func isPassing(err error) bool {
	return hasLabel(err, labelTransient) && !isSelection(err) && !isOver(err)
}

// isOver reports whether the time of a context was over, which would happen again.
func isOver(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// ofDatabase gives its class to an error under an effect that says nothing about the message: it lost its server.
func ofDatabase(err error) error {
	if inbox.ClassOf(err) == inbox.ClassRetry && hasLabel(err, labelTransient) && (isSelection(err) || driver.IsNetworkError(err) && !isOver(err)) {
		return inbox.Unavailable(err)
	}
	return err
}

// isRefusal reports whether a commit failed for what the effect did: it hid the error of a statement, which has ended the
// transaction, it took too long, it wrote too much, or it ended the transaction itself.
func isRefusal(err error) bool {
	server, ok := errors.AsType[driver.ServerError](err)
	if !ok {
		return !isSelection(err) && !isOver(err) && !driver.IsNetworkError(err)
	}
	return server.HasErrorCode(codeNoSuchTransaction) || server.HasErrorCode(codeTransactionTooLarge) || server.HasErrorCode(codeTransactionTooLong)
}

// Receive implements inbox.Keeper.
func (k keeper) Receive(ctx context.Context, receipts []inbox.Receipt) (map[string]inbox.Receipt, error) {
	met, err := k.receive(ctx, receipts)
	if err != nil {
		return nil, inbox.Unavailable(k.fail("write the receipt to", err))
	}
	return met, nil
}

// receive updates the receipts that are there and inserts the others, in one command: an insert would end the transaction where
// there is one. The server refuses one of two transactions that write the same receipt at once.
func (k keeper) receive(ctx context.Context, receipts []inbox.Receipt) (map[string]inbox.Receipt, error) {
	writes := make([]driver.WriteModel, len(receipts))
	for i, r := range receipts {
		writes[i] = driver.NewUpdateOneModel().SetFilter(bson.M{"_id": receiptID(r.Consumer, r.DedupKey)}).SetUpdate(receiving(r)).SetUpsert(true)
	}
	written, err := k.receipts.BulkWrite(ctx, writes)
	if err != nil || written.MatchedCount == 0 {
		return nil, err
	}
	var known bson.A
	for i, r := range receipts {
		if _, inserted := written.UpsertedIDs[int64(i)]; !inserted {
			known = append(known, receiptID(r.Consumer, r.DedupKey))
		}
	}
	return k.withIDs(ctx, known)
}

// Read implements inbox.Keeper. It reads what a majority of the members has.
func (k keeper) Read(ctx context.Context, consumer string, dedupKeys []string) (map[string]inbox.Receipt, error) {
	ids := make(bson.A, len(dedupKeys))
	for i, key := range dedupKeys {
		ids[i] = receiptID(consumer, key)
	}
	return k.withIDs(driver.NewSessionContext(ctx, nil), ids)
}

// withIDs returns receipts by their dedup keys.
func (k keeper) withIDs(ctx context.Context, ids bson.A) (map[string]inbox.Receipt, error) {
	found, err := find[receipt](ctx, k.receipts, bson.M{"_id": bson.M{"$in": ids}})
	met := make(map[string]inbox.Receipt, len(found))
	for _, r := range found {
		met[r.DedupKey] = r.receipt()
	}
	return met, err
}

// receiving is the update that writes a receipt, or counts in the one that is there.
func receiving(r inbox.Receipt) bson.A {
	fresh := bson.M{
		"consumer": literal(r.Consumer), "dedup_key": literal(r.DedupKey), "source": literal(r.Source),
		"applied_at": "$$NOW", "duplicates": r.Duplicates,
	}
	if r.EventID != r.DedupKey {
		fresh["event_id"] = literal(r.EventID)
	}
	if r.Duplicates > 0 {
		fresh["last_duplicate_at"] = "$$NOW"
	}
	known := bson.M{"duplicates": bson.M{"$add": bson.A{"$duplicates", r.Duplicates + 1}}, "last_duplicate_at": "$$NOW"}
	isNew := bson.M{"$eq": bson.A{bson.M{"$type": "$applied_at"}, "missing"}}
	return bson.A{bson.M{"$replaceWith": bson.M{"$mergeObjects": bson.A{"$$ROOT", bson.M{"$cond": bson.A{isNew, fresh, known}}}}}}
}

// Clean implements inbox.Keeper.
func (k keeper) Clean(ctx context.Context, consumer string, window time.Duration) (removed int64, err error) {
	removed, err = k.clean(ctx, consumer, window)
	if err != nil {
		return removed, k.fail("remove old receipts from", err)
	}
	return removed, nil
}

const (
	cleanTurn  = 30 * time.Second // within which only one cleans
	cleanChunk = 1000             // receipts that one command removes
)

func (k keeper) clean(ctx context.Context, consumer string, window time.Duration) (removed int64, err error) {
	now, mine, err := k.takeTurn(ctx, consumer, window)
	if err != nil || !mine {
		return 0, err
	}
	old := bson.M{"consumer": consumer, "applied_at": bson.M{"$lt": now.Add(-window)}}
	for {
		chunk, err := find[struct {
			ID string `bson:"_id"`
		}](ctx, k.receipts, old, options.Find().SetSort(ascending("consumer", "applied_at")).SetLimit(cleanChunk).SetProjection(bson.M{"_id": 1}))
		if err != nil || len(chunk) == 0 {
			return removed, err
		}
		ids := make(bson.A, len(chunk))
		for i, one := range chunk {
			ids[i] = one.ID
		}
		deleted, err := k.receipts.DeleteMany(ctx, with(old, bson.M{"_id": bson.M{"$in": ids}}))
		if err != nil {
			return removed, err
		}
		if removed += deleted.DeletedCount; len(ids) < cleanChunk {
			return removed, nil
		}
	}
}

// takeTurn stores the window, and tells whether it is this process that cleans, and the server's time.
func (k keeper) takeTurn(ctx context.Context, consumer string, window time.Duration) (now time.Time, mine bool, err error) {
	_, err = k.consumers.UpdateByID(ctx, consumer, bson.A{bson.M{"$set": bson.M{
		"window_seconds": int64(window.Seconds()), "registered_at": bson.M{"$ifNull": bson.A{"$registered_at", "$$NOW"}},
	}}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !driver.IsDuplicateKeyError(err) { // another process has registered at the same time
		return time.Time{}, false, err
	}
	// A missing time compares as lower than any.
	isDue := bson.M{"$lte": bson.A{"$cleaned_at", bson.M{"$subtract": bson.A{"$$NOW", milliseconds(cleanTurn)}}}}
	var taken consumerDoc
	err = k.consumers.FindOneAndUpdate(ctx, bson.M{"_id": consumer, "$expr": isDue}, bson.A{bson.M{"$set": bson.M{"cleaned_at": "$$NOW"}}},
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&taken)
	if errors.Is(err, driver.ErrNoDocuments) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, err
	}
	return *taken.CleanedAt, true, nil
}
