package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// Clean implements relay.Store. It walks the outbox in the order of the ids. Beside published events it deletes discarded
// ones, once the decision to discard them is older than the retention, and with each event its attempts.
// At the end of a walk it does what Tidy does.
func (s *Store) Clean(ctx context.Context, req relay.CleanRequest) (relay.CleanResult, error) {
	const op = "clean"
	if _, err := s.fits(ctx, op); err != nil {
		return relay.CleanResult{}, err
	}
	clean := s.cleanOurs
	if s.theirs != nil {
		clean = s.cleanTheirs
	}
	result, err := clean(ctx, req)
	if err != nil || !result.Done {
		return result, s.fail(op, err)
	}
	return result, s.Tidy(ctx)
}

// Tidy implements relay.Tidier: it lets those keys go on whose holding events are gone or no longer DEAD, and deletes
// what is no longer needed of jobs. Of a collection that somebody else designed it also removes, some at a time, records of documents
// that are gone.
func (s *Store) Tidy(ctx context.Context) error {
	const op = "tidy"
	if _, err := s.fits(ctx, op); err != nil {
		return err
	}
	if err := s.tidyHolds(ctx); err != nil {
		return s.fail(op, err)
	}
	if err := s.tidyJobs(ctx); err != nil || s.theirs == nil {
		return s.fail(op, err)
	}
	return s.fail(op, s.tidyTheirs(ctx))
}

// cleanOurs is Clean for an outbox of our own.
func (s *Store) cleanOurs(ctx context.Context, req relay.CleanRequest) (relay.CleanResult, error) {
	filter, err := behind(bson.M{}, req.After)
	if err != nil {
		return relay.CleanResult{}, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return relay.CleanResult{}, err
	}
	cutoff := now.Add(-req.Retention)
	chunk, err := find[bson.Raw](ctx, s.events, filter, options.Find().SetSort(ascending("_id")).SetLimit(int64(req.Limit)).
		SetProjection(bson.M{"status": 1, "created_at": 1, "published_at": 1}))
	if err != nil {
		return relay.CleanResult{}, err
	}
	result := relay.CleanResult{Last: req.After, Done: len(chunk) < req.Limit}
	if len(chunk) == 0 {
		return result, nil
	}
	last := chunk[len(chunk)-1]
	if id, ok := last.Lookup("_id").ObjectIDOK(); ok {
		result.Last = id.Hex()
	}
	if created, ok := last.Lookup("created_at").TimeOK(); ok && !created.Before(cutoff) {
		result.Done = true // what lies behind is younger
	}
	result.Deleted, err = s.deleteOld(ctx, chunk, cutoff)
	return result, err
}

// deleteOld deletes those events of a chunk that were settled for good before the cutoff.
func (s *Store) deleteOld(ctx context.Context, chunk []bson.Raw, cutoff time.Time) (deleted int, err error) {
	var old, discarded []bson.ObjectID
	for _, raw := range chunk {
		id, _ := raw.Lookup("_id").ObjectIDOK()
		status, _ := raw.Lookup("status").StringValueOK()
		published, ok := raw.Lookup("published_at").TimeOK()
		switch {
		case status == string(postrider.StatePublished) && ok && published.Before(cutoff):
			old = append(old, id)
		case status == string(postrider.StateDiscarded):
			discarded = append(discarded, id)
		}
	}
	if len(discarded) > 0 {
		forgotten, err := s.discardedBefore(ctx, discarded, cutoff)
		if err != nil {
			return 0, err
		}
		old = append(old, forgotten...)
	}
	if len(old) == 0 {
		return 0, nil
	}
	err = s.atomically(ctx, func(ctx context.Context) error {
		result, err := s.events.DeleteMany(ctx, bson.M{"_id": bson.M{"$in": old},
			"status": bson.M{"$in": bson.A{postrider.StatePublished, postrider.StateDiscarded}}})
		if err != nil {
			return err
		}
		deleted = int(result.DeletedCount)
		_, err = s.attempts.DeleteMany(ctx, bson.M{"event": bson.M{"$in": old}})
		return err
	})
	return deleted, err
}

// discardedBefore returns those of the discarded events to which nothing happened since the cutoff.
func (s *Store) discardedBefore(ctx context.Context, ids []bson.ObjectID, cutoff time.Time) (old []bson.ObjectID, err error) {
	type event struct {
		ID bson.ObjectID `bson:"event"`
	}
	recent, err := find[event](ctx, s.attempts, bson.M{"event": bson.M{"$in": ids}, "at": bson.M{"$gte": cutoff}})
	if err != nil {
		return nil, err
	}
	isRecent := map[bson.ObjectID]bool{}
	for _, e := range recent {
		isRecent[e.ID] = true
	}
	for _, id := range ids {
		if !isRecent[id] {
			old = append(old, id)
		}
	}
	return old, nil
}

// behind adds to a filter that the outbox id is higher; empty means any.
func behind(filter bson.M, after string) (bson.M, error) {
	if after == "" {
		return filter, nil
	}
	id, err := parseID(after)
	return with(filter, bson.M{"_id": bson.M{"$gt": id}}), err
}
