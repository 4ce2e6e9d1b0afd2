package mongo

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// A read of their collection walks over what waits in outbox order, some at a time, and computes the shards here: the
// server has no CRC-32. It stops when it has what was asked for, or has something and has looked at walkLimit documents.
const (
	walkStep  = 500
	walkLimit = 10_000
)

// readTheirs is Read for a collection that somebody else designed.
func (s *Store) readTheirs(ctx context.Context, req relay.ReadRequest) ([]relay.Event, error) {
	held, err := s.heldKeys(ctx, req.Shards)
	if err != nil {
		return nil, err
	}
	for _, keys := range held {
		req.SkipKeys = slices.Concat(req.SkipKeys, keys)
	}
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	w := &walk{Store: s, ReadRequest: req, now: now, room: map[int]int{}, chosen: map[int][]any{}}
	for _, shard := range req.Shards {
		w.room[shard] = req.PerShard
	}
	match, err := w.match()
	if err != nil {
		return nil, err
	}
	if err := w.choose(ctx, match, true); err != nil {
		return nil, err
	}
	var ids []any
	for _, shard := range req.Shards {
		ids = append(ids, w.chosen[shard]...)
	}
	rows, err := s.fetchTheirs(ctx, ids, s.theirs.isPending())
	return eventsOfTheirs(rows, now, req.MaxBytes), err
}

// walk is one walk over what waits.
type walk struct {
	*Store
	relay.ReadRequest
	now    time.Time
	room   map[int]int   // how many more events of a shard are wanted
	chosen map[int][]any // their ids, by shard
	n      int
}

// waitingDoc is a document that waits, without what is not needed to choose it.
type waitingDoc struct {
	ID  any    `bson:"_id"`
	Key string `bson:"aggregate_id"`
}

// match selects what waits, is due, and is not in flight.
func (w *walk) match() (bson.M, error) {
	flying := bson.A{}
	for _, text := range w.InFlight {
		id, err := idValue(text)
		if err != nil {
			return nil, err
		}
		flying = append(flying, id)
	}
	t := w.theirs
	return t.belongs(t.isPending(), t.isDue(w.now), bson.M{"_id": bson.M{"$nin": flying}}), nil
}

// stages turn what match selects into waitingDocs, in outbox order, without kinds and keys of which nothing is wanted.
func (w *walk) stages(match bson.M) bson.A {
	unwanted := bson.M{"aggregate_id": bson.M{"$nin": append([]string{}, w.SkipKeys...)}}
	if len(w.Skip) > 0 {
		unwanted["$nor"] = anyKind(w.Skip)
	}
	return bson.A{
		bson.M{"$match": match},
		bson.M{"$sort": w.theirs.order()},
		bson.M{"$project": bson.M{
			"aggregate_id":   expression(w.theirs.AggregateID),
			"aggregate_type": expression(w.theirs.AggregateType),
			"event_type":     expression(w.theirs.EventType),
		}},
		bson.M{"$match": unwanted},
	}
}

// choose walks. With inOrder the later events of a key wait for one that failed.
func (w *walk) choose(ctx context.Context, match bson.M, inOrder bool) error {
	cursor, err := w.events.Aggregate(ctx, w.stages(match), options.Aggregate().SetBatchSize(walkStep))
	if err != nil {
		return err
	}
	defer closeCursor(ctx, cursor)
	for seen := 0; w.n < w.Limit && (w.n == 0 || seen < walkLimit); seen += walkStep {
		step, err := nextSome(ctx, cursor, walkStep)
		if err != nil || len(step) == 0 {
			return err
		}
		wait, err := w.waiting(ctx, step, inOrder)
		if err != nil {
			return err
		}
		for _, d := range step {
			shard := shardOf(d.Key, w.known().Shards)
			if w.n < w.Limit && w.room[shard] > 0 && !wait[idText(d.ID)] {
				w.room[shard]--
				w.n++
				w.chosen[shard] = append(w.chosen[shard], d.ID)
			}
		}
	}
	return nil
}

