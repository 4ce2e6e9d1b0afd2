package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// Report says how messages differ from the ledger. The lists hold one line for each difference.
type Report struct {
	Committed  int // events that must have arrived
	RolledBack int // events that were added and rolled back
	Messages   int
	Duplicates int // messages beyond the first of each event; allowed, and to be bounded by the caller

	Missing    []string // committed events that did not arrive
	Ghosts     []string // messages that no committed event explains
	OutOfOrder []string // first deliveries of a key that came after a later event of it, or in another partition
	Altered    []string // payloads that are not the bytes that were written
	Envelopes  []string // keys and headers that are not what design.md, "What consumers see", promises
}

// Check compares messages, all that a topic holds, with the ledger of the events that were to go there. aggregateType is
// that of all events.
func Check(aggregateType string, events []Event, messages []Message) *Report {
	r := &Report{Messages: len(messages)}
	expected := make(map[string]*Event, len(events))
	for i := range events {
		if !events[i].Committed {
			r.RolledBack++
			continue
		}
		expected[events[i].EventID] = &events[i]
	}
	r.Committed = len(expected)

	messages = slices.Clone(messages)
	slices.SortStableFunc(messages, func(a, b Message) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	order := newOrder()
	arrived := make(map[string]bool, len(messages))
	for i := range messages {
		m := &messages[i]
		e := expected[m.Header("X-Event-Id")]
		if e == nil {
			r.Ghosts = append(r.Ghosts, describe(m))
			continue
		}
		r.checkContent(aggregateType, e, m)
		if arrived[e.EventID] {
			r.Duplicates++
			continue
		}
		arrived[e.EventID] = true
		if problem := order.next(e, m); problem != "" {
			r.OutOfOrder = append(r.OutOfOrder, problem)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(expected)) {
		if !arrived[id] {
			r.Missing = append(r.Missing, fmt.Sprintf("event %s of key %s, number %d", id, expected[id].Key, expected[id].Sequence))
		}
	}
	return r
}

// Err returns nil when nothing is missing, ghostly, out of order or altered, however many duplicates there are. The
// error shows a few of the differences of each kind.
func (r *Report) Err() error {
	return errors.Join(
		sample("events are missing", r.Missing),
		sample("messages are ghosts", r.Ghosts),
		sample("first deliveries are out of order", r.OutOfOrder),
		sample("payloads are altered", r.Altered),
		sample("envelopes are wrong", r.Envelopes),
	)
}

// String is one line for a log.
func (r *Report) String() string {
	return fmt.Sprintf("%d committed, %d rolled back, %d messages, %d duplicates, %d missing, %d ghosts, %d out of order, %d altered, %d wrong envelopes",
		r.Committed, r.RolledBack, r.Messages, r.Duplicates, len(r.Missing), len(r.Ghosts), len(r.OutOfOrder), len(r.Altered), len(r.Envelopes))
}

func sample(what string, differences []string) error {
	const shown = 5
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("%d %s, such as %q", len(differences), what, differences[:min(shown, len(differences))])
}

func describe(m *Message) string {
	return fmt.Sprintf("%s/%d@%d: event %s of key %s", m.Topic, m.Partition, m.Offset, m.Header("X-Event-Id"), m.Key)
}

func (r *Report) checkContent(aggregateType string, e *Event, m *Message) {
	if Digest(m.Payload) != e.SHA256 {
		r.Altered = append(r.Altered, describe(m))
	}
	if m.Key != e.Key {
		r.Envelopes = append(r.Envelopes, fmt.Sprintf("%s: the key is not %s", describe(m), e.Key))
	}
	want := slices.Concat([]Header{
		{"X-Event-Id", e.EventID},
		{"X-Idempotency-Key", e.EventID},
		{"X-Event-Type", e.Type},
		{"X-Aggregate-Type", aggregateType},
		{"X-Aggregate-Id", e.Key},
		{"X-Outbox-Id", outboxID(m)},
		{"X-Aggregate-Version", strconv.FormatInt(e.Sequence, 10)},
		{"content-type", "application/json"},
	}, ownHeaders(e))
	if !slices.Equal(m.Headers, want) {
		r.Envelopes = append(r.Envelopes, fmt.Sprintf("%s: headers %q instead of %q", describe(m), m.Headers, want))
	}
}

var number = regexp.MustCompile(`^[1-9][0-9]*$`)

// outboxID is the only header that a producer does not know: any number will do.
func outboxID(m *Message) string {
	if id := m.Header("X-Outbox-Id"); number.MatchString(id) {
		return id
	}
	return "a number"
}

func ownHeaders(e *Event) []Header {
	var headers []Header
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		headers = append(headers, Header{name, e.Headers[name]})
	}
	return headers
}

// order watches the first deliveries of each key.
type order struct {
	last      map[string]int64
	partition map[string]int
}

func newOrder() *order {
	return &order{last: make(map[string]int64), partition: make(map[string]int)}
}

func (o *order) next(e *Event, m *Message) (problem string) {
	last, known := o.last[e.Key]
	o.last[e.Key] = max(last, e.Sequence)
	switch {
	case known && o.partition[e.Key] != m.Partition:
		return fmt.Sprintf("%s: earlier events of the key are in partition %d", describe(m), o.partition[e.Key])
	case e.Sequence <= last:
		return fmt.Sprintf("%s: number %d came after number %d", describe(m), e.Sequence, last)
	}
	o.partition[e.Key] = m.Partition
	return ""
}
