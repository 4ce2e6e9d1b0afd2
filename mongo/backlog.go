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
	return b, nil
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
	all := make([]int, shards)
	for i := range all {
		all[i] = i
	}
	for some := range slices.Chunk(all, shardsPerQuery) {
		var heads []bson.A
		for _, shard := range some {
			in := bson.M{"shard": shard}
			due := bson.M{"shard": shard, "next_attempt_at": bson.M{"$lte": now}}
			heads = append(heads, head(with(ready, in), "_id"), head(with(waiting, due), "next_attempt_at"), head(with(failed, in), "created_at"))
		}
		found, err := aggregate[oldestEvent](ctx, s.events, union(s.events.Name(), heads))
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	claimed, err := find[oldestEvent](ctx, s.events, isProcessing, options.Find().SetLimit(maxClaimed).
		SetSort(ascending("processing_until", "_id")).SetProjection(headFields))
	return oldestOf(append(list, claimed...), now), err
}

// maxClaimed is how many claimed events are looked at; relays have fewer in flight.
const maxClaimed = 10_000

var isProcessing = bson.M{"status": postrider.StateProcessing}

// head is the pipeline that finds the first event by a field.
func head(match bson.M, field string) bson.A {
	return bson.A{
		bson.M{"$match": match},
		bson.M{"$sort": ascending(field)},
		bson.M{"$limit": 1},
		bson.M{"$project": headFields},
	}
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
