package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// theirOutcome is the outcome of an event in a document of theirs.
type theirOutcome struct {
	relay.Settlement
	id     any
	key    string
	filter bson.M // which document it is, in the state in which alone it may be written
}

// newTheirOutcomes makes settlements fit to be written, by outbox id.
func newTheirOutcomes(settlements []relay.Settlement) (map[string]theirOutcome, error) {
	outcomes := make(map[string]theirOutcome, len(settlements))
	for _, one := range settlements {
		id, err := idValue(one.ID)
		if err != nil {
			return nil, err
		}
		if one, err = fit(one); err != nil {
			return nil, err
		}
		outcomes[one.ID] = theirOutcome{Settlement: one, id: id}
	}
	return outcomes, nil
}

// settleTheirs is Settle for a collection that somebody else designed.
func (s *Store) settleTheirs(ctx context.Context, m relay.Member, settlements []relay.Settlement) (ids []string, err error) {
	outcomes, err := newTheirOutcomes(settlements)
	if err != nil || len(outcomes) == 0 {
		return nil, err
	}
	err = s.atomically(ctx, func(ctx context.Context) error {
		ids = nil
		proven, now, err := s.prove(ctx, m, settlements)
		if err != nil || len(proven) == 0 {
			return err
		}
		var asked []any
		for _, one := range outcomes {
			if proven[one.Lease] {
				asked = append(asked, one.id)
			}
		}
		keys, err := s.keysOfTheirs(ctx, asked, s.theirs.isPending())
		if err != nil {
			return err
		}
		var list []theirOutcome
		for id, key := range keys {
			one := outcomes[id]
			if one.Lease.Shard == shardOf(key, s.known().Shards) {
				one.key, one.filter = key, s.theirs.belongs(bson.M{"_id": one.id}, s.theirs.isPending())
				list = append(list, one)
			}
		}
		ids, err = s.writeTheirs(ctx, m, list, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// keysOfTheirs returns the keys of the documents for which the condition holds, by outbox id.
func (s *Store) keysOfTheirs(ctx context.Context, ids []any, condition bson.M) (map[string]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	docs, err := aggregate[waitingDoc](ctx, s.events, bson.A{
		bson.M{"$match": s.theirs.belongs(bson.M{"_id": bson.M{"$in": ids}}, condition)},
		bson.M{"$project": bson.M{"aggregate_id": expression(s.theirs.AggregateID)}},
	})
	keys := make(map[string]string, len(docs))
	for _, d := range docs {
		keys[idText(d.ID)] = d.Key
	}
	return keys, err
}

// writeTheirs writes outcomes to documents of theirs and to our records. It returns the ids.
func (s *Store) writeTheirs(ctx context.Context, m relay.Member, outcomes []theirOutcome, now time.Time) ([]string, error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	var ids []string
	var writes, records []driver.WriteModel
	var failures []bson.M
	var holds []hold
	published := bson.A{}
	for _, one := range outcomes {
		ids = append(ids, one.ID)
		writes = append(writes, s.writeTheir(one, now))
		if one.State == postrider.StatePublished {
			published = append(published, one.id)
			continue
		}
		records = append(records, driver.NewReplaceOneModel().SetFilter(bson.M{"_id": one.id}).SetReplacement(one.record(now)).SetUpsert(true))
		if !one.Held {
			failures = append(failures, attemptOf(one.id, one.Settlement, m, now))
		}
		if one.HoldsKey {
			holds = append(holds, hold{one.id, one.key, shardOf(one.key, s.known().Shards), now})
		}
	}
	if err := s.hold(ctx, holds); err != nil {
		return nil, err
	}
	if err := writeEach(ctx, s.events, writes); err != nil {
		return nil, err
	}
	if len(published) > 0 {
		if err := s.forget(ctx, published, s.config.DeletePublished); err != nil {
			return nil, err
		}
	}
	if len(records) > 0 {
		if _, err := s.failures.BulkWrite(ctx, records, options.BulkWrite().SetOrdered(false)); err != nil {
			return nil, err
		}
	}
	if len(failures) > 0 {
		if _, err := s.attempts.InsertMany(ctx, failures); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// forget deletes what is recorded about events, and what is kept of their attempts if they are gone themselves.
func (s *Store) forget(ctx context.Context, ids bson.A, gone bool) error {
	if _, err := s.failures.DeleteMany(ctx, bson.M{"_id": bson.M{"$in": ids}}); err != nil || !gone {
		return err
	}
	_, err := s.attempts.DeleteMany(ctx, bson.M{"event": bson.M{"$in": ids}})
	return err
}

// writeTheir is what an outcome does to a document of theirs.
func (s *Store) writeTheir(one theirOutcome, now time.Time) driver.WriteModel {
	t := s.theirs
	if one.State == postrider.StatePublished && s.config.DeletePublished {
		return driver.NewDeleteOneModel().SetFilter(one.filter)
	}
	set := t.unclaim()
	fields := map[string]any{t.UpdatedAt: now, t.RetryCount: one.RetryCount, t.LastError: one.Error}
	switch one.State {
	case postrider.StatePublished:
		fields = map[string]any{
			t.UpdatedAt: now, t.Status: t.Words.Published, t.PublishedAt: now, t.PublishedTo: one.PublishedTo, t.LastError: nil,
		}
	case postrider.StateDead:
		fields[t.Status] = t.Words.Dead
	default:
		fields[t.Status] = t.Words.Pending[0]
		fields[t.NextAttemptAt] = now.Add(one.RetryAfter)
	}
	t.put(set, fields)
	return driver.NewUpdateOneModel().SetFilter(one.filter).SetUpdate(bson.M{"$set": set})
}

// unclaim is what takes a claim off a document.
func (t *theirs) unclaim() bson.M {
	if t.ClaimToken == "" {
		return bson.M{}
	}
	return bson.M{t.ClaimToken: nil, t.ProcessingUntil: nil}
}

// record is what is recorded about an event that failed.
func (one theirOutcome) record(now time.Time) record {
	return record{ID: one.id, AggregateID: one.key, State: one.State, TheirState: one.State, RetryCount: one.RetryCount,
		NextAttemptAt: now.Add(one.RetryAfter), LastError: one.Error}
}
