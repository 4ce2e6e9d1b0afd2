package operator

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Group adds up groups of one cause, largest first.
func Group(letters []DeadGroup) []DeadGroup {
	type key struct{ sink, aggregateType, eventType, cause string }
	index := map[key]int{}
	var groups []DeadGroup
	for _, letter := range letters {
		k := key{letter.Sink, letter.AggregateType, letter.EventType, letter.Error}
		i, known := index[k]
		if !known {
			index[k] = len(groups)
			groups = append(groups, letter)
			continue
		}
		groups[i].Count++
		groups[i].Holding += letter.Holding
		groups[i].Oldest = earlier(groups[i].Oldest, letter.Oldest)
	}
	slices.SortStableFunc(groups, func(a, b DeadGroup) int { return cmp.Compare(b.Count, a.Count) })
	return groups
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

var (
	anyUUID = regexp.MustCompile(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	// A quote behind a letter or a digit is an apostrophe, and so is one before a letter within quotes.
	quoted = regexp.MustCompile(`"[^"]*"|(^|[^\pL\pN])'[^']*('\pL[^']*)*'`)
	number = regexp.MustCompile(`\b(0x)?[0-9][0-9a-fA-F]{7,}\b|[0-9]+`)
)

// Fingerprint is an error without its variable parts, such as ids and numbers, by which errors of one cause are alike.
func Fingerprint(text string) string {
	text = anyUUID.ReplaceAllString(text, "<uuid>")
	text = quoted.ReplaceAllStringFunc(text, func(quoted string) string {
		if !strings.ContainsAny(quoted, "0123456789") {
			return quoted
		}
		return quoted[:strings.IndexAny(quoted, `"'`)] + "<id>"
	})
	return number.ReplaceAllString(text, "<n>")
}
