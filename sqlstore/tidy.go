package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"
)

// tidyChunk bounds how many events with side rows one Tidy looks at.
const tidyChunk = 1000

// Tidy deletes the sets of jobs that have ended, and jobs that ended longer ago than operator.JobRetention. And it deletes
// what the side tables hold of events for which it no longer applies: holds of keys whose event is gone, or is no
// longer DEAD because somebody changed it by SQL; and of a mapped table all that is told of rows which the application deleted,
// or whose state it changed. Each call looks at up to 1000 events that have such side rows, from where the last call of this
// Store ended, and starts again behind the last one; what others have locked is left for the next walk. Clean calls it at
// the end of a walk, so only those who keep published events for ever call it themselves, now and then.
func (s *Store) Tidy(ctx context.Context) error {
	const op = "tidy"
	return errors.Join(s.tidyJobs(ctx, op), s.tidyEvents(ctx, op))
}

func (s *Store) tidyEvents(ctx context.Context, op string) error {
	s.tidied.mu.Lock()
	defer s.tidied.mu.Unlock()
	type chunk struct {
		events int
		last   string
	}
	var chunks []chunk
	err := s.run(ctx, op, "tidy_chunk", into(&chunks, func(rows *sql.Rows) (c chunk, err error) {
		err = rows.Scan(&c.events, &c.last)
		return c, err
	}), s.sideEvent(s.tidied.event), tidyChunk)
	if err != nil {
		return err
	}
	found := chunks[0]
	if found.events > 0 {
		if err := s.run(ctx, op, "tidy", nil, s.sideEvent(s.tidied.event), s.sideEvent(found.last)); err != nil {
			return err
		}
	}
	s.tidied.event = found.last
	if found.events < tidyChunk {
		s.tidied.event = ""
	}
	return nil
}

// sideEvent is the id of an event, as a side table gave it, for a statement's parameter: what the side tables of a mapped
// table hold need not be an id there any more. Empty stands before the lowest.
func (s *Store) sideEvent(id string) any {
	if s.mapping != nil {
		return id
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil { // empty
		return int64(-1)
	}
	return n
}

// tidied is how far Tidy has come.
type tidied struct {
	mu    sync.Mutex
	event string // the last one that it looked at; empty before the first
}

// cleanDenied says what cleaning a mapped table needs: Verify does not know whether there is a retention.
func (s *Store) cleanDenied(err error) error {
	if denied, ok := errors.AsType[*Error](err); ok && errors.Is(denied.Cause, ErrDenied) && s.mapping != nil && !s.config.DeletePublished {
		denied.Hint = "a retention needs more than `postrider check` looks for: GRANT DELETE ON " + s.config.Table + " TO the user in outbox.dsn, or set relay.retention to 0"
	}
	return err
}
