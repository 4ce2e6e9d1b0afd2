package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// cleanTheirs is Clean for a collection that somebody else designed.
func (s *Store) cleanTheirs(ctx context.Context, req relay.CleanRequest) (relay.CleanResult, error) {
	behind := bson.M{}
	if req.After != "" {
		id, err := idValue(req.After)
		if err != nil {
			return relay.CleanResult{}, err
		}
		behind = bson.M{"_id": bson.M{"$gt": id}}
	}
	now, err := s.now(ctx)
	if err != nil {
		return relay.CleanResult{}, err
	}
	chunk, err := find[waitingDoc](ctx, s.events, s.theirs.belongs(behind),
		options.Find().SetSort(ascending("_id")).SetLimit(int64(req.Limit)).SetProjection(bson.M{"_id": 1}))
	if err != nil {
		return relay.CleanResult{}, err
	}
	ids := make([]any, len(chunk))
	for i, d := range chunk {
		ids[i] = d.ID
	}
	rows, err := s.fetchTheirs(ctx, ids, s.theirs.has(""))
	if err != nil {
		return relay.CleanResult{}, err
	}
	cutoff := now.Add(-req.Retention)
	result := relay.CleanResult{Last: req.After, Done: len(chunk) < req.Limit}
	if len(chunk) > 0 {
		result.Last = idText(ids[len(ids)-1])
	}
	if n := len(rows); n > 0 && !rows[n-1].CreatedAt.IsZero() && !rows[n-1].CreatedAt.Before(cutoff) {
		result.Done = true // what lies behind is younger
	}
	result.Deleted, err = s.deleteTheirs(ctx, rows, cutoff)
	return result, err
}

// deleteTheirs deletes those of the rows' documents that were settled for good before the cutoff.
func (s *Store) deleteTheirs(ctx context.Context, rows []theirRow, cutoff time.Time) (deleted int, err error) {
	published, discarded := bson.A{}, bson.A{}
	for _, r := range rows {
		at := r.CreatedAt
		if r.PublishedAt != nil {
			at = *r.PublishedAt
		}
		switch {
		case r.Status == postrider.StatePublished && !at.IsZero() && at.Before(cutoff):
			published = append(published, r.ref)
		case r.Status == postrider.StateDiscarded:
			discarded = append(discarded, r.ref)
		}
	}
	var young bson.A
	err = s.attempts.Distinct(ctx, "event", bson.M{"event": bson.M{"$in": discarded}, "at": bson.M{"$gte": cutoff}}).Decode(&young)
	if err != nil {
		return 0, err
	}
	t := s.theirs
	for state, ids := range map[postrider.State]bson.A{postrider.StatePublished: published, postrider.StateDiscarded: without(discarded, young)} {
		if len(ids) == 0 {
			continue
		}
		err := s.atomically(ctx, func(ctx context.Context) error {
			result, err := s.events.DeleteMany(ctx, t.belongs(bson.M{"_id": bson.M{"$in": ids}}, t.has(state)))
			if err != nil {
				return err
			}
			deleted += int(result.DeletedCount)
			return s.forget(ctx, ids, true)
		})
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// without returns the ids that are not among others.
func without(ids, others bson.A) (left bson.A) {
	among := map[string]bool{}
	for _, id := range others {
		among[idText(id)] = true
	}
	for _, id := range ids {
		if !among[idText(id)] {
			left = append(left, id)
		}
	}
	return left
}

// tidyTheirs removes, some at a time, records whose document is gone.
func (s *Store) tidyTheirs(ctx context.Context) error {
	orphans, err := aggregate[waitingDoc](ctx, s.failures, bson.A{
		bson.M{"$lookup": bson.M{"from": s.events.Name(), "localField": "_id", "foreignField": "_id", "as": "theirs"}},
		bson.M{"$match": bson.M{"theirs": bson.M{"$size": 0}}},
		bson.M{"$limit": oldestLooked},
		bson.M{"$project": bson.M{"_id": 1}},
	})
	if err != nil || len(orphans) == 0 {
		return err
	}
	gone := bson.A{}
	for _, d := range orphans {
		gone = append(gone, d.ID)
	}
	return s.forget(ctx, gone, true)
}
