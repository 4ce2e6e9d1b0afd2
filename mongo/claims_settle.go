package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/postrider/postrider/internal/claims"
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
	var mine []claims.Claim
	var tried []string
	for event := range outcomes {
		if c, held := r.book.Settle(event); held {
			mine = append(mine, c)
			tried = append(tried, event)
		}
	}
	defer func() { r.book.Settled(tried, written, err) }()
	if len(mine) == 0 {
		return nil, nil
	}
	err = r.atomically(ctx, func(ctx context.Context) (err error) {
		if r.theirs != nil {
			written, err = r.settleTheirClaims(ctx, m, mine, outcomes)
		} else {
			written, err = r.settleClaims(ctx, m, mine, outcomes)
		}
		return err
	})
	if err != nil {
		return nil, r.fail(op, err)
	}
	return written, nil
}

// holds is the condition of a claim that still holds.
func (shape claimShape) holds(c claims.Claim) bson.M {
	return bson.M{"$and": bson.A{shape.claimed, bson.M{"_id": c.ID, shape.token: c.Token}}}
}

func (r *RowClaims) settleClaims(ctx context.Context, m relay.Member, mine []claims.Claim, outcomes map[string]theirOutcome) ([]string, error) {
	shape := r.shape()
	byEvent := map[string]claims.Claim{}
	ids := make([]bson.ObjectID, len(mine))
	for i, c := range mine {
		byEvent[c.Event] = c
		ids[i] = c.ID.(bson.ObjectID) // an outbox of our own has no other
	}
	now, err := r.now(ctx)
	if err != nil {
		return nil, err
	}
	found, err := r.settleable(ctx, ids, shape.ours(mine))
	if err != nil {
		return nil, err
	}
	var events []settled
	for _, d := range found {
		event := d.ID.Hex()
		events = append(events, settled{d, settlement{outcomes[event].Settlement, d.ID}, shape.holds(byEvent[event])})
	}
	return r.writeOutcomes(ctx, m, events, now)
}

func (r *RowClaims) settleTheirClaims(ctx context.Context, m relay.Member, mine []claims.Claim, outcomes map[string]theirOutcome) ([]string, error) {
	shape := r.shape()
	ids := make([]any, len(mine))
	for i, c := range mine {
		ids[i] = c.ID
	}
	now, err := r.now(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := r.keysOfTheirs(ctx, ids, shape.ours(mine))
	if err != nil {
		return nil, err
	}
	var list []theirOutcome
	for _, c := range mine {
		if key, found := keys[c.Event]; found {
			one := outcomes[c.Event]
			one.key, one.filter = key, shape.holds(c)
			list = append(list, one)
		}
	}
	return r.writeTheirs(ctx, m, list, now)
}
