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

// listTheirs returns the documents of theirs that a filter selects, in the order of their _id. It looks through all
// documents that can be in the state of the filter.
func (s *Store) listTheirs(ctx context.Context, f operator.Filter, limit int, more ...bson.M) ([]theirRow, error) {
	pipeline, err := s.selectTheirs(f, ascending("_id"), limit, more...)
	if err != nil {
		return nil, err
	}
	return s.theirRows(ctx, pipeline)
}

// selectTheirs is a pipeline that yields the rows of those documents of theirs that a filter selects, in an order. A limit of 0
// means none.
func (s *Store) selectTheirs(f operator.Filter, order bson.D, limit int, more ...bson.M) (bson.A, error) {
	before, after, err := s.filterTheirs(f, more)
	if err != nil {
		return nil, err
	}
	pipeline := append(bson.A{bson.M{"$match": before}, bson.M{"$sort": order}}, s.theirs.rows()...)
	pipeline = append(append(pipeline, bson.M{"$match": after}), s.lastDiedAt("ref", f.Sink)...)
	return append(pipeline, atMost(limit)...), nil
}

// filterTheirs is a filter in two parts: what is asked of their documents, and what of the rows made of them.
func (s *Store) filterTheirs(f operator.Filter, more []bson.M) (before, after bson.M, err error) {
	conditions := append([]bson.M{s.theirs.has(f.State)}, more...)
	if f.After != "" {
		id, err := idValue(f.After)
		if err != nil {
			return nil, nil, err
		}
		conditions = append(conditions, bson.M{"_id": bson.M{"$gt": id}})
	}
	after, err = filterOf(operator.Filter{AggregateType: f.AggregateType, AggregateID: f.AggregateID, EventType: f.EventType,
		State: f.State, ErrorContains: f.ErrorContains})
	if len(f.IDs) > 0 {
		outbox, event := bson.A{}, bson.A{}
		for _, text := range f.IDs {
			event = append(event, text)
			if id, err := idValue(text); err == nil {
				outbox = append(outbox, id)
			}
		}
		if s.theirs.EventID == "_id" { // so that the index on _id serves
			conditions = append(conditions, bson.M{"_id": bson.M{"$in": append(outbox, event...)}})
		} else {
			after["$or"] = bson.A{bson.M{"ref": bson.M{"$in": outbox}}, bson.M{"event_id": bson.M{"$in": event}}}
		}
	}
	return s.theirs.belongs(conditions...), after, err
}

// actOnTheirs is actOnce for a collection that somebody else designed.
func (s *Store) actOnTheirs(ctx context.Context, do action, f operator.Filter, a operator.Action, limit int) (n int, last string, err error) {
	if f.State != "" && f.State != do.state {
		return 0, "", nil
	}
	f.State = do.state
	err = s.atomically(ctx, func(ctx context.Context) error {
		n, last = 0, ""
		var only []bson.M
		if do.state == postrider.StatePending {
			failed, err := s.failedBehind(ctx, f.After, limit)
			if err != nil || len(failed) == 0 {
				return err
			}
			last = idText(failed[len(failed)-1])
			only = append(only, bson.M{"_id": bson.M{"$in": failed}})
		}
		rows, err := s.listTheirs(ctx, f, limit, only...)
		if err != nil || len(rows) == 0 {
			return err
		}
		now, err := s.now(ctx)
		if err != nil {
			return err
		}
		if only == nil {
			last = idText(rows[len(rows)-1].ref)
		}
		n = len(rows)
		return s.changeTheirs(ctx, do, a, rows, now)
	})
	return n, last, err
}

// theirChange is what an action does to an event of theirs.
type theirChange struct {
	set    bson.M  // fields of the document
	record *record // what is recorded afterwards; nil for nothing
}

// changeTheirs changes documents that are still in the state in which they were read.
func (s *Store) changeTheirs(ctx context.Context, do action, a operator.Action, rows []theirRow, now time.Time) error {
	if len(rows) == 0 {
		return nil
	}
	var writes, records []driver.WriteModel
	ids := bson.A{}
	for _, r := range rows {
		change := do.their(s.theirs, r, now)
		if len(change.set) > 0 {
			filter := s.theirs.belongs(bson.M{"_id": r.ref}, s.theirs.has(r.Status))
			writes = append(writes, driver.NewUpdateOneModel().SetFilter(filter).SetUpdate(bson.M{"$set": change.set}))
		}
		if its := (bson.M{"_id": r.ref}); change.record != nil {
			records = append(records, driver.NewReplaceOneModel().SetFilter(its).SetReplacement(change.record).SetUpsert(true))
		} else {
			records = append(records, driver.NewDeleteOneModel().SetFilter(its))
		}
		ids = append(ids, r.ref)
	}
	if len(writes) > 0 {
		if err := writeEach(ctx, s.events, writes); err != nil {
			return err
		}
	}
	if _, err := s.failures.BulkWrite(ctx, records, options.BulkWrite().SetOrdered(false)); err != nil {
		return err
	}
	return s.keepAction(ctx, do, a, ids, now)
}

// failedBehind returns the ids of events that failed and wait, in their order, behind an id.
func (s *Store) failedBehind(ctx context.Context, after string, limit int) (ids bson.A, err error) {
	condition := bson.M{"state": postrider.StatePending}
	if after != "" {
		id, err := idValue(after)
		if err != nil {
			return nil, err
		}
		condition["_id"] = bson.M{"$gt": id}
	}
	found, err := find[record](ctx, s.failures, condition, options.Find().SetSort(ascending("_id")).SetLimit(int64(limit)))
	for _, r := range found {
		ids = append(ids, r.ID)
	}
	return ids, err
}

// sendAgain makes a dead event PENDING with its attempts restarted.
func (t *theirs) sendAgain(_ theirRow, now time.Time) theirChange {
	set := t.unclaim()
	t.put(set, map[string]any{
		t.Status: t.Words.Pending[0], t.RetryCount: 0, t.NextAttemptAt: now, t.LastError: nil, t.UpdatedAt: now,
	})
	return theirChange{set: set}
}

// discard makes a dead event DISCARDED. Where both have one word, our record alone tells.
func (t *theirs) discard(r theirRow, now time.Time) theirChange {
	set := bson.M{}
	t.put(set, map[string]any{t.Status: t.Words.Discarded, t.UpdatedAt: now})
	kept := r.record(now)
	kept.State, kept.TheirState = postrider.StateDiscarded, postrider.StateDiscarded
	if t.Words.Discarded == t.Words.Dead {
		kept.TheirState = postrider.StateDead
	}
	return theirChange{set, kept}
}

// tryNow makes an event that failed due at once.
func (t *theirs) tryNow(r theirRow, now time.Time) theirChange {
	set := bson.M{}
	t.put(set, map[string]any{t.NextAttemptAt: now})
	return theirChange{set, r.record(now)}
}

// put sets those of the fields that the mapping names.
func (t *theirs) put(set bson.M, fields map[string]any) {
	for field, value := range fields {
		if field != "" {
			set[field] = value
		}
	}
}

// record is what is recorded about an event as it was read, with another time of its next attempt.
func (r theirRow) record(next time.Time) *record {
	return &record{ID: r.ref, AggregateID: r.AggregateID, State: r.Status, TheirState: r.Status, RetryCount: r.RetryCount,
		NextAttemptAt: next, LastError: r.LastError}
}
