package mongo

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// Read implements relay.Store. First it chooses the events without their payloads, then it fetches those that it chose.
// Both steps see the outbox at one moment.
func (s *Store) Read(ctx context.Context, req relay.ReadRequest) ([]relay.Event, error) {
	const op = "read"
	if _, err := s.fits(ctx, op); err != nil {
		return nil, err
	}
	var events []relay.Event
	if s.theirs != nil {
		err := s.inSnapshot(ctx, func(ctx context.Context) (err error) {
			events, err = s.readTheirs(ctx, req)
			return err
		})
		return events, s.fail(op, err)
	}
	c, err := s.choice(req)
	if err != nil {
		return nil, s.fail(op, err)
	}
	err = s.inSnapshot(ctx, func(ctx context.Context) error {
		if err := s.lookAround(ctx, c); err != nil {
			return err
		}
		chosen, err := s.choose(ctx, c)
		if err != nil || len(chosen) == 0 {
			return err
		}
		events, err = s.fetch(ctx, c, chosen)
		return err
	})
	return events, s.fail(op, err)
}

// choice says which events a read chooses from.
type choice struct {
	relay.ReadRequest
	inFlight map[int][]bson.ObjectID // by shard
	rest     []bson.ObjectID         // in flight, of unknown shards
	skipKeys map[int][]string        // by shard

	heldKeys  map[int][]string // by shard
	now       time.Time        // the server's
	anyFailed bool             // some key may wait for an event that failed
}

func (s *Store) choice(req relay.ReadRequest) (*choice, error) {
	c := &choice{ReadRequest: req, skipKeys: map[int][]string{}}
	for _, key := range req.SkipKeys {
		shard := shardOf(key, s.known().Shards)
		c.skipKeys[shard] = append(c.skipKeys[shard], key)
	}
	var err error
	c.inFlight, c.rest, err = s.flight.split(req.InFlight)
	return c, err
}

