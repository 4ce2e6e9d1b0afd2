package sqlstore

import (
	"context"
	"database/sql"

	"github.com/postrider/postrider/relay"
)

// Clean implements relay.Store. It walks the table in the order of the primary key. Beside published events it
// deletes discarded ones, once the decision to discard them is older than the retention, and with each event its
// attempts. At the end of a walk it does what Tidy does.
func (s *Store) Clean(ctx context.Context, req relay.CleanRequest) (relay.CleanResult, error) {
	const op = "clean"
	ids, err := s.ids(ctx, op)
	if err != nil {
		return relay.CleanResult{}, err
	}
	after, err := ids.after(req.After)
	if err != nil {
		return relay.CleanResult{}, s.fail(op, err)
	}
	var chunks []chunk
	err = s.run(ctx, op, "chunk", into(&chunks, scanChunk), after, req.Retention.Seconds(), req.Limit)
	if err != nil {
		return relay.CleanResult{}, err
	}
	c := chunks[0]
	var deleted []string
	if err := s.run(ctx, op, "clean", into(&deleted, scanValue[string]), after, req.Limit, c.cutoff); err != nil {
		return relay.CleanResult{}, s.cleanDenied(err)
	}
	result := relay.CleanResult{Deleted: len(deleted), Last: c.last, Done: c.rows < req.Limit || !c.old}
	if result.Done {
		return result, s.Tidy(ctx)
	}
	return result, nil
}

// chunk is the part of the table that one Clean looks at.
type chunk struct {
	last   string
	rows   int
	old    bool   // its last row was created before the cutoff, so that more to delete can lie behind it
	cutoff string // in the database's own words
}

func scanChunk(rows *sql.Rows) (c chunk, err error) {
	err = rows.Scan(&c.last, &c.rows, &c.old, &c.cutoff)
	return c, err
}
