package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/text"
)

// InboxCollections are the collections of an inbox, with the receipts of any number of consumers: what people and tools look
// at. They are safe for concurrent use. An Inbox has them as well.
type InboxCollections struct {
	receipts, consumers, audit *driver.Collection

	hasTransactions atomic.Bool // once the server was seen to have them
}

// NewInboxCollections returns the collections around that of the receipts. Beside inbox_receipts stand inbox_consumers and
// inbox_audit; other names get the endings _consumers and _audit, in the place of _receipts where they end so. It does not talk
// to the server.
func NewInboxCollections(receipts *driver.Collection) (*InboxCollections, error) {
	if receipts == nil || receipts.Name() == "" {
		return nil, errors.New("the collection of receipts is missing")
	}
	db, stem := receipts.Database(), strings.TrimSuffix(receipts.Name(), "_receipts")
	return &InboxCollections{
		receipts:  durable(db, receipts.Name()),
		consumers: durable(db, stem+"_consumers"),
		audit:     durable(db, stem+"_audit"),
	}, nil
}

// receiptID is the _id of a receipt. Neither part has control characters, so that no two receipts have the same; dedup_key comes
// first so that the receipts of one event are found by it.
func receiptID(consumer, dedupKey string) string { return dedupKey + "\n" + consumer }

// receipt is the document of one.
type receipt struct {
	Consumer        string     `bson:"consumer"`
	DedupKey        string     `bson:"dedup_key"`
	EventID         string     `bson:"event_id"` // where it differs from dedup_key
	Source          string     `bson:"source"`
	AppliedAt       time.Time  `bson:"applied_at"`
	Duplicates      int64      `bson:"duplicates"`
	LastDuplicateAt *time.Time `bson:"last_duplicate_at"`
}

func (r receipt) receipt() inbox.Receipt {
	if r.EventID == "" {
		r.EventID = r.DedupKey
	}
	return inbox.Receipt{
		Consumer: r.Consumer, DedupKey: r.DedupKey, EventID: r.EventID, Source: r.Source,
		At: r.AppliedAt.UTC(), Duplicates: r.Duplicates, LastDuplicateAt: inUTC(r.LastDuplicateAt),
	}
}

func inUTC(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	utc := at.UTC()
	return &utc
}

// receiptRules are what the server checks of each receipt, whoever writes it: one under another _id would not be met, and one
// without a time would never be removed.
var receiptRules = bson.M{
	"$jsonSchema": bson.M{
		"bsonType": "object",
		"required": bson.A{"consumer", "dedup_key", "applied_at", "duplicates"},
		"properties": bson.M{
			"consumer":          textOf(1),
			"dedup_key":         textOf(1),
			"event_id":          textOf(1),
			"source":            bson.M{"bsonType": "string"},
			"applied_at":        bson.M{"bsonType": "date"},
			"duplicates":        whole(0),
			"last_duplicate_at": bson.M{"bsonType": "date"},
		},
	},
	"$expr": bson.M{"$eq": bson.A{"$_id", bson.M{"$concat": bson.A{"$dedup_key", "\n", "$consumer"}}}},
}

// Init creates the collections, their rules and indexes, or completes them. It may be called at any time, by several processes at
// the same time, and changes nothing when nothing is to be done.
func (c *InboxCollections) Init(ctx context.Context) error {
	if err := c.init(ctx); err != nil {
		return fmt.Errorf("create collection %s and those beside it: %w", c.receipts.Name(), err)
	}
	return nil
}

func (c *InboxCollections) init(ctx context.Context) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	for _, one := range []*driver.Collection{c.receipts, c.consumers, c.audit} {
		if err := createCollection(ctx, one); err != nil {
			return err
		}
	}
	if err := giveRules(ctx, c.receipts, receiptRules); err != nil {
		return err
	}
	_, err := c.receipts.Indexes().CreateMany(ctx, []driver.IndexModel{
		{Keys: ascending("consumer", "applied_at"), Options: options.Index().SetName("applied")},
		{Keys: ascending("event_id"), Options: options.Index().SetName("event").SetPartialFilterExpression(bson.M{"event_id": bson.M{"$exists": true}})},
	})
	return err
}

