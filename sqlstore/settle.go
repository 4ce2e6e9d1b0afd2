package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/text"
	"github.com/postrider/postrider/relay"
)

// settlement is a relay.Settlement as the statements take it.
type settlement struct {
	ID          any             `json:"id"`
	Shard       int             `json:"shard"`
	Epoch       int64           `json:"epoch"`
	State       postrider.State `json:"state"`
	PublishedTo string          `json:"published_to,omitempty"`
	RetryCount  int             `json:"retry_count"`
	RetryAfter  float64         `json:"retry_after"`
	Error       string          `json:"error,omitempty"`
	Sink        string          `json:"sink,omitempty"`
	Held        bool            `json:"held,omitempty"`
	Holds       bool            `json:"holds,omitempty"`
}

// Settle implements relay.Store. Published events are written by one statement and failed ones by another; when
// one of them fails, the ids that the other wrote come back with the error.
func (s *Store) Settle(ctx context.Context, m relay.Member, settlements []relay.Settlement) ([]string, error) {
	const op = "settle"
	ids, err := s.ids(ctx, op)
	if err != nil {
		return nil, err
	}
	var published, failed []settlement
	for _, one := range settlements {
		row, err := newSettlement(ids, one)
		switch {
		case err != nil:
			return nil, s.fail(op, err)
		case one.State == postrider.StatePublished:
			published = append(published, row)
		default:
			failed = append(failed, row)
		}
	}
	publish := "settle_published"
	if s.config.DeletePublished {
		publish = "settle_deleted"
	}
	settled, publishErr := s.settle(ctx, op, publish, m, published)
	more, failErr := s.settleFailed(ctx, op, m, failed)
	return append(settled, more...), errors.Join(publishErr, failErr)
}

// settle writes rows by one statement. When others keep some of the rows locked, the rest is written nevertheless: the
// rows are halved until those remain. The ids that were written come back, with an error when some were not.
func (s *Store) settle(ctx context.Context, op, name string, m relay.Member, rows []settlement) (ids []string, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(rows, func(a, b settlement) int { return a.Shard - b.Shard }) // the order in which everyone locks
	err = s.run(ctx, op, name, into(&ids, scanValue[string]), m.Name, m.ID, toJSON(rows))
	if err == nil {
		return ids, nil
	}
	if !errors.Is(s.cause(err), errBusy) || len(rows) == 1 {
		return nil, err
	}
	half := len(rows) / 2
	first, firstErr := s.settle(ctx, op, name, m, rows[:half])
	second, secondErr := s.settle(ctx, op, name, m, rows[half:])
	return append(first, second...), errors.Join(firstErr, secondErr)
}

func newSettlement(ids ids, one relay.Settlement) (settlement, error) {
	id, err := ids.value(one.ID)
	if err != nil {
		return settlement{}, err
	}
	row := settlement{ID: id, Shard: one.Lease.Shard, Epoch: one.Lease.Epoch, State: one.State}
	switch one.State {
	case postrider.StatePublished:
		row.PublishedTo = text.Clean(one.PublishedTo)
	case postrider.StatePending, postrider.StateDead:
		row.RetryCount = one.RetryCount
		row.Error, row.Sink = text.Clean(one.Error), text.Clean(one.Sink)
		if row.Error == "" {
			row.Error = "no reason was given" // a failed event is known by its error
		}
		row.Holds = one.State == postrider.StateDead && one.HoldsKey
		if one.State == postrider.StatePending {
			row.Held = one.Held
			row.RetryAfter = clampDelay(one.RetryAfter).Seconds()
		}
	default:
		return settlement{}, fmt.Errorf("event %s cannot be settled as %q", one.ID, one.State)
	}
	return row, nil
}
