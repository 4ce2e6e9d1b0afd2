package mongo

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
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

	job int64 // of which it is a part; 0 for none
}

var (
	dead = bson.M{"status": postrider.StateDead}

	// atOnce makes an event due at once.
	atOnce = bson.M{"$set": bson.M{"waiting": false, "next_attempt_at": "$created_at"}}

	discarded = bson.A{bson.M{"$set": bson.M{"status": postrider.StateDiscarded}}}

	fresh = bson.A{
		bson.M{"$set": bson.M{"status": postrider.StatePending, "retry_count": 0}},
		bson.M{"$unset": "last_error"},
		atOnce,
	}
	redrive = action{outcome: "redriven", from: dead, change: fresh, state: postrider.StateDead, their: (*theirs).sendAgain}
	retry   = action{outcome: "retried", from: dead, change: fresh, state: postrider.StateDead, their: (*theirs).sendAgain}
	discard = action{outcome: "discarded", from: dead, change: discarded, state: postrider.StateDead, their: (*theirs).discard}

	retryNow = action{outcome: "retried", from: with(failed, bson.M{"waiting": true}), change: bson.A{atOnce}, state: postrider.StatePending,
		their: (*theirs).tryNow}
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
	pipeline := append(s.selectOurs(bson.M{"$and": bson.A{do.from, chosen}}, f.Sink, limit), bson.M{"$project": bson.M{"_id": 1}})
	err = s.atomically(ctx, func(ctx context.Context) error {
		n, last = 0, ""
		events, err := aggregate[waitingDoc](ctx, s.events, pipeline)
		if err != nil || len(events) == 0 {
			return err
		}
		now, err := s.now(ctx)
		if err != nil {
			return err
		}
		last = idText(events[len(events)-1].ID)
		n, err = s.changeOurs(ctx, do, a, idsOf(events), now)
		return err
	})
	return n, last, err
}

// changeOurs changes those of the events that are still in the state in which the action finds them, and counts them.
func (s *Store) changeOurs(ctx context.Context, do action, a operator.Action, events bson.A, now time.Time) (int, error) {
	if len(events) == 0 {
		return 0, nil
	}
	result, err := s.events.UpdateMany(ctx, with(do.from, bson.M{"_id": bson.M{"$in": events}}), do.change)
	if err != nil {
		return 0, err
	}
	return int(result.MatchedCount), s.keepAction(ctx, do, a, events, now)
}

// keepAction adds an action to the history of events that it has changed, and lets their keys go on.
func (s *Store) keepAction(ctx context.Context, do action, a operator.Action, events bson.A, now time.Time) error {
	if err := s.keepNotes(ctx, do, a, events, now); err != nil || do.state != postrider.StateDead {
		return err
	}
	return s.release(ctx, events)
}

// keepNotes adds an action to the history of events. A job keeps one note for each event, so that a step which completes another
// one adds none twice.
func (s *Store) keepNotes(ctx context.Context, do action, a operator.Action, events bson.A, now time.Time) error {
	if len(events) == 0 {
		return nil
	}
	notes := make([]driver.WriteModel, len(events))
	for i, event := range events {
		note := bson.M{"event": event, "at": now, "outcome": do.outcome, "error": text.Clean(a.Reason), "actor": text.Clean(a.Who)}
		if do.job == 0 {
			notes[i] = driver.NewInsertOneModel().SetDocument(note)
			continue
		}
		// An insert that meets the note would end the transaction.
		note["job"] = do.job
		id := bson.D{{Key: "job", Value: do.job}, {Key: "event", Value: event}}
		notes[i] = driver.NewUpdateOneModel().SetFilter(bson.M{"_id": id}).SetUpdate(bson.M{"$setOnInsert": note}).SetUpsert(true)
	}
	_, err := s.attempts.BulkWrite(ctx, notes, options.BulkWrite().SetOrdered(false))
	if do.job != 0 && driver.IsDuplicateKeyError(err) { // two who step at the same time, on a server without transactions
		return nil
	}
	return err
}
