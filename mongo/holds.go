package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
)

// hold is a document of the collection of holds: a DEAD event that keeps its key waiting. While there is one for a key, no
// event of the key is read.
type hold struct {
	ID          any       `bson:"_id"` // that of the event
	AggregateID string    `bson:"aggregate_id"`
	Shard       int       `bson:"shard"`
	HeldAt      time.Time `bson:"held_at"`
}

// hold writes holds. It comes before the events become DEAD: where the server has no transactions, a settle that ends in
// between leaves a hold without a DEAD event, and the key waits until Tidy has found it. The other way round the key would go
// on past a dead letter.
func (s *Store) hold(ctx context.Context, holds []hold) error {
	if len(holds) == 0 {
		return nil
	}
	writes := make([]driver.WriteModel, len(holds))
	for i, h := range holds {
		writes[i] = driver.NewReplaceOneModel().SetFilter(bson.M{"_id": h.ID}).SetReplacement(h).SetUpsert(true)
	}
	_, err := s.holds.BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false))
	return err
}

// release deletes the holds of events. It comes after the events have left DEAD, so that a read without transactions, which
// asks for the holds before it chooses events, finds the redriven ones as soon as it finds the later ones of their key.
func (s *Store) release(ctx context.Context, events bson.A) error {
	_, err := s.holds.DeleteMany(ctx, bson.M{"_id": bson.M{"$in": events}})
	return err
}

// heldKeys returns the keys that wait, by shard.
func (s *Store) heldKeys(ctx context.Context, shards []int) (map[int][]string, error) {
	type held struct {
		Key struct {
			Shard       int    `bson:"shard"`
			AggregateID string `bson:"aggregate_id"`
		} `bson:"_id"`
	}
	list, err := aggregate[held](ctx, s.holds, bson.A{
		bson.M{"$match": bson.M{"shard": bson.M{"$in": shards}}},
		bson.M{"$group": bson.M{"_id": bson.D{{Key: "shard", Value: "$shard"}, {Key: "aggregate_id", Value: "$aggregate_id"}}}},
	})
	keys := map[int][]string{}
	for _, h := range list {
		keys[h.Key.Shard] = append(keys[h.Key.Shard], h.Key.AggregateID)
	}
	return keys, err
}

// countHeldKeys counts the keys that wait.
func (s *Store) countHeldKeys(ctx context.Context) (int64, error) {
	type count struct {
		Keys int64 `bson:"keys"`
	}
	list, err := aggregate[count](ctx, s.holds, bson.A{bson.M{"$group": bson.M{"_id": "$aggregate_id"}}, bson.M{"$count": "keys"}})
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0].Keys, nil
}

// holding returns which of the events hold their keys, by outbox id.
func (s *Store) holding(ctx context.Context, events bson.A) (map[string]bool, error) {
	if len(events) == 0 {
		return nil, nil
	}
	found, err := find[hold](ctx, s.holds, bson.M{"_id": bson.M{"$in": events}}, options.Find().SetProjection(bson.M{"_id": 1}))
	holds := make(map[string]bool, len(found))
	for _, h := range found {
		holds[idText(h.ID)] = true
	}
	return holds, err
}

// tellHolds sets Holds of rows.
func (s *Store) tellHolds(ctx context.Context, rows []operator.Row) error {
	dead := bson.A{}
	for _, r := range rows {
		if r.Status != postrider.StateDead {
			continue
		}
		id, err := s.parse(r.ID)
		if err != nil {
			return err
		}
		dead = append(dead, id)
	}
	holds, err := s.holding(ctx, dead)
	for i, r := range rows {
		rows[i].Holds = holds[r.ID]
	}
	return err
}

// settledWithin is longer than a settle takes: a hold that is older, and whose event is not DEAD, has no settle under way
// that will make it so.
const settledWithin = time.Minute

// tidyHolds deletes the holds whose events are gone or no longer DEAD: somebody else has changed or deleted them, or a
// settle or an action ended halfway on a server without transactions. A hold that is written again meanwhile is young, and stays.
func (s *Store) tidyHolds(ctx context.Context) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	old := bson.M{"held_at": bson.M{"$lte": now.Add(-settledWithin)}}
	cursor, err := s.holds.Find(ctx, old, options.Find().SetProjection(bson.M{"_id": 1}).SetBatchSize(actionChunk))
	if err != nil {
		return err
	}
	defer closeCursor(ctx, cursor)
	for {
		some, err := nextSome(ctx, cursor, actionChunk)
		if err != nil || len(some) == 0 {
			return err
		}
		ids := bson.A(idsOf(some))
		dead, err := s.deadAmong(ctx, ids)
		if err != nil {
			return err
		}
		if stale := without(ids, dead); len(stale) > 0 {
			if _, err := s.holds.DeleteMany(ctx, with(old, bson.M{"_id": bson.M{"$in": stale}})); err != nil {
				return err
			}
		}
	}
}

// deadAmong returns those of the events that are DEAD.
func (s *Store) deadAmong(ctx context.Context, events bson.A) (bson.A, error) {
	these := bson.M{"_id": bson.M{"$in": events}}
	if s.theirs == nil {
		found, err := find[waitingDoc](ctx, s.events, with(dead, these), options.Find().SetProjection(bson.M{"_id": 1}))
		return idsOf(found), err
	}
	pipeline := append(bson.A{bson.M{"$match": s.theirs.belongs(these, s.theirs.has(postrider.StateDead))}}, s.theirs.rows()...)
	found, err := aggregate[waitingDoc](ctx, s.events, append(pipeline, bson.M{"$match": dead}, bson.M{"$project": bson.M{"_id": "$ref"}}))
	return idsOf(found), err
}
