package operator

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// String describes the filter in one line, for people, such as `event_type=placed error~"timeout"`. The zero Filter is
// "all events".
func (f Filter) String() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+value)
		}
	}
	add("id=", shortList(f.IDs))
	add("state=", string(f.State))
	add("aggregate_type=", quoteOdd(f.AggregateType))
	add("aggregate_id=", quoteOdd(f.AggregateID))
	add("event_type=", quoteOdd(f.EventType))
	add("sink=", quoteOdd(f.Sink))
	if f.ErrorContains != "" {
		add("error~", strconv.Quote(f.ErrorContains))
	}
	add("id>", quoteOdd(f.After))
	if f.Limit > 0 {
		add("limit=", strconv.Itoa(f.Limit))
	}
	if len(parts) == 0 {
		return "all events"
	}
	return strings.Join(parts, " ")
}

// shortList names the first of many ids.
func shortList(ids []string) string {
	const shown = 10
	var list []string
	for _, id := range ids[:min(len(ids), shown)] {
		list = append(list, quoteOdd(id))
	}
	text := strings.Join(list, ",")
	if len(ids) > shown {
		text += fmt.Sprintf(",... (%d ids)", len(ids))
	}
	return text
}

var plain = regexp.MustCompile(`^[\pL\pN_.:/@*-]*$`)

// quoteOdd quotes what could be taken for more than one word.
func quoteOdd(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return strconv.Quote(value)
}
