package mongo

import (
	"maps"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
)

// forgetAfter is how long the documents of keys and of relays are kept after they were last written, in seconds. A key's
// last position matters only while the server's clock could still run back behind it.
const forgetAfter = 24 * 60 * 60

// What the partial indexes of the outbox hold; queries name the same conditions, so that the indexes serve them.
var (
	// ready are events that may be sent at once.
	ready = bson.M{"status": postrider.StatePending, "waiting": false}

	// waiting are scheduled events and retries.
	waiting = bson.M{"status": postrider.StatePending, "waiting": true}

	// failed are the events that the later ones of their key wait for.
	failed = bson.M{"status": postrider.StatePending, "last_error": bson.M{"$exists": true}}

	// versioned are events that wait with a version.
	versioned = bson.M{"status": postrider.StatePending, "aggregate_version": bson.M{"$exists": true}}
)

// index describes an index of the outbox collection or of a side collection.
type index struct {
	of     func(collections) *driver.Collection
	name   string
	keys   []string
	unique bool
	only   bson.M // what it holds, nil for all
	forget bool   // documents go when the date in its only key is forgetAfter ago
}

func eventsOf(c collections) *driver.Collection    { return c.events }
func attemptsOf(c collections) *driver.Collection  { return c.attempts }
func keysOf(c collections) *driver.Collection      { return c.keys }
func relaysOf(c collections) *driver.Collection    { return c.relays }
func failuresOf(c collections) *driver.Collection  { return c.failures }
func holdsOf(c collections) *driver.Collection     { return c.holds }
func jobsOf(c collections) *driver.Collection      { return c.jobs }
func jobEventsOf(c collections) *driver.Collection { return c.jobEvents }

var indexes = []index{
	{of: eventsOf, name: "event_id", keys: []string{"event_id"}, unique: true},
	{of: eventsOf, name: "dedup", keys: []string{"dedup_key"}, unique: true, only: bson.M{"dedup_key": bson.M{"$exists": true}}},
	{of: eventsOf, name: "ready", keys: []string{"shard", "_id"}, only: ready},
	{of: eventsOf, name: "waiting", keys: []string{"shard", "next_attempt_at", "_id"}, only: waiting},
	{of: eventsOf, name: "blocking", keys: []string{"aggregate_id", "_id"}, only: failed},
	{of: eventsOf, name: "failed", keys: []string{"shard", "created_at"}, only: failed},
	{of: eventsOf, name: "gaps", keys: []string{"aggregate_id", "aggregate_type", "aggregate_version"}, only: versioned},
	{of: eventsOf, name: "processing", keys: []string{"processing_until", "_id"}, only: bson.M{"status": postrider.StateProcessing}},
	{of: eventsOf, name: "dead", keys: []string{"status", "_id"}, only: bson.M{"status": postrider.StateDead}},
	{of: eventsOf, name: "discarded", keys: []string{"status", "_id"}, only: bson.M{"status": postrider.StateDiscarded}},
	{of: attemptsOf, name: "event", keys: []string{"event", "_id"}},
	{of: keysOf, name: "at", keys: []string{"at"}, forget: true},
	{of: relaysOf, name: "heartbeat", keys: []string{"heartbeat_at"}, forget: true},
	{of: holdsOf, name: "keys", keys: []string{"shard", "aggregate_id"}},
	{of: jobsOf, name: "state", keys: []string{"state", "due_at"}},
	{of: jobEventsOf, name: "set", keys: []string{"job", "first"}, unique: true},
}

// indexesBeside are those of the side collections of an outbox that somebody else designed.
var indexesBeside = []index{
	{of: attemptsOf, name: "event", keys: []string{"event", "_id"}},
	{of: relaysOf, name: "heartbeat", keys: []string{"heartbeat_at"}, forget: true},
	{of: failuresOf, name: "blocking", keys: []string{"aggregate_id"}, only: bson.M{"state": postrider.StatePending}},
	{of: failuresOf, name: "state", keys: []string{"state", "_id"}},
	{of: holdsOf, name: "keys", keys: []string{"shard", "aggregate_id"}},
	{of: jobsOf, name: "state", keys: []string{"state", "due_at"}},
	{of: jobEventsOf, name: "set", keys: []string{"job", "first"}, unique: true},
}

// indexes are those that Init creates.
func (s *Store) indexes() []index {
	if s.theirs != nil {
		return indexesBeside
	}
	return indexes
}

func (i index) model() driver.IndexModel {
	o := options.Index().SetName(i.name)
	if i.unique {
		o.SetUnique(true)
	}
	if i.only != nil {
		o.SetPartialFilterExpression(i.only)
	}
	if i.forget {
		o.SetExpireAfterSeconds(forgetAfter)
	}
	return driver.IndexModel{Keys: ascending(i.keys...), Options: o}
}

// ascending orders by fields.
func ascending(fields ...string) bson.D {
	order := make(bson.D, len(fields))
	for i, field := range fields {
		order[i] = bson.E{Key: field, Value: 1}
	}
	return order
}

// with returns a condition with further ones.
func with(condition, more bson.M) bson.M {
	all := maps.Clone(condition)
	maps.Copy(all, more)
	return all
}
