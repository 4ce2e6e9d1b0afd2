package mongo

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/uuid"
	"github.com/postrider/postrider/operator"
)

// Events implements operator.Store. The letters' case does not matter to Filter.ErrorContains.
func (s *Store) Events(ctx context.Context, f operator.Filter) ([]operator.Row, error) {
	const op = "list events"
	limit := f.Limit
	if limit == 0 {
		limit = 100
	}
	if s.theirs != nil {
		return s.eventsOfTheirs(ctx, op, f, limit)
	}
	filter, err := filterOf(f)
	if err != nil {
		return nil, s.fail(op, err)
	}
	docs, err := aggregate[bson.Raw](ctx, s.events, s.selectOurs(filter, f.Sink, limit))
	if err != nil {
		return nil, s.fail(op, err)
	}
	rows := make([]operator.Row, len(docs))
	for i, raw := range docs {
		rows[i] = row(raw)
	}
	return rows, s.fail(op, s.tellHolds(ctx, rows))
}

func (s *Store) eventsOfTheirs(ctx context.Context, op string, f operator.Filter, limit int) ([]operator.Row, error) {
	if _, err := s.fits(ctx, op); err != nil {
		return nil, err
	}
	found, err := s.listTheirs(ctx, f, limit)
	if err != nil {
		return nil, s.fail(op, err)
	}
	rows := make([]operator.Row, len(found))
	for i, r := range found {
		rows[i] = r.row(idText(r.ref))
	}
	return rows, s.fail(op, s.tellHolds(ctx, rows))
}

// Event implements operator.Store.
func (s *Store) Event(ctx context.Context, ref string) (operator.Row, error) {
	found, err := s.Events(ctx, operator.Filter{IDs: []string{ref}, Limit: 1})
	if err != nil {
		return operator.Row{}, err
	}
	if len(found) == 0 {
		return operator.Row{}, fmt.Errorf("%w: %q in outbox %s", operator.ErrNotFound, ref, s.events.Name())
	}
	return found[0], nil
}

// Attempts implements operator.Store.
func (s *Store) Attempts(ctx context.Context, id string) ([]operator.Attempt, error) {
	const op = "list attempts"
	event, err := s.parse(id)
	if err != nil {
		return nil, s.fail(op, err)
	}
	type attempt struct {
		At      time.Time `bson:"at"`
		Outcome string    `bson:"outcome"`
		Error   string    `bson:"error"`
		Actor   string    `bson:"actor"`
	}
	docs, err := find[attempt](ctx, s.attempts, bson.M{"event": event}, options.Find().SetSort(ascending("at", "_id")))
	attempts := make([]operator.Attempt, len(docs))
	for i, d := range docs {
		attempts[i] = operator.Attempt{At: d.At.UTC(), Outcome: d.Outcome, Error: d.Error, By: d.Actor}
	}
	return attempts, s.fail(op, err)
}

// parse reads an outbox id.
func (s *Store) parse(text string) (any, error) {
	if s.theirs != nil {
		return idValue(text)
	}
	return parseID(text)
}

// selectOurs is a pipeline that yields events, in outbox order. A limit of 0 means none.
func (s *Store) selectOurs(filter bson.M, sink string, limit int) bson.A {
	pipeline := append(bson.A{bson.M{"$match": filter}, bson.M{"$sort": ascending("_id")}}, s.lastDiedAt("_id", sink)...)
	return append(pipeline, atMost(limit)...)
}

// lastDiedAt are the stages that leave the events that became DEAD the last time at a sink. A field has the _id of the event. An
// empty sink means any.
func (s *Store) lastDiedAt(id, sink string) bson.A {
	if sink == "" {
		return nil
	}
	return bson.A{
		bson.M{"$lookup": bson.M{
			"from":         s.attempts.Name(),
			"localField":   id,
			"foreignField": "event",
			"pipeline": bson.A{
				bson.M{"$match": bson.M{"outcome": "dead"}},
				bson.M{"$sort": bson.D{{Key: "at", Value: -1}, {Key: "_id", Value: -1}}},
				bson.M{"$limit": 1},
			},
			"as": "postrider_deaths",
		}},
		bson.M{"$match": bson.M{"postrider_deaths.sink": sink}},
	}
}

func atMost(limit int) bson.A {
	if limit == 0 {
		return nil
	}
	return bson.A{bson.M{"$limit": limit}}
}

// filterOf turns an operator's filter, without its sink, into one of the database.
func filterOf(f operator.Filter) (bson.M, error) {
	filter := bson.M{}
	for field, value := range map[string]string{
		"aggregate_type": f.AggregateType, "aggregate_id": f.AggregateID, "event_type": f.EventType, "status": string(f.State),
	} {
		if value != "" {
			filter[field] = value
		}
	}
	if f.State != "" && !slices.Contains(postrider.States(), f.State) {
		return nil, fmt.Errorf("%q is no state of an event", f.State)
	}
	if f.ErrorContains != "" {
		filter["last_error"] = bson.Regex{Pattern: regexp.QuoteMeta(f.ErrorContains), Options: "i"}
	}
	if len(f.IDs) > 0 {
		filter["$or"] = anyID(f.IDs)
	}
	return behind(filter, f.After)
}

// anyID is the condition that an event has one of the outbox ids or event ids. What is neither matches nothing.
func anyID(ids []string) bson.A {
	outbox, event := []bson.ObjectID{}, []string{}
	for _, id := range ids {
		if canonical, ok := uuid.Canonical(id); ok {
			event = append(event, canonical)
		} else if parsed, err := parseID(strings.ToLower(id)); err == nil {
			outbox = append(outbox, parsed)
		}
	}
	return bson.A{bson.M{"_id": bson.M{"$in": outbox}}, bson.M{"event_id": bson.M{"$in": event}}}
}
