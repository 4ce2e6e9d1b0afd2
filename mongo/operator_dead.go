package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
)

// maxGrouped is how many dead letters DeadGroups looks at.
const maxGrouped = 10_000

// DeadGroups implements operator.Store. It looks at the 10,000 dead letters with the lowest ids.
func (s *Store) DeadGroups(ctx context.Context, limit int) ([]operator.DeadGroup, error) {
	const op = "group dead letters"
	letters, err := s.letters(ctx)
	if err != nil {
		return nil, s.fail(op, err)
	}
	ids := make(bson.A, len(letters))
	for i, l := range letters {
		ids[i] = l.ID
	}
	holds, err := s.holding(ctx, ids)
	if err != nil {
		return nil, s.fail(op, err)
	}
	sinks, err := s.lastSinks(ctx, ids)
	if err != nil {
		return nil, s.fail(op, err)
	}
	ones := make([]operator.DeadGroup, len(letters))
	for i, l := range letters {
		ones[i] = operator.DeadGroup{Sink: sinks[idText(l.ID)], AggregateType: l.AggregateType, EventType: l.EventType, Error: operator.Fingerprint(l.LastError),
			Count: 1, Oldest: l.CreatedAt.UTC(), Sample: l.EventID}
		if holds[idText(l.ID)] {
			ones[i].Holding = 1
		}
	}
	groups := operator.Group(ones)
	return groups[:min(limit, len(groups))], nil
}

// lastSinks returns the sinks at which events became DEAD the last time, by outbox id.
func (s *Store) lastSinks(ctx context.Context, events bson.A) (map[string]string, error) {
	type death struct {
		Event any    `bson:"event"`
		Sink  string `bson:"sink"`
	}
	deaths, err := find[death](ctx, s.attempts, bson.M{"event": bson.M{"$in": events}, "outcome": "dead"},
		options.Find().SetSort(ascending("at", "_id")).SetProjection(bson.M{"event": 1, "sink": 1}))
	sinks := make(map[string]string, len(events))
	for _, d := range deaths {
		sinks[idText(d.Event)] = d.Sink
	}
	return sinks, err
}

// letter is what is looked at of a dead letter.
type letter struct {
	ID            any       `bson:"_id"`
	AggregateType string    `bson:"aggregate_type"`
	EventType     string    `bson:"event_type"`
	EventID       string    `bson:"event_id"`
	LastError     string    `bson:"last_error"`
	CreatedAt     time.Time `bson:"created_at"`
}

func (s *Store) letters(ctx context.Context) ([]letter, error) {
	fields := bson.M{"_id": 1, "aggregate_type": 1, "event_type": 1, "event_id": 1, "last_error": 1, "created_at": 1}
	if s.theirs == nil {
		return find[letter](ctx, s.events, dead, options.Find().SetSort(ascending("_id")).SetLimit(maxGrouped).SetProjection(fields))
	}
	pipeline := bson.A{bson.M{"$match": s.theirs.belongs(s.theirs.has(postrider.StateDead))}, bson.M{"$sort": ascending("_id")}, bson.M{"$limit": maxGrouped}}
	pipeline = append(pipeline, s.theirs.rows()...)
	return aggregate[letter](ctx, s.events, append(pipeline, bson.M{"$match": dead}, bson.M{"$project": with(fields, bson.M{"_id": "$ref"})}))
}
