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

// oldestLooked is how many documents of each kind the age of the oldest event is looked for among.
const oldestLooked = 1000

// countTheirs counts their documents of each state but PUBLISHED.
func (s *Store) countTheirs(ctx context.Context) (map[postrider.State]int64, error) {
	n := map[postrider.State]int64{}
	count := func(c *driver.Collection, condition bson.M) (int64, error) {
		return c.CountDocuments(ctx, condition, options.Count().SetLimit(relay.PendingCap+1))
	}
	for _, state := range []postrider.State{postrider.StatePending, postrider.StateProcessing, postrider.StateDead} {
		one, err := count(s.events, s.theirs.belongs(s.theirs.has(state)))
		if err != nil {
			return nil, err
		}
		n[state] = one
	}
	discarded, err := count(s.failures, bson.M{"state": postrider.StateDiscarded})
	if err != nil {
		return nil, err
	}
	n[postrider.StateDiscarded] = discarded
	if s.theirs.Words.Discarded == s.theirs.Words.Dead {
		n[postrider.StateDead] = max(n[postrider.StateDead]-discarded, 0)
	}
	return n, nil
}

// oldestOfTheirs finds the oldest event of each shard among the first that are due, those that failed, and those that are
// claimed.
func (s *Store) oldestOfTheirs(ctx context.Context) ([]oldestEvent, error) {
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	t := s.theirs
	first := options.Find().SetLimit(oldestLooked).SetProjection(bson.M{"_id": 1})
	due, err := find[waitingDoc](ctx, s.events, t.belongs(t.isPending(), t.isDue(now)), first.SetSort(t.order()))
	if err != nil {
		return nil, err
	}
	claimed, err := find[waitingDoc](ctx, s.events, t.belongs(t.isClaimed()), options.Find().SetLimit(oldestLooked).SetProjection(bson.M{"_id": 1}))
	if err != nil {
		return nil, err
	}
	failed, err := find[waitingDoc](ctx, s.failures, bson.M{"state": postrider.StatePending}, options.Find().SetLimit(oldestLooked).SetProjection(bson.M{"_id": 1}))
	if err != nil {
		return nil, err
	}
	var ids []any
	for _, list := range [][]waitingDoc{due, claimed, failed} {
		for _, d := range list {
			ids = append(ids, d.ID)
		}
	}
	rows, err := s.fetchTheirs(ctx, ids, t.isOpenOrClaimed())
	var heads []oldestEvent
	for _, r := range rows {
		heads = append(heads, oldestEvent{Shard: r.Shard, Key: r.AggregateID, EventID: r.EventID, LastError: r.LastError, CreatedAt: knownTime(r.CreatedAt, now)})
	}
	return oldestOf(heads, now), err
}

func (t *theirs) isOpenOrClaimed() bson.M {
	return bson.M{"$or": bson.A{t.isOpen(), t.isClaimed()}}
}

// knownTime is a time, or now where none is known.
func knownTime(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}
