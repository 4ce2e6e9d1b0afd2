package sqlstore

import (
	"context"
	"errors"

	"github.com/postrider/postrider/internal/text"
	"github.com/postrider/postrider/operator"
)

// actionChunk is how many events one statement of an operator's action changes, so that it holds its locks briefly.
const actionChunk = 1000

// Retry implements operator.Store.
func (s *Store) Retry(ctx context.Context, f operator.Filter, a operator.Action) (int, error) {
	const op = "retry events"
	waiting, err := s.act(ctx, op, "retry_now", "retried", f, a)
	if err != nil || f.Limit > 0 && waiting == f.Limit {
		return waiting, err
	}
	if f.Limit > 0 {
		f.Limit -= waiting
	}
	dead, err := s.act(ctx, op, "redrive", "retried", f, a)
	return waiting + dead, err
}

// Redrive implements operator.Store. It goes through the events in the order of their ids, in chunks: when it fails,
// those that it counted have changed already.
func (s *Store) Redrive(ctx context.Context, f operator.Filter, a operator.Action) (int, error) {
	return s.act(ctx, "redrive", "redrive", "redriven", f, a)
}

// Discard implements operator.Store. It works in chunks like Redrive.
func (s *Store) Discard(ctx context.Context, f operator.Filter, a operator.Action) (int, error) {
	const op = "discard"
	if a.Reason == "" {
		return 0, s.fail(op, errors.New("discarding needs a reason"))
	}
	return s.act(ctx, op, "discard", "discarded", f, a)
}

// act runs the named query over the events that the filter selects, chunk by chunk, and counts what it changed. It
// never comes back to an id, so an event that fails again meanwhile is not taken twice.
func (s *Store) act(ctx context.Context, op, name, outcome string, f operator.Filter, a operator.Action) (changed int, err error) {
	const ownParameters = 5
	ids, err := s.ids(ctx, op)
	if err != nil {
		return 0, err
	}
	condition, args, err := s.where(ids, f, ownParameters+1)
	if err != nil {
		return 0, s.fail(op, err)
	}
	if name != "retry_now" {
		condition = s.amongDead() + " AND " + condition
	}
	after, err := ids.after(f.After)
	if err != nil {
		return 0, s.fail(op, err)
	}
	for f.Limit == 0 || changed < f.Limit {
		limit := actionChunk
		if f.Limit > 0 {
			limit = min(limit, f.Limit-changed)
		}
		var done []string
		own := []any{after, limit, outcome, text.Clean(a.Reason), text.Clean(a.Who)}
		err := s.runFiltered(ctx, op, s.aside(name), condition, into(&done, scanValue[string]), append(own, args...)...)
		if err != nil || len(done) == 0 {
			return changed, err
		}
		changed += len(done)
		s.floors.forget()
		if after, err = ids.after(ids.last(done)); err != nil {
			return changed, s.fail(op, err)
		}
	}
	return changed, nil
}
