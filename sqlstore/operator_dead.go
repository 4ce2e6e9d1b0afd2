package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"regexp"
	"slices"
	"time"

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
	groups := group(letters)
	return groups[:min(limit, len(groups))], nil
}

// scanLetter reads a dead letter as a group of one.
func scanLetter(rows *sql.Rows) (operator.DeadGroup, error) {
	g := operator.DeadGroup{Count: 1}
	err := rows.Scan(&g.AggregateType, &g.EventType, &g.Error, &g.Sample, (*moment)(&g.Oldest))
	g.Error = cause(g.Error)
	return g, err
}

// group adds up groups of one cause, largest first.
func group(letters []operator.DeadGroup) []operator.DeadGroup {
	type key struct{ aggregateType, eventType, cause string }
	index := map[key]int{}
	var groups []operator.DeadGroup
	for _, letter := range letters {
		k := key{letter.AggregateType, letter.EventType, letter.Error}
		i, known := index[k]
		if !known {
			index[k] = len(groups)
			groups = append(groups, letter)
			continue
		}
		groups[i].Count++
		groups[i].Oldest = earlier(groups[i].Oldest, letter.Oldest)
	}
	slices.SortStableFunc(groups, func(a, b operator.DeadGroup) int { return cmp.Compare(b.Count, a.Count) })
	return groups
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

var (
	anyUUID  = regexp.MustCompile(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	quotedID = regexp.MustCompile(`"[^"]*[0-9][^"]*"|'[^']*[0-9][^']*'`)
	number   = regexp.MustCompile(`\b(0x)?[0-9][0-9a-fA-F]{7,}\b|[0-9]+`)
)

// cause is an error without its variable parts.
func cause(text string) string {
	text = anyUUID.ReplaceAllString(text, "<uuid>")
	text = quotedID.ReplaceAllString(text, "<id>")
	return number.ReplaceAllString(text, "<n>")
}
