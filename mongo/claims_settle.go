package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/postrider/postrider/relay"
)

// Settle writes outcomes under the claims of their events. An id that is missing in what comes back is a lost claim: it
// ran out, and another relay took the event or gave it back. Otherwise it does what Store.Settle does.
func (r *RowClaims) Settle(ctx context.Context, m relay.Member, settlements []relay.Settlement) (written []string, err error) {
	const op = "settle"
	if current, err := r.current(); err != nil || current.ID != m.ID {
		return nil, nil // the claims of a member before this one are lost
	}
	outcomes, err := newTheirOutcomes(settlements)
	if err != nil {
		return nil, r.fail(op, err)
	}
	var claims []claim
	var tried []string
	for event := range outcomes {
		if c, held := r.book.settle(event); held {
			claims = append(claims, c)
			tried = append(tried, event)
		}
	}
	defer func() { r.book.settled(tried, written, err) }()
	if len(claims) == 0 {
		return nil, nil
	}
	err = r.atomically(ctx, func(ctx context.Context) (err error) {
		if r.theirs != nil {
			written, err = r.settleTheirClaims(ctx, m, claims, outcomes)
		} else {
			written, err = r.settleClaims(ctx, m, claims, outcomes)
		}
		return err
	})
	if err != nil {
		return nil, r.fail(op, err)
	}
	return written, nil
}

// filter is the condition of a claim that still holds.
func (c claim) filter(shape claimShape) bson.M {
	return bson.M{"$and": bson.A{shape.claimed, bson.M{"_id": c.id, shape.token: c.token}}}
}

func (r *RowClaims) settleClaims(ctx context.Context, m relay.Member, claims []claim, outcomes map[string]theirOutcome) ([]string, error) {
	shape := r.shape()
	byEvent := map[string]claim{}
	ids := make([]bson.ObjectID, len(claims))
	for i, c := range claims {
		byEvent[c.event] = c
		ids[i] = c.id.(bson.ObjectID) // an outbox of our own has no other
	}
	now, err := r.now(ctx)
	if err != nil {
		return nil, err
	}
	found, err := r.settleable(ctx, ids, shape.ours(claims))
	if err != nil {
		return nil, err
	}
	var events []settled
	for _, d := range found {
		event := d.ID.Hex()
		events = append(events, settled{d, settlement{outcomes[event].Settlement, d.ID}, byEvent[event].filter(shape)})
	}
	return r.writeOutcomes(ctx, m, events, now)
}

func (r *RowClaims) settleTheirClaims(ctx context.Context, m relay.Member, claims []claim, outcomes map[string]theirOutcome) ([]string, error) {
	shape := r.shape()
	ids := make([]any, len(claims))
	for i, c := range claims {
		ids[i] = c.id
	}
	now, err := r.now(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := r.keysOfTheirs(ctx, ids, shape.ours(claims))
	if err != nil {
		return nil, err
	}
	var list []theirOutcome
	for _, c := range claims {
		if key, found := keys[c.event]; found {
			one := outcomes[c.event]
			one.key, one.filter = key, c.filter(shape)
			list = append(list, one)
		}
	}
	return r.writeTheirs(ctx, m, list, now)
}
