package mongo

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/text"
	"github.com/postrider/postrider/operator"
)

// actionChunk is how many events one transaction of an operator's action changes, so that it is in the way briefly.
const actionChunk = 1000

// action is what an operator does to events.
type action struct {
	outcome string // how the attempts call it
	from    bson.M // which events it changes
	change  bson.A

	state postrider.State // in which it finds an event

	// What it does to an event in a collection that somebody else designed.
	their func(*theirs, theirRow, time.Time) theirChange
}

var (
	dead = bson.M{"status": postrider.StateDead}

	// atOnce makes an event due at once.
	atOnce = bson.M{"$set": bson.M{"waiting": false, "next_attempt_at": "$created_at"}}

	fresh = bson.A{
		bson.M{"$set": bson.M{"status": postrider.StatePending, "retry_count": 0}},
		bson.M{"$unset": "last_error"},
		atOnce,
	}
	redrive  = action{"redriven", dead, fresh, postrider.StateDead, (*theirs).sendAgain}
	retry    = action{"retried", dead, fresh, postrider.StateDead, (*theirs).sendAgain}
	retryNow = action{"retried", with(failed, bson.M{"waiting": true}), bson.A{atOnce}, postrider.StatePending, (*theirs).tryNow}
	discard  = action{"discarded", dead, bson.A{bson.M{"$set": bson.M{"status": postrider.StateDiscarded}}}, postrider.StateDead, (*theirs).discard}
)

// Retry implements operator.Store.
func (s *Store) Retry(ctx context.Context, f operator.Filter, a operator.Action) (int, error) {
	const op = "retry events"
	waiting, err := s.act(ctx, op, retryNow, f, a)
	if err != nil || f.Limit > 0 && waiting == f.Limit {
		return waiting, err
	}
	if f.Limit > 0 {
		f.Limit -= waiting
	}
	dead, err := s.act(ctx, op, retry, f, a)
	return waiting + dead, err
}

// Redrive implements operator.Store. It goes through the events in the order of their ids, in chunks: when it fails,
// those that it counted have changed already.
func (s *Store) Redrive(ctx context.Context, f operator.Filter, a operator.Action) (int, error) {
	return s.act(ctx, "redrive", redrive, f, a)
}

// Discard implements operator.Store. It works in chunks like Redrive.
func (s *Store) Discard(ctx context.Context, f operator.Filter, a operator.Action) (int, error) {
	const op = "discard"
	if a.Reason == "" {
		return 0, s.fail(op, errors.New("discarding needs a reason"))
	}
	return s.act(ctx, op, discard, f, a)
}

// act changes the events that the filter selects, chunk by chunk, and counts what it changed. It never comes back to an
// id, so an event that fails again meanwhile is not taken twice.
func (s *Store) act(ctx context.Context, op string, do action, f operator.Filter, a operator.Action) (changed int, err error) {
	if _, err := s.fits(ctx, op); err != nil {
		return 0, err
	}
	for f.Limit == 0 || changed < f.Limit {
		limit := actionChunk
		if f.Limit > 0 {
			limit = min(limit, f.Limit-changed)
		}
		n, last, err := s.actOnce(ctx, do, f, a, limit)
		if err != nil {
			return changed, s.fail(op, err)
		}
		if last == "" {
			return changed, nil
		}
		changed += n
		f.After = last
	}
	return changed, nil
}

// actOnce changes one chunk. It returns the last id that it saw, empty when there was none.
func (s *Store) actOnce(ctx context.Context, do action, f operator.Filter, a operator.Action, limit int) (n int, last string, err error) {
	if s.theirs != nil {
		return s.actOnTheirs(ctx, do, f, a, limit)
	}
	chosen, err := filterOf(f)
	if err != nil {
		return 0, "", err
	}
	filter := bson.M{"$and": bson.A{do.from, chosen}}
	err = s.atomically(ctx, func(ctx context.Context) error {
		n, last = 0, ""
		events, err := find[candidate](ctx, s.events, filter,
			options.Find().SetSort(ascending("_id")).SetLimit(int64(limit)).SetProjection(bson.M{"_id": 1}))
		if err != nil || len(events) == 0 {
			return err
		}
		now, err := s.now(ctx)
		if err != nil {
			return err
		}
		ids := make(bson.A, len(events))
		notes := make([]bson.M, len(events))
		for i, e := range events {
			ids[i] = e.ID
			notes[i] = noteOf(e.ID, do, a, now)
		}
		result, err := s.events.UpdateMany(ctx, with(do.from, bson.M{"_id": bson.M{"$in": ids}}), do.change)
		if err != nil {
			return err
		}
		n, last = int(result.MatchedCount), events[len(events)-1].ID.Hex()
		if _, err := s.attempts.InsertMany(ctx, notes); err != nil || do.state != postrider.StateDead {
			return err
		}
		return s.release(ctx, ids)
	})
	return n, last, err
}

// noteOf is what is kept of an action in the history of an event.
func noteOf(event any, do action, a operator.Action, now time.Time) bson.M {
	return bson.M{"event": event, "at": now, "outcome": do.outcome, "error": text.Clean(a.Reason), "actor": text.Clean(a.Who)}
}
