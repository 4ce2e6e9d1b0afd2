package mongo

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/relay"
)

// member is a document of the collection of relays.
type member struct {
	ID          string      `bson:"_id"`
	Name        string      `bson:"relay_name"`
	Host        string      `bson:"host"`
	Version     string      `bson:"version"`
	Claim       relay.Claim `bson:"claim"`
	StartedAt   time.Time   `bson:"started_at"`
	HeartbeatAt time.Time   `bson:"heartbeat_at"`
	Sinks       []sinkState `bson:"sinks"`

	Live      bool  `bson:"live"` // computed: its heartbeat is fresher than its lease
	AgeMillis int64 `bson:"age"`  // computed: of its heartbeat
}

// sinkState is a relay.SinkState in a document.
type sinkState struct {
	Name      string    `bson:"name"`
	Type      string    `bson:"type"`
	Circuit   string    `bson:"circuit"`
	Since     time.Time `bson:"since"`
	LastError string    `bson:"last_error,omitempty"`
}

// heartbeat records that the member lives, unless relays with which it cannot share the work are there, and returns the
// live members of its name.
func (s *Store) heartbeat(ctx context.Context, beat relay.Heartbeat, claim relay.Claim) (live []string, err error) {
	if beat.Claim != "" && beat.Claim != claim {
		return nil, &relay.ClaimConflictError{Name: beat.Name, Claim: beat.Claim, Other: claim, Table: s.events.Name()}
	}
	beat.Claim = claim
	mine, err := s.beat(ctx, beat)
	if err != nil {
		return nil, err
	}
	all, err := s.members(ctx, "")
	if err != nil {
		return nil, err
	}
	if other := conflict(mine, all); other != nil {
		if err := s.Leave(ctx, beat.Member); err != nil {
			return nil, err
		}
		if other.Name != mine.Name {
			return nil, &relay.NameConflictError{Name: mine.Name, Other: other.Name, Table: s.events.Name()}
		}
		return nil, &relay.ClaimConflictError{Name: mine.Name, Claim: mine.Claim, Other: other.Claim, Table: s.events.Name()}
	}
	for _, m := range all {
		if m.Live && m.Name == mine.Name {
			live = append(live, m.ID)
		}
	}
	slices.Sort(live)
	return live, nil
}

// beat writes the member's document and returns it.
func (s *Store) beat(ctx context.Context, beat relay.Heartbeat) (mine member, err error) {
	sinks := make([]sinkState, len(beat.Sinks))
	for i, sink := range beat.Sinks {
		sinks[i] = sinkState(sink)
	}
	err = s.relays.FindOneAndUpdate(ctx, bson.M{"_id": beat.ID}, bson.A{bson.M{"$set": bson.M{
		"relay_name":   literal(beat.Name),
		"host":         literal(beat.Host),
		"version":      literal(beat.Version),
		"claim":        literal(string(beat.Claim)),
		"lease_ms":     milliseconds(beat.LeaseTTL),
		"sinks":        bson.M{"$literal": sinks},
		"started_at":   bson.M{"$ifNull": bson.A{"$started_at", "$$NOW"}},
		"heartbeat_at": "$$NOW",
	}}}, options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&mine)
	return mine, err
}

// conflict returns a live relay with which the member cannot share the work: any for a new member, one that was there
// first for an old one, so that two that met give way in one direction.
func conflict(mine member, all []member) *member {
	isNew := mine.StartedAt.Equal(mine.HeartbeatAt)
	for i, other := range all {
		shares := other.Name == mine.Name && other.Claim == mine.Claim
		wasFirst := other.StartedAt.Before(mine.StartedAt) || other.StartedAt.Equal(mine.StartedAt) && other.ID < mine.ID
		if other.Live && !shares && (isNew || wasFirst) {
			return &all[i]
		}
	}
	return nil
}

// members lists the relays of a name, or of all when it is empty.
func (s *Store) members(ctx context.Context, relayName string) ([]member, error) {
	return aggregate[member](ctx, s.relays, bson.A{
		bson.M{"$match": ofName(relayName)},
		bson.M{"$sort": ascending("started_at", "_id")},
		bson.M{"$addFields": bson.M{
			"live": bson.M{"$gt": bson.A{bson.M{"$add": bson.A{"$heartbeat_at", "$lease_ms"}}, "$$NOW"}},
			"age":  bson.M{"$subtract": bson.A{"$$NOW", "$heartbeat_at"}},
		}},
	})
}
