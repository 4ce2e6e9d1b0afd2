package mongo

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/text"
	"github.com/postrider/postrider/relay"
)

// settlement is a relay.Settlement that is fit to be written.
type settlement struct {
	relay.Settlement
	id bson.ObjectID
}

// settled is an event that a settle writes; of its document only what legible reads is there.
type settled struct {
	document
	outcome settlement
	filter  bson.M // which document it is, in the state in which alone it may be written
}

// isPending is the condition under which the owner of a lease writes an event.
var isPending = bson.M{"status": postrider.StatePending}

// Settle implements relay.Store. All outcomes are written in one transaction, or none.
func (s *Store) Settle(ctx context.Context, m relay.Member, settlements []relay.Settlement) ([]string, error) {
	const op = "settle"
	if _, err := s.fits(ctx, op); err != nil {
		return nil, err
	}
	if s.theirs != nil {
		ids, err := s.settleTheirs(ctx, m, settlements)
		return ids, s.fail(op, err)
	}
	outcomes := make(map[bson.ObjectID]settlement, len(settlements))
	for _, one := range settlements {
		outcome, err := newSettlement(one)
		if err != nil {
			return nil, s.fail(op, err)
		}
		outcomes[outcome.id] = outcome
	}
	if len(outcomes) == 0 {
		return nil, nil
	}
	var ids []string
	err := s.atomically(ctx, func(ctx context.Context) error {
		proven, now, err := s.prove(ctx, m, settlements)
		if err != nil || len(proven) == 0 {
			ids = nil
			return err
		}
		ids, err = s.settle(ctx, m, outcomes, proven, now)
		return err
	})
	if err != nil {
		return nil, s.fail(op, err)
	}
	return ids, nil
}

// prove returns those leases of the settlements that the member holds, and the server's time. It writes to their
// documents, so that a takeover at the same time and the transaction of ctx cannot both commit.
func (s *Store) prove(ctx context.Context, m relay.Member, settlements []relay.Settlement) (map[relay.Lease]bool, time.Time, error) {
	asked := map[relay.Lease]bool{}
	var leases []relay.Lease
	for _, one := range settlements {
		if !asked[one.Lease] {
			asked[one.Lease] = true
			leases = append(leases, one.Lease)
		}
	}
	held := with(owned(m), anyLease(leases, 0))
	_, err := s.shards.UpdateMany(ctx, held, bson.A{bson.M{"$set": bson.M{"settled_at": "$$NOW"}}})
	if err != nil {
		return nil, time.Time{}, err
	}
	docs, err := find[lease](ctx, s.shards, held)
	proven := make(map[relay.Lease]bool, len(docs))
	var now time.Time
	for _, l := range docs {
		proven[l.lease()] = true
		now = l.SettledAt
	}
	return proven, now, err
}

// settle writes the outcomes of those events that are PENDING and in a shard whose lease is proven.
func (s *Store) settle(ctx context.Context, m relay.Member, outcomes map[bson.ObjectID]settlement, proven map[relay.Lease]bool, now time.Time) ([]string, error) {
	ids := make([]bson.ObjectID, 0, len(outcomes))
	for id, outcome := range outcomes {
		if proven[outcome.Lease] {
			ids = append(ids, id)
		}
	}
	found, err := s.settleable(ctx, ids, isPending)
	if err != nil {
		return nil, err
	}
	var events []settled
	for _, d := range found {
		if outcome := outcomes[d.ID]; outcome.Lease.Shard == d.Shard {
			events = append(events, settled{d, outcome, with(isPending, bson.M{"_id": d.ID})})
		}
	}
	return s.writeOutcomes(ctx, m, events, now)
}

// writeOutcomes writes the outcomes of events, and what is kept of them elsewhere. It returns the ids.
func (s *Store) writeOutcomes(ctx context.Context, m relay.Member, events []settled, now time.Time) ([]string, error) {
	if len(events) == 0 {
		return nil, nil
	}
	var published []bson.ObjectID
	var failures []bson.M
	var holds []hold
	var writes []driver.WriteModel
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = e.ID.Hex()
		if e.outcome.State == postrider.StatePublished {
			published = append(published, e.ID)
		} else if !e.outcome.Held {
			failures = append(failures, attemptOf(e.ID, e.outcome.Settlement, m, now))
		}
		if e.outcome.HoldsKey {
			holds = append(holds, hold{e.ID, e.AggregateID, e.Shard, now})
		}
		writes = append(writes, s.write(e, now))
	}
	if err := s.hold(ctx, holds); err != nil {
		return nil, err
	}
	if err := writeEach(ctx, s.events, writes); err != nil {
		return nil, err
	}
	if s.config.DeletePublished && len(published) > 0 {
		if _, err := s.attempts.DeleteMany(ctx, bson.M{"event": bson.M{"$in": published}}); err != nil {
			return nil, err
		}
	}
	if len(failures) > 0 {
		if _, err := s.attempts.InsertMany(ctx, failures); err != nil {
			return nil, err
		}
	}
	return ids, s.haveLeft(ctx, events, now)
}

