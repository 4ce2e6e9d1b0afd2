package sqlstore

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// claimSettlement is the outcome of a claimed event, as the statements take it.
type claimSettlement struct {
	settlement
	Token string `json:"token"`
}

// Settle writes outcomes under the claims of their events. An id that is missing in what comes back is a lost claim: it
// ran out, and another relay took the event or gave it back. Otherwise it does what Store.Settle does.
func (r *RowClaims) Settle(ctx context.Context, m relay.Member, settlements []relay.Settlement) (written []string, err error) {
	const op = "settle"
	if current, err := r.current(); err != nil || current.ID != m.ID {
		return nil, nil // the claims of a member before this one are lost
	}
	ids, err := r.ids(ctx, op)
	if err != nil {
		return nil, err
	}
	published, failed, tried, err := r.claimSettlements(ids, settlements)
	defer func() { r.book.Settled(tried, written, err) }()
	if err != nil {
		return nil, r.fail(op, err)
	}
	publish := "claim_published"
	if r.config.DeletePublished {
		publish = "claim_deleted"
	}
	if written, err = r.settleClaims(ctx, op, publish, published); err != nil {
		return nil, err
	}
	more, err := r.settleFailedClaims(ctx, op, m.ID, failed)
	return append(written, more...), err
}

// claimSettlements finds the claims of the events, and leaves out those that are lost already.
func (r *RowClaims) claimSettlements(ids ids, settlements []relay.Settlement) (published, failed []claimSettlement, tried []string, err error) {
	for _, one := range settlements {
		row, err := newSettlement(ids, one)
		if err != nil {
			return nil, nil, tried, err
		}
		mine, held := r.book.Settle(one.ID)
		if !held {
			continue
		}
		tried = append(tried, one.ID)
		if one.State == postrider.StatePublished {
			published = append(published, claimSettlement{row, mine.Token})
		} else {
			failed = append(failed, claimSettlement{row, mine.Token})
		}
	}
	return published, failed, tried, nil
}

func (r *RowClaims) settleClaims(ctx context.Context, op, name string, rows []claimSettlement, args ...any) (ids []string, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	err = r.run(ctx, op, name, into(&ids, scanValue[string]), append([]any{toJSON(rows)}, args...)...)
	return ids, err
}
