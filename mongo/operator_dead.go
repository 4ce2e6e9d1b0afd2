package mongo

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/operator"
)

// maxGrouped is how many dead letters DeadGroups looks at.
const maxGrouped = 10_000

// DeadGroups implements operator.Store. It looks at the 10,000 dead letters with the lowest ids.
func (s *Store) DeadGroups(ctx context.Context, limit int) ([]operator.DeadGroup, error) {
	type letter struct {
		AggregateType string    `bson:"aggregate_type"`
		EventType     string    `bson:"event_type"`
		EventID       string    `bson:"event_id"`
		LastError     string    `bson:"last_error"`
		CreatedAt     time.Time `bson:"created_at"`
	}
	letters, err := find[letter](ctx, s.events, dead, options.Find().SetSort(ascending("_id")).SetLimit(maxGrouped).
		SetProjection(bson.M{"aggregate_type": 1, "event_type": 1, "event_id": 1, "last_error": 1, "created_at": 1}))
	if err != nil {
		return nil, s.fail("group dead letters", err)
	}
	ones := make([]operator.DeadGroup, len(letters))
	for i, l := range letters {
		ones[i] = operator.DeadGroup{AggregateType: l.AggregateType, EventType: l.EventType, Error: cause(l.LastError),
			Count: 1, Oldest: l.CreatedAt.UTC(), Sample: l.EventID}
	}
	groups := group(ones)
	return groups[:min(limit, len(groups))], nil
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
