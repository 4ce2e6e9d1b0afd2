package mongo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Mapping says how a collection that somebody else designed is read and written as an outbox. Nothing is written to its
// documents but the fields that are named here, and no index is created on it: what the documents lack stands in side
// collections, which Init creates. AggregateID, EventType, Payload, Status and the Words that are not marked as optional
// are required. An _id may be of any type.
//
// A field is named by its path, such as status or meta.topic. A field that is only read may hold a term instead:
//
//	payload.userId, objectId   the first of these fields that is there and not null, as text
//	'order'                    this text for every document
type Mapping struct {
	// Order is the field whose ascending values are the outbox order. Default: _id. Order per key is as good as the
	// values: ObjectIds of two processes are not in order within one second.
	Order string

	EventID       string // term of the identity that sinks and consumers see; default: _id, which is hex for an ObjectId
	AggregateType string // term; default: the name of the collection, for every document
	AggregateID   string // term of the key
	EventType     string // term
	Topic         string // term; default: the route decides
	ContentType   string // term; default: application/octet-stream for binary data, otherwise application/json
	DedupKey      string // term, only shown; default: none

	// Payload is the field of the payload. A string and binary data are sent as they are, a document is sent as JSON:
	// relaxed extended JSON where a value is of a type that JSON lacks. A document that has anything else there is
	// malformed, and so is one with a string that is no JSON, unless its content type says that it need not be.
	Payload string

	Headers     string            // field of a document of strings
	HeaderTerms map[string]string // further headers, by name; one whose term is null is left out

	Status string // field of the state
	Words  Words  // its values

	// Fields that are written, if they are named, so that the tools of the collection show what becomes of an event. Times
	// are dates. NextAttemptAt is read, too: an event whose time lies in the future waits.
	RetryCount    string
	NextAttemptAt string
	LastError     string
	UpdatedAt     string
	PublishedAt   string
	PublishedTo   string

	// ClaimToken and ProcessingUntil are the fields of row claims: who has the document, and until when. Without them it
	// can only be shared by leases. A document that somebody else has claimed in this way is left alone until his time is over.
	ClaimToken      string
	ProcessingUntil string

	CreatedAt string // field of the date at which the event was added; default: the time in an ObjectId

	// Filter is a condition, in extended JSON such as {"tenant": "eu"}; documents for which it does not hold do not belong
	// to the outbox. Default: none.
	Filter string
}

// Words are the values by which the field Mapping.Status tells the state of an event.
type Words struct {
	Pending    []string // the first is written when an event is sent again
	Processing string   // optional; without it a claimed document keeps its pending word, and ClaimToken alone tells
	Published  string   // may be empty with StoreConfig.DeletePublished
	Dead       string
	Discarded  string // optional; default: Dead, and a side collection tells the two apart
}

func (m Mapping) withDefaults(collection string) Mapping {
	m.Words.Pending = slices.Clone(m.Words.Pending)
	for field, value := range map[*string]string{
		&m.Order: "_id", &m.EventID: "_id", &m.AggregateType: "'" + collection + "'", &m.Words.Discarded: m.Words.Dead,
	} {
		if *field == "" {
			*field = value
		}
	}
	return m
}

// mappedField is a field of a Mapping.
type mappedField struct {
	name     string // as people who write a configuration file know it
	value    string
	isTerm   bool
	required bool
}

func (m *Mapping) fields() []mappedField {
	list := []mappedField{
		{"order", m.Order, false, false},
		{"event_id", m.EventID, true, false},
		{"aggregate_type", m.AggregateType, true, false},
		{"aggregate_id", m.AggregateID, true, true},
		{"event_type", m.EventType, true, true},
		{"topic", m.Topic, true, false},
		{"content_type", m.ContentType, true, false},
		{"dedup_key", m.DedupKey, true, false},
		{"payload", m.Payload, false, true},
		{"headers", m.Headers, false, false},
		{"status", m.Status, false, true},
		{"retry_count", m.RetryCount, false, false},
		{"next_attempt_at", m.NextAttemptAt, false, false},
		{"last_error", m.LastError, false, false},
		{"updated_at", m.UpdatedAt, false, false},
		{"published_at", m.PublishedAt, false, false},
		{"published_to", m.PublishedTo, false, false},
		{"claim_token", m.ClaimToken, false, false},
		{"processing_until", m.ProcessingUntil, false, false},
		{"created_at", m.CreatedAt, false, false},
	}
	for name, value := range m.HeaderTerms {
		list = append(list, mappedField{"the header " + name, value, true, true})
	}
	return list
}

// check returns every mistake in the mapping.
func (m *Mapping) check(deletePublished bool) error {
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf("mapping: "+format, args...)) }
	for _, f := range m.fields() {
		switch {
		case f.value == "" && f.required:
			problem("%s is missing", f.name)
		case f.value == "":
		case f.isTerm:
			if _, err := parseTerm(f.value); err != nil {
				problem("%s: %w", f.name, err)
			}
		case !isPath(f.value):
			problem("%s is %q; it must be the name of a field", f.name, f.value)
		}
	}
	if len(m.Words.Pending) == 0 || slices.Contains(m.Words.Pending, "") {
		problem("status.pending is missing: which words of the field %s wait to be sent?", m.Status)
	}
	if m.Words.Published == "" && !deletePublished {
		problem("status.published is missing: which word of the field %s says that an event was published?", m.Status)
	}
	if m.Words.Dead == "" {
		problem("status.dead is missing: which word of the field %s says that an event is given up?", m.Status)
	}
	if twice := m.Words.twice(); twice != "" {
		problem("the word %q stands for two states", twice)
	}
	if (m.ClaimToken == "") != (m.ProcessingUntil == "") {
		problem("claim_token and processing_until belong together: name both fields or none")
	}
	if _, err := m.filter(); err != nil {
		problem("filter is no condition in extended JSON: %w", err)
	}
	return errors.Join(errs...)
}

// twice returns a word that stands for two states, except that DEAD and DISCARDED may share one.
func (w Words) twice() string {
	seen := map[string]bool{}
	for _, word := range slices.Concat(w.Pending, []string{w.Processing, w.Published, w.Dead}) {
		if word != "" && seen[word] {
			return word
		}
		seen[word] = true
	}
	if w.Discarded != w.Dead && seen[w.Discarded] {
		return w.Discarded
	}
	return ""
}

// known are all words that tell a state.
func (w Words) known() []string {
	words := slices.Concat(w.Pending, []string{w.Processing, w.Published, w.Dead, w.Discarded})
	return slices.DeleteFunc(words, func(word string) bool { return word == "" })
}

func (m *Mapping) filter() (condition bson.M, err error) {
	if strings.TrimSpace(m.Filter) == "" {
		return bson.M{}, nil
	}
	err = bson.UnmarshalExtJSON([]byte(m.Filter), false, &condition)
	return condition, err
}
