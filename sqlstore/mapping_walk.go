package sqlstore

import (
	"strconv"
	"strings"

	"github.com/postrider/postrider/relay"
)

// walk says how the pending rows are gone through in outbox order: the words to go through, the condition, the order. With
// an index that begins with the column of the state, the order names that column.
func (w *terms) walk() (words, condition, order string) {
	order = w.rowOrder()
	if w.word() == "" || !w.t.hasIndex(w.word()) {
		return "(1)", w.isPending("e.word"), order
	}
	order = "e.word, " + order
	if w.m.Status == "" {
		return "(1)", w.isPending("e.word"), order
	}
	for _, word := range w.m.Words.Pending {
		words += ", (" + w.cast(w.literal(word), w.column(w.m.Status)) + ")"
	}
	return words[2:], "e.word >= w.word AND e.word <= w.word", order
}

// rowOrder is the outbox order of the rows with one word.
func (w *terms) rowOrder() string {
	if w.t.isUnique(w.order()) {
		return "e.ord"
	}
	return "e.ord, e.id"
}

// eachWord fills a part of a statement, which goes through the rows with one of the pending words, for each of them.
func (w *terms) eachWord(part string, tokens map[string]string) (string, error) {
	var parts []string
	for _, condition := range w.eachPending() {
		tokens["pending_word"] = condition
		filled, err := fill(part, tokens)
		if err != nil {
			return "", err
		}
		parts = append(parts, strings.Join(split(filled), "\n"))
	}
	return strings.Join(parts, "\nUNION ALL\n"), nil
}

// eachPending are conditions that select the rows that wait, by one word each.
func (w *terms) eachPending() (conditions []string) {
	if w.m.Status == "" {
		return []string{w.isPending("e.word")}
	}
	for _, word := range w.m.Words.Pending {
		conditions = append(conditions, w.says("e.word", word))
	}
	return conditions
}

// walkHint makes the database go through the rows that wait by the best index that there is for it.
func (w *terms) walkHint() string {
	for _, columns := range [][]string{w.walked(), w.walked()[:1]} {
		if name := w.t.indexOf(columns...); name != "" {
			return w.useIndex(name)
		}
	}
	return ""
}

// wanted is the condition that an event e may be returned by a read, but for what failed. Without shards it may be of any.
func (w *terms) wanted(req relay.ReadRequest) string {
	var shards, flying, kinds, keys []string
	for _, shard := range req.Shards {
		shards = append(shards, strconv.Itoa(shard))
	}
	for _, id := range req.InFlight {
		flying = append(flying, w.id(id))
	}
	for _, k := range req.Skip {
		kinds = append(kinds, "("+w.literal(k.AggregateType)+", "+w.literal(k.EventType)+")")
	}
	for _, key := range req.SkipKeys {
		keys = append(keys, w.literal(key))
	}
	condition := "1 = 1"
	if len(shards) > 0 {
		condition = "e.shard IN (" + strings.Join(shards, ", ") + ")"
	}
	for _, unwanted := range []struct {
		what string
		list []string
	}{{"e.id", flying}, {"(e.aggregate_type, e.event_type)", kinds}, {"e.event_key", keys}} {
		if len(unwanted.list) > 0 {
			condition += " AND " + unwanted.what + " NOT IN (" + strings.Join(unwanted.list, ", ") + ")"
		}
	}
	return condition
}