// closeCursor tells the server to forget a cursor, also when ctx has ended.
func closeCursor(ctx context.Context, cursor *driver.Cursor) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	_ = cursor.Close(ctx) // the server forgets it in time
}

func nextSome(ctx context.Context, cursor *driver.Cursor, limit int) (docs []waitingDoc, err error) {
	for len(docs) < limit && cursor.Next(ctx) {
		var d waitingDoc
		if err := cursor.Decode(&d); err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	return docs, cursor.Err()
}

// waiting returns which documents of a step have to wait: for their own next attempt, where theirs has no field for it, or
// for an earlier event of their key that failed.
func (w *walk) waiting(ctx context.Context, step []waitingDoc, inOrder bool) (map[string]bool, error) {
	ids, keys := bson.A{}, bson.A{}
	for _, d := range step {
		ids = append(ids, d.ID)
		keys = append(keys, d.Key)
	}
	records, err := find[record](ctx, w.failures, bson.M{"state": postrider.StatePending, "$or": bson.A{
		bson.M{"_id": bson.M{"$in": ids}}, bson.M{"aggregate_id": bson.M{"$in": keys}},
	}})
	wait := map[string]bool{}
	if err != nil || len(records) == 0 {
		return wait, err
	}
	if inOrder {
		if wait, err = w.blocked(ctx, step, records); err != nil {
			return nil, err
		}
	}
	for _, r := range records {
		if w.theirs.NextAttemptAt == "" && r.NextAttemptAt.After(w.now) {
			wait[idText(r.ID)] = true
		}
	}
	return wait, nil
}

// blocked returns which documents of a step stand behind one of their key that failed and still waits.
func (w *walk) blocked(ctx context.Context, step []waitingDoc, records []record) (map[string]bool, error) {
	failed, keyOf, ids := map[string]bool{}, map[string]string{}, bson.A{}
	for _, r := range records {
		failed[idText(r.ID)] = true
		keyOf[idText(r.ID)] = r.AggregateID
		ids = append(ids, r.ID)
	}
	for _, d := range step {
		keyOf[idText(d.ID)] = d.Key
		ids = append(ids, d.ID)
	}
	t := w.theirs
	ordered, err := find[waitingDoc](ctx, w.events, t.belongs(bson.M{"_id": bson.M{"$in": ids}}, t.isOpen()),
		options.Find().SetSort(t.order()).SetProjection(bson.M{"_id": 1}))
	blocked, behind := map[string]bool{}, map[string]bool{}
	for _, d := range ordered {
		id := idText(d.ID)
		key := keyOf[id]
		blocked[id] = behind[key]
		behind[key] = behind[key] || failed[id]
	}
	return blocked, err
}

// fetchTheirs reads the documents of the ids for which the condition holds, in the order of the ids.
func (s *Store) fetchTheirs(ctx context.Context, ids []any, condition bson.M) ([]theirRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	match := bson.M{"$match": s.theirs.belongs(bson.M{"_id": bson.M{"$in": ids}}, condition)}
	rows, err := s.theirRows(ctx, append(bson.A{match}, s.theirs.rows()...))
	if err != nil {
		return nil, err
	}
	byID := make(map[string]theirRow, len(rows))
	for _, r := range rows {
		byID[idText(r.ref)] = r
	}
	ordered := make([]theirRow, 0, len(ids))
	for _, id := range ids {
		if r, found := byID[idText(id)]; found {
			ordered = append(ordered, r)
		}
	}
	return ordered, nil
}

// eventsOfTheirs are the events of rows, up to a sum of bytes.
func eventsOfTheirs(rows []theirRow, now time.Time, maxBytes int) (events []relay.Event) {
	for i, size := 0, 0; i < len(rows) && size < maxBytes; i++ {
		e := rows[i].event(idText(rows[i].ref), now, rows[i].malformed)
		size += e.Size()
		events = append(events, e)
	}
	return events
}
