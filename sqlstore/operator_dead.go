package sqlstore

import (
	"context"
	"database/sql"

	"github.com/postrider/postrider/operator"
)

// maxGrouped is how many dead letters DeadGroups looks at.
const maxGrouped = 10_000

// DeadGroups implements operator.Store. It looks at the 10,000 dead letters with the lowest ids.
func (s *Store) DeadGroups(ctx context.Context, limit int) ([]operator.DeadGroup, error) {
	var letters []operator.DeadGroup
	err := s.run(ctx, "group dead letters", "dead", into(&letters, scanLetter), maxGrouped)
	if err != nil {
		return nil, err
	}
	groups := operator.Group(letters)
	return groups[:min(limit, len(groups))], nil
}

// scanLetter reads a dead letter as a group of one.
func scanLetter(rows *sql.Rows) (operator.DeadGroup, error) {
	g := operator.DeadGroup{Count: 1}
	var holds bool
	err := rows.Scan(&g.Sink, &g.AggregateType, &g.EventType, &g.Error, &g.Sample, (*moment)(&g.Oldest), &holds)
	g.Error = operator.Fingerprint(g.Error)
	if holds {
		g.Holding = 1
	}
	return g, err
}