// ready returns an error of inbox.ClassUnavailable when the server has no transactions: there an effect could fail and leave its
// receipt behind. It asks outside of the transaction that ctx may carry.
func (c *InboxCollections) ready(ctx context.Context) error {
	if c.hasTransactions.Load() {
		return nil
	}
	found, err := lookAt(driver.NewSessionContext(ctx, nil), c.receipts.Database())
	switch {
	case err != nil:
		return inbox.Unavailable(c.fail("ask the server of", err))
	case !found.transactions:
		return inbox.Unavailable(c.fail("use", fmt.Errorf("%w: %s (%s)", ErrNoTransactions, found.version, hints[ErrNoTransactions])))
	case found.problem() != nil:
		return inbox.Unavailable(c.fail("use", found.problem()))
	}
	c.hasTransactions.Store(true)
	return nil
}

func (c *InboxCollections) fail(what string, err error) error {
	return fmt.Errorf("%s %s: %w", what, c.receipts.Name(), err)
}

// exists returns inbox.ErrNoTables when there is no collection of receipts.
func (c *InboxCollections) exists(ctx context.Context) error {
	found, err := c.receipts.Database().ListCollectionNames(ctx, bson.M{"name": c.receipts.Name()})
	if err == nil && len(found) == 0 {
		err = inbox.ErrNoTables
	}
	return err
}

// Receipts lists who has applied an event, or a message with the given dedup key, earliest first. The error is inbox.ErrNoTables
// when the collection does not exist.
func (c *InboxCollections) Receipts(ctx context.Context, eventID string) ([]inbox.Receipt, error) {
	found, err := c.find(ctx, eventID)
	if err != nil {
		return nil, c.fail("read receipts from", err)
	}
	receipts := make([]inbox.Receipt, len(found))
	for i, r := range found {
		receipts[i] = r.receipt()
	}
	return receipts, nil
}

func (c *InboxCollections) find(ctx context.Context, eventID string) ([]receipt, error) {
	if err := c.exists(ctx); err != nil {
		return nil, err
	}
	ofKey := bson.M{"$gte": receiptID("", eventID), "$lt": eventID + "\v"} // which follows \n
	return find[receipt](ctx, c.receipts, bson.M{"$or": bson.A{bson.M{"_id": ofKey}, bson.M{"event_id": eventID}}},
		options.Find().SetSort(ascending("applied_at", "consumer", "dedup_key")))
}

// countLimit bounds how many receipts of a consumer are counted.
const countLimit = 10_000

// Consumers lists the consumers that have receipts or have cleaned, by name. The error is inbox.ErrNoTables when the collection
// of receipts does not exist.
func (c *InboxCollections) Consumers(ctx context.Context) ([]inbox.ConsumerStatus, error) {
	statuses, err := c.statuses(ctx)
	if err != nil {
		return nil, c.fail("list the consumers of", err)
	}
	return statuses, nil
}

// consumerDoc is the document of a consumer that cleans.
type consumerDoc struct {
	Consumer      string     `bson:"_id"`
	WindowSeconds *int64     `bson:"window_seconds"`
	CleanedAt     *time.Time `bson:"cleaned_at"`
}

func (c *InboxCollections) statuses(ctx context.Context) ([]inbox.ConsumerStatus, error) {
	if err := c.exists(ctx); err != nil {
		return nil, err
	}
	registered, err := find[consumerDoc](ctx, c.consumers, bson.M{})
	if err != nil {
		return nil, err
	}
	known := map[string]inbox.ConsumerStatus{}
	for _, r := range registered {
		known[r.Consumer] = inbox.ConsumerStatus{Consumer: r.Consumer, WindowSeconds: r.WindowSeconds, CleanedAt: inUTC(r.CleanedAt)}
	}
	if err := c.addThoseWithReceipts(ctx, known); err != nil {
		return nil, err
	}
	statuses := make([]inbox.ConsumerStatus, 0, len(known))
	for _, status := range known {
		if err := c.count(ctx, &status); err != nil {
			return nil, err
		}
		statuses = append(statuses, status)
	}
	slices.SortFunc(statuses, func(a, b inbox.ConsumerStatus) int { return strings.Compare(a.Consumer, b.Consumer) })
	return statuses, nil
}

