package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/claims"
)

// claimShape is how the documents of an outbox keep claims.
type claimShape struct {
	token, until string // fields
	claimed      bson.M // what somebody has claimed
	pending      bson.M // what nobody has claimed
	take         bson.M // fields that a claim sets besides token and until, in a pipeline
	giveBack     bson.M // the update that takes a claim off
}

func (s *Store) shape() claimShape {
	if s.theirs != nil {
		return s.theirs.shape()
	}
	return claimShape{
		token: "claim_token", until: "processing_until", claimed: isProcessing, pending: isPending,
		take: bson.M{"status": postrider.StateProcessing},
		giveBack: bson.M{
			"$set":   bson.M{"status": postrider.StatePending},
			"$unset": bson.M{"claim_token": "", "processing_until": ""},
		},
	}
}

func (t *theirs) shape() claimShape {
	take, back := bson.M{}, t.unclaim()
	if t.Words.Processing != "" {
		take[t.Status], back[t.Status] = literal(t.Words.Processing), t.Words.Pending[0]
	}
	return claimShape{
		token: t.ClaimToken, until: t.ProcessingUntil, claimed: t.belongs(t.isClaimed()), pending: t.belongs(t.isPending()),
		take: take, giveBack: bson.M{"$set": back},
	}
}

// ours selects the documents of claims that still hold.
func (shape claimShape) ours(mine []claims.Claim) bson.M {
	ids, tokens, known := bson.A{}, bson.A{}, map[string]bool{}
	for _, one := range mine {
		ids = append(ids, one.ID)
		if !known[one.Token] {
			known[one.Token] = true
			tokens = append(tokens, one.Token)
		}
	}
	return bson.M{"$and": bson.A{shape.claimed, bson.M{"_id": bson.M{"$in": ids}, shape.token: bson.M{"$in": tokens}}}}
}

// expired selects what was claimed until some time before now.
func (shape claimShape) expired(now time.Time, more bson.M) bson.M {
	return bson.M{"$and": bson.A{more, shape.claimed, bson.M{shape.until: bson.M{"$lte": now}}}}
}

// fromNow is a time by the server's clock, in a pipeline.
func fromNow(d time.Duration) bson.M { return bson.M{"$add": bson.A{"$$NOW", milliseconds(d)}} }

// giveBackExpired makes events PENDING again whose claims ran out, some at a time: relays that claimed one by one may have
// left them behind, before the outbox was given to those that lease shards.
func (s *Store) giveBackExpired(ctx context.Context) error {
	shape := s.shape()
	if shape.token == "" {
		return nil
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	expired, err := find[waitingDoc](ctx, s.events, shape.expired(now, bson.M{}), options.Find().SetLimit(actionChunk).SetProjection(bson.M{"_id": 1}))
	if err != nil || len(expired) == 0 {
		return err
	}
	ids := bson.A{}
	for _, d := range expired {
		ids = append(ids, d.ID)
	}
	_, err = s.events.UpdateMany(ctx, shape.expired(now, bson.M{"_id": bson.M{"$in": ids}}), shape.giveBack)
	return err
}
