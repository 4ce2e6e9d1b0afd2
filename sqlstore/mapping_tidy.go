package sqlstore

import (
	"context"
	"database/sql"
	"errors"
)

// tidyChunk bounds how many events with side rows one Tidy looks at.
const tidyChunk = 1000

// Tidy deletes the sets of jobs that have ended, and jobs that ended longer ago than operator.JobRetention. Beside a mapped
// table it deletes the side rows whose events are gone, because the application deleted them, or for which they no longer
// hold. Each call looks at up to 1000 events that have side rows, from where the last call of this Store ended, and
// starts again behind the last one; what others have locked is left for the next walk. Clean calls it at the end of a walk,
// so only those who keep published events for ever call it themselves, now and then.
func (s *Store) Tidy(ctx context.Context) error {
	const op = "tidy"
	if err := s.tidyJobs(ctx, op); err != nil || s.mapping == nil {
		return err
	}
	t, err := s.theirTable(ctx, op)
	if err != nil {
		return err
	}
	t.tidying.Lock()
	defer t.tidying.Unlock()
	type chunk struct {
		events int
		last   string
	}
	var chunks []chunk
	err = s.run(ctx, op, "tidy_chunk", into(&chunks, func(rows *sql.Rows) (c chunk, err error) {
		err = rows.Scan(&c.events, &c.last)
		return c, err
	}), t.tidied, tidyChunk)
	if err != nil {
		return err
	}
	if err := s.run(ctx, op, "tidy", nil, t.tidied, chunks[0].last); err != nil {
		return err
	}
	t.tidied = chunks[0].last
	if chunks[0].events < tidyChunk {
		t.tidied = ""
	}
	return nil
}

// cleanDenied says what cleaning a mapped table needs: Verify does not know whether there is a retention.
func (s *Store) cleanDenied(err error) error {
	if denied, ok := errors.AsType[*Error](err); ok && denied.Cause == ErrDenied && s.mapping != nil && !s.config.DeletePublished {
		denied.Hint = "a retention needs more than `postrider check` looks for: GRANT DELETE ON " + s.config.Table + " TO the user in outbox.dsn, or set relay.retention to 0"
	}
	return err
}