// addThoseWithReceipts finds the consumers by one step in the index for each.
func (c *InboxCollections) addThoseWithReceipts(ctx context.Context, known map[string]inbox.ConsumerStatus) error {
	for last := ""; ; {
		var next receipt
		err := c.receipts.FindOne(ctx, bson.M{"consumer": bson.M{"$gt": last}}, options.FindOne().SetSort(ascending("consumer", "applied_at"))).Decode(&next)
		if errors.Is(err, driver.ErrNoDocuments) {
			return nil
		}
		if err != nil {
			return err
		}
		last = next.Consumer
		status := known[last]
		status.Consumer, status.Oldest = last, inUTC(&next.AppliedAt)
		known[last] = status
	}
}

// count counts the newest receipts of a consumer.
func (c *InboxCollections) count(ctx context.Context, status *inbox.ConsumerStatus) error {
	counted, err := aggregate[struct {
		Receipts   int64 `bson:"receipts"`
		Duplicates int64 `bson:"duplicates"`
	}](ctx, c.receipts, bson.A{
		bson.M{"$match": bson.M{"consumer": status.Consumer}},
		bson.M{"$sort": bson.D{{Key: "consumer", Value: -1}, {Key: "applied_at", Value: -1}}},
		bson.M{"$limit": countLimit + 1}, // one more shows that there are more
		bson.M{"$group": bson.M{"_id": nil, "receipts": bson.M{"$sum": 1}, "duplicates": bson.M{"$sum": "$duplicates"}}},
	})
	if err != nil || len(counted) == 0 {
		return err
	}
	status.Receipts, status.Duplicates = counted[0].Receipts, counted[0].Duplicates
	if status.Receipts > countLimit {
		status.Receipts, status.More = countLimit, true
	}
	return nil
}

// Forget removes the receipt of a consumer on purpose: when the message is delivered again, it is applied again. Who did it
// and why is written to the audit collection in the same transaction; neither may be empty. It delivers nothing: redrive the
// event or the dead letter. The error is inbox.ErrNoReceipt when there is none.
func (c *InboxCollections) Forget(ctx context.Context, consumer, dedupKey, who, reason string) error {
	if who, reason = text.Clean(who), text.Clean(reason); who == "" || reason == "" {
		return errors.New("forget a receipt: who does it and the reason must not be empty")
	}
	err := keeper{c}.Transact(ctx, func(ctx context.Context) error { return c.forget(ctx, consumer, dedupKey, who, reason) })
	if err != nil {
		return c.fail(fmt.Sprintf("forget the receipt %.80q for consumer %.80q in", dedupKey, consumer), err)
	}
	return nil
}

func (c *InboxCollections) forget(ctx context.Context, consumer, dedupKey, who, reason string) error {
	var forgotten receipt
	err := c.receipts.FindOneAndDelete(ctx, bson.M{"_id": receiptID(consumer, dedupKey)}).Decode(&forgotten)
	if errors.Is(err, driver.ErrNoDocuments) {
		return inbox.ErrNoReceipt
	}
	if err != nil {
		return err
	}
	line := bson.M{
		"at": "$$NOW", "who": literal(who), "action": "forget", "reason": literal(reason),
		"consumer": literal(consumer), "dedup_key": literal(dedupKey), "applied_at": forgotten.AppliedAt,
	}
	_, err = c.audit.UpdateByID(ctx, bson.NewObjectID(), bson.A{bson.M{"$set": line}}, options.UpdateOne().SetUpsert(true))
	return err
}
