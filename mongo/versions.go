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

// aggregateID is what versions count for.
type aggregateID struct {
	Type string `bson:"aggregate_type"`
	ID   string `bson:"aggregate_id"`
}

// leftVersion is a document of the collection of versions: the highest version of an aggregate that has left.
type leftVersion struct {
	Aggregate aggregateID `bson:"_id"`
	Version   int64       `bson:"version"`
}

// tellGaps sets After of those events before which a version is missing.
func (s *Store) tellGaps(ctx context.Context, events []relay.Event) error {
	var asked []*relay.Event
	aggregates := map[aggregateID]bool{}
	for i, e := range events {
		if e.AggregateVersion != nil {
			asked = append(asked, &events[i])
			aggregates[aggregateID{e.AggregateType, e.AggregateID}] = true
		}
	}
	if len(asked) == 0 {
		return nil
	}
	left, err := s.leftVersions(ctx, aggregates)
	if err != nil {
		return err
	}
	lowest, err := s.lowestVersions(ctx, aggregates, left)
	if err != nil {
		return err
	}
	earlier, err := s.predecessors(ctx, asked)
	if err != nil {
		return err
	}
	for _, e := range asked {
		a, before := aggregateID{e.AggregateType, e.AggregateID}, *e.AggregateVersion-1
		highest, anyLeft := left[a]
		switch id, waits := earlier[leftVersion{a, before}]; {
		case anyLeft && before <= highest:
		case waits && id < e.ID:
		case !anyLeft && lowest[a] > before:
		default:
			e.After = &before
		}
	}
	return nil
}

// leftVersions returns the highest version that has left of each aggregate of which one has.
func (s *Store) leftVersions(ctx context.Context, aggregates map[aggregateID]bool) (map[aggregateID]int64, error) {
	ids := make(bson.A, 0, len(aggregates))
	for a := range aggregates {
		ids = append(ids, a)
	}
	docs, err := find[leftVersion](ctx, s.versions, bson.M{"_id": bson.M{"$in": ids}})
	left := make(map[aggregateID]int64, len(docs))
	for _, d := range docs {
		left[d.Aggregate] = d.Version
	}
	return left, err
}

// lowestVersions returns the lowest version that waits of each aggregate of which none has left.
func (s *Store) lowestVersions(ctx context.Context, aggregates map[aggregateID]bool, left map[aggregateID]int64) (map[aggregateID]int64, error) {
	var either bson.A
	for a := range aggregates {
		if _, known := left[a]; !known {
			either = append(either, a)
		}
	}
	lowest := map[aggregateID]int64{}
	if len(either) == 0 {
		return lowest, nil
	}
	docs, err := aggregate[leftVersion](ctx, s.events, bson.A{
		bson.M{"$match": with(versioned, bson.M{"$or": either})},
		bson.M{"$group": bson.M{
			"_id":     bson.D{{Key: "aggregate_type", Value: "$aggregate_type"}, {Key: "aggregate_id", Value: "$aggregate_id"}},
			"version": bson.M{"$min": "$aggregate_version"},
		}},
	})
	for _, d := range docs {
		lowest[d.Aggregate] = d.Version
	}
	return lowest, err
}

// predecessors returns, for the version before each event's own that waits, its lowest outbox id.
func (s *Store) predecessors(ctx context.Context, events []*relay.Event) (map[leftVersion]string, error) {
	var either bson.A
	for _, e := range events {
		either = append(either, bson.M{"aggregate_type": e.AggregateType, "aggregate_id": e.AggregateID, "aggregate_version": *e.AggregateVersion - 1})
	}
	type found struct {
		ID        bson.ObjectID `bson:"_id"`
		Aggregate aggregateID   `bson:",inline"`
		Version   int64         `bson:"aggregate_version"`
	}
	docs, err := find[found](ctx, s.events, with(versioned, bson.M{"$or": either}),
		options.Find().SetSort(bson.M{"_id": -1}).SetProjection(bson.M{"aggregate_type": 1, "aggregate_id": 1, "aggregate_version": 1}))
	earlier := make(map[leftVersion]string, len(docs))
	for _, d := range docs {
		earlier[leftVersion{d.Aggregate, d.Version}] = d.ID.Hex()
	}
	return earlier, err
}

// haveLeft records versions of events that are PUBLISHED or DEAD.
func (s *Store) haveLeft(ctx context.Context, events []settled, now time.Time) error {
	var writes []driver.WriteModel
	for _, e := range events {
		if e.AggregateVersion == nil || e.outcome.State == postrider.StatePending {
			continue
		}
		writes = append(writes, driver.NewUpdateOneModel().SetUpsert(true).
			SetFilter(bson.M{"_id": aggregateID{e.AggregateType, e.AggregateID}}).
			SetUpdate(bson.M{"$max": bson.M{"version": *e.AggregateVersion}, "$set": bson.M{"left_at": now}}))
	}
	if len(writes) == 0 {
		return nil
	}
	_, err := s.versions.BulkWrite(ctx, writes)
	return err
}