// writeEach runs writes of one document each, all of which must find theirs.
func writeEach(ctx context.Context, c *driver.Collection, writes []driver.WriteModel) error {
	result, err := c.BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false))
	if err != nil {
		return err
	}
	if missing := int64(len(writes)) - result.MatchedCount - result.DeletedCount; missing > 0 {
		return fmt.Errorf("%d of %d events changed their state in the meantime", missing, len(writes))
	}
	return nil
}

// settleable reads which events may be written.
func (s *Store) settleable(ctx context.Context, ids []bson.ObjectID, condition bson.M) (events []document, err error) {
	found, err := find[bson.Raw](ctx, s.events, with(condition, bson.M{"_id": bson.M{"$in": ids}}),
		options.Find().SetProjection(bson.M{"shard": 1, "aggregate_type": 1, "aggregate_id": 1, "aggregate_version": 1}))
	for _, raw := range found {
		events = append(events, legible(raw))
	}
	return events, err
}

// write is what the outcome does to the event's document.
func (s *Store) write(e settled, now time.Time) driver.WriteModel {
	filter := e.filter
	switch {
	case e.outcome.State == postrider.StatePublished && s.config.DeletePublished:
		return driver.NewDeleteOneModel().SetFilter(filter)
	case e.outcome.State == postrider.StatePublished:
		return driver.NewUpdateOneModel().SetFilter(filter).SetUpdate(bson.M{
			"$set":   bson.M{"status": postrider.StatePublished, "published_at": now, "published_to": e.outcome.PublishedTo},
			"$unset": bson.M{"last_error": "", "claim_token": "", "processing_until": ""},
		})
	default:
		return driver.NewUpdateOneModel().SetFilter(filter).SetUpdate(bson.M{"$set": bson.M{
			"status": e.outcome.State, "retry_count": e.outcome.RetryCount, "last_error": e.outcome.Error,
			"waiting": true, "next_attempt_at": now.Add(e.outcome.RetryAfter),
		}, "$unset": bson.M{"claim_token": "", "processing_until": ""}})
	}
}

// attemptOf is the document that keeps a failed attempt.
func attemptOf(event any, outcome relay.Settlement, m relay.Member, now time.Time) bson.M {
	what := "retry"
	if outcome.State == postrider.StateDead {
		what = "dead"
	}
	attempt := bson.M{"event": event, "at": now, "outcome": what, "error": outcome.Error, "actor": m.ID}
	if outcome.Sink != "" {
		attempt["sink"] = outcome.Sink
	}
	return attempt
}

func newSettlement(one relay.Settlement) (settlement, error) {
	id, err := parseID(one.ID)
	if err != nil {
		return settlement{}, err
	}
	one, err = fit(one)
	return settlement{one, id}, err
}

// maxRetryAfter keeps a delay within what can be added to a time.
const maxRetryAfter = 365 * 24 * time.Hour

// fit makes a settlement fit to be written.
func fit(one relay.Settlement) (relay.Settlement, error) {
	switch one.State {
	case postrider.StatePublished:
		one.PublishedTo = text.Clean(one.PublishedTo)
	case postrider.StatePending, postrider.StateDead:
		one.Error = text.Clean(one.Error)
		if one.Error == "" {
			one.Error = "no reason was given" // a failed event is known by its error
		}
		one.Sink = text.Clean(one.Sink)
		one.RetryAfter = min(max(one.RetryAfter, 0), maxRetryAfter)
		if one.State == postrider.StateDead {
			one.RetryAfter = 0 // next_attempt_at of a dead letter tells when it died
		}
	default:
		return one, fmt.Errorf("event %s cannot be settled as %q", one.ID, one.State)
	}
	return one, nil
}
