package mongo

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// Backlog implements relay.Store. The oldest event is the oldest among those that stand first in their shard, fell due
// first there, or are the oldest that failed there.
//
// For relays that lease shards it also gives back what relays that claimed events have left behind, before the outbox was
// given to these. Renew must not do that: a lease must not depend on whether the outbox can be written.
func (s *Store) Backlog(ctx context.Context) (relay.Backlog, error) {
	const op = "measure the backlog"
	n, oldest, err := s.measure(ctx, op)
	if err != nil {
		return relay.Backlog{}, err
	}
	pending, dead := n[postrider.StatePending], n[postrider.StateDead]
	b := relay.Backlog{
		Pending: min(pending, relay.PendingCap),
		Capped:  pending > relay.PendingCap,
		Dead:    min(dead, relay.PendingCap),
	}
	for _, o := range oldest {
		b.OldestPending = max(b.OldestPending, o.age)
	}
	if n[postrider.StateProcessing] > 0 && s.leasing.Load() {
		err = s.giveBackExpired(ctx)
	}
	return b, s.fail(op, err)
}

// measure counts the events of each state but PUBLISHED and finds the oldest of each shard in which something waits.
func (s *Store) measure(ctx context.Context, op string) (n map[postrider.State]int64, oldest []oldestEvent, err error) {
	layout, err := s.fits(ctx, op)
	if err != nil {
		return nil, nil, err
	}
	if n, err = s.counts(ctx); err != nil {
		return nil, nil, s.fail(op, err)
	}
	oldest, err = s.oldest(ctx, layout.Shards)
	return n, oldest, s.fail(op, err)
}

// counts follow an index each and go no further than one above relay.PendingCap (twice that for PENDING).
func (s *Store) counts(ctx context.Context) (map[postrider.State]int64, error) {
	if s.theirs != nil {
		return s.countTheirs(ctx)
	}
	n := map[postrider.State]int64{}
	for _, part := range []bson.M{
		ready, waiting, {"status": postrider.StateProcessing}, {"status": postrider.StateDead}, {"status": postrider.StateDiscarded},
	} {
		count, err := s.events.CountDocuments(ctx, part, options.Count().SetLimit(relay.PendingCap+1))
		if err != nil {
			return nil, err
		}
		n[part["status"].(postrider.State)] += count
	}
	return n, nil
}

// oldestEvent is the oldest event of a shard that is due or has failed.
type oldestEvent struct {
	Shard     int       `bson:"shard"`
	Key       string    `bson:"aggregate_id"`
	EventID   string    `bson:"event_id"`
	LastError string    `bson:"last_error"`
	CreatedAt time.Time `bson:"created_at"`

	age time.Duration
}

func (s *Store) oldest(ctx context.Context, shards int) (list []oldestEvent, err error) {
	if s.theirs != nil {
		return s.oldestOfTheirs(ctx)
	}
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	list, err = aggregate[oldestEvent](ctx, s.schema, heads(s.events.Name(), shards, now))
	if err != nil {
		return nil, err
	}
	claimed, err := find[oldestEvent](ctx, s.events, isProcessing, options.Find().SetLimit(maxClaimed).
		SetSort(ascending("processing_until", "_id")).SetProjection(headFields))
	return oldestOf(append(list, claimed...), now), err
}

// maxClaimed is how many claimed events are looked at; relays have fewer in flight.
const maxClaimed = 10_000

var isProcessing = bson.M{"status": postrider.StateProcessing}

// heads is a pipeline over the layout that finds the first event of each shard in each of the orders that an index keeps.
// The shards are its rows, each of which looks into the indexes once. To have a pipeline for each shard instead is no way:
// a server that plans their union as a whole takes seconds for it, however little waits.
func heads(collection string, shards int, now time.Time) bson.A {
	due := with(waiting, bson.M{"next_attempt_at": bson.M{"$lte": now}})
	return bson.A{
		isLayout,
		bson.M{"$project": bson.M{"_id": 0, "shard": bson.M{"$range": bson.A{0, shards}}}},
		bson.M{"$unwind": "$shard"},
		head(collection, "ready", ready, "_id"),
		head(collection, "waiting", due, "next_attempt_at"),
		head(collection, "failed", failed, "created_at"),
		bson.M{"$project": bson.M{"head": bson.M{"$concatArrays": bson.A{"$ready", "$waiting", "$failed"}}}},
		bson.M{"$unwind": "$head"},
		bson.M{"$replaceRoot": bson.M{"newRoot": "$head"}},
	}
}

// head is the stage that finds the first event of a row's shard by a field.
func head(collection, as string, match bson.M, field string) bson.M {
	return bson.M{"$lookup": bson.M{
		"from":         collection,
		"localField":   "shard",
		"foreignField": "shard",
		"pipeline": bson.A{
			bson.M{"$match": match},
			bson.M{"$sort": ascending(field)},
			bson.M{"$limit": 1},
			bson.M{"$project": headFields},
		},
		"as": as,
	}}
}

var headFields = bson.M{"shard": 1, "aggregate_id": 1, "event_id": 1, "last_error": 1, "created_at": 1}

// oldestOf keeps the oldest of each shard.
func oldestOf(heads []oldestEvent, now time.Time) []oldestEvent {
	slices.SortStableFunc(heads, func(a, b oldestEvent) int {
		if a.Shard != b.Shard {
			return a.Shard - b.Shard
		}
		return a.CreatedAt.Compare(b.CreatedAt)
	})
	heads = slices.CompactFunc(heads, func(a, b oldestEvent) bool { return a.Shard == b.Shard })
	for i := range heads {
		heads[i].age = max(now.Sub(heads[i].CreatedAt), 0)
	}
	return heads
}