// lookAround asks for the keys that are held, for the server's time, and whether anything has failed: while nothing has, no
// event needs to be checked for an earlier failed one of its key.
func (s *Store) lookAround(ctx context.Context, c *choice) error {
	held, err := s.heldKeys(ctx, c.Shards)
	if err != nil {
		return err
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	blocking, err := find[bson.Raw](ctx, s.events, with(failed, bson.M{"shard": bson.M{"$in": c.Shards}}),
		options.Find().SetLimit(1).SetProjection(bson.M{"_id": 1}))
	c.heldKeys, c.now, c.anyFailed = held, now, len(blocking) > 0
	return err
}

// candidate is an event that may be chosen.
type candidate struct {
	ID    bson.ObjectID `bson:"_id"`
	Shard int           `bson:"shard"`
	Size  int           `bson:"size"` // of its payload, in bytes
}

// shardsPerQuery bounds the parts of a union, since the time to plan it can grow with their square. Where much waits, the
// first shards have all that is wanted.
const shardsPerQuery = 8

// choose returns the ids of the events to read, in the order in which they are to be served.
func (s *Store) choose(ctx context.Context, c *choice) (ids []bson.ObjectID, err error) {
	size := 0
	for shards := range slices.Chunk(c.Shards, shardsPerQuery) {
		if len(ids) == c.Limit {
			break
		}
		parts := make([]bson.A, 0, 2*len(shards))
		for _, shard := range shards {
			parts = append(parts, s.readyIn(c, shard), s.waitingIn(c, shard))
		}
		found, err := aggregate[candidate](ctx, s.events, union(s.events.Name(), parts))
		if err != nil {
			return nil, err
		}
		byShard := map[int][]candidate{}
		for _, one := range found {
			byShard[one.Shard] = append(byShard[one.Shard], one)
		}
		for _, shard := range shards {
			some := byShard[shard]
			slices.SortFunc(some, func(a, b candidate) int { return cmp.Compare(a.ID.Hex(), b.ID.Hex()) })
			for _, one := range some[:min(len(some), c.PerShard)] {
				if len(ids) == c.Limit || len(ids) > 0 && size >= c.MaxBytes {
					return ids, nil
				}
				ids = append(ids, one.ID)
				size += one.Size
			}
		}
	}
	return ids, nil
}

// readyIn is the pipeline that chooses among what may be sent at once, in outbox order.
func (s *Store) readyIn(c *choice, shard int) bson.A {
	return s.chooseIn(c, shard, ready, bson.M{}, ascending("_id"))
}

// waitingIn is the pipeline that chooses among what has fallen due, in the order in which it did.
func (s *Store) waitingIn(c *choice, shard int) bson.A {
	due := bson.M{"next_attempt_at": bson.M{"$lte": c.now}}
	return s.chooseIn(c, shard, waiting, due, ascending("next_attempt_at", "_id"))
}

func (s *Store) chooseIn(c *choice, shard int, condition, more bson.M, order bson.D) bson.A {
	flying := append(append([]bson.ObjectID{}, c.inFlight[shard]...), c.rest...) // never nil, which would be null
	match := with(with(condition, more), bson.M{"shard": shard, "_id": bson.M{"$type": "objectId", "$nin": flying}})
	if keys := slices.Concat(c.skipKeys[shard], c.heldKeys[shard]); len(keys) > 0 {
		match["aggregate_id"] = bson.M{"$nin": keys}
	}
	if len(c.Skip) > 0 {
		match["$nor"] = anyKind(c.Skip)
	}
	pipeline := bson.A{bson.M{"$match": match}, bson.M{"$sort": order}}
	if c.anyFailed {
		pipeline = append(pipeline, s.blockers(), bson.M{"$match": bson.M{"blockers": bson.M{"$size": 0}}})
	}
	return append(pipeline,
		bson.M{"$limit": c.PerShard},
		bson.M{"$project": bson.M{"shard": 1, "size": payloadSize}})
}

// payloadSize is 0 for a payload that is neither a string nor binary data.
var payloadSize = bson.M{"$cond": bson.A{
	bson.M{"$in": bson.A{bson.M{"$type": "$payload"}, bson.A{"string", "binData"}}},
	bson.M{"$binarySize": "$payload"},
	0,
}}

// blockers is the stage that finds an earlier event of the same key that failed and is to be tried again, other than a
// higher version of the same aggregate.
func (s *Store) blockers() bson.M {
	higher := bson.M{"$and": bson.A{
		bson.M{"$eq": bson.A{"$aggregate_type", "$$type"}},
		bson.M{"$gt": bson.A{"$$version", nil}},
		bson.M{"$gt": bson.A{"$aggregate_version", "$$version"}},
	}}
	return bson.M{"$lookup": bson.M{
		"from":         s.events.Name(),
		"localField":   "aggregate_id",
		"foreignField": "aggregate_id",
		"let":          bson.M{"id": "$_id", "type": "$aggregate_type", "version": bson.M{"$ifNull": bson.A{"$aggregate_version", nil}}},
		"pipeline": bson.A{
			bson.M{"$match": with(failed, bson.M{"$expr": bson.M{"$and": bson.A{
				bson.M{"$lt": bson.A{"$_id", "$$id"}}, bson.M{"$not": bson.A{higher}},
			}}})},
			bson.M{"$limit": 1},
			bson.M{"$project": bson.M{"_id": 1}},
		},
		"as": "blockers",
	}}
}

// union runs pipelines over one collection after another.
func union(collection string, parts []bson.A) bson.A {
	pipeline := parts[0]
	for _, part := range parts[1:] {
		pipeline = append(pipeline, bson.M{"$unionWith": bson.M{"coll": collection, "pipeline": part}})
	}
	return pipeline
}

func anyKind(kinds []relay.Kind) bson.A {
	either := make(bson.A, len(kinds))
	for i, k := range kinds {
		either[i] = bson.M{"aggregate_type": k.AggregateType, "event_type": k.EventType}
	}
	return either
}

// fetch reads the chosen events, in their order, up to the sum of bytes.
func (s *Store) fetch(ctx context.Context, c *choice, ids []bson.ObjectID) ([]relay.Event, error) {
	cursor, err := s.events.Find(ctx, bson.M{"_id": bson.M{"$in": ids}, "status": postrider.StatePending})
	if err != nil {
		return nil, err
	}
	found := make(map[string]relay.Event, len(ids))
	for cursor.Next(ctx) {
		e := event(cursor.Current, c.now)
		found[e.ID] = e
	}
	if err := cursor.Err(); err != nil {
		return nil, err
	}
	events := make([]relay.Event, 0, len(ids))
	var read []bson.ObjectID
	for size, i := 0, 0; i < len(ids) && size < c.MaxBytes; i++ {
		e, there := found[ids[i].Hex()]
		if !there {
			continue // without a snapshot it may have left PENDING meanwhile
		}
		size += e.Size()
		events = append(events, e)
		read = append(read, ids[i])
	}
	s.flight.remember(events, read)
	return events, s.tellGaps(ctx, events)
}
