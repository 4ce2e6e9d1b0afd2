package sqlstore

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// term is what a field of a Mapping says about where a value comes from: the first of its parts that is not NULL.
type term []part

// part is one of: a column, perhaps with the path to a member of the JSON in it; a constant; an SQL expression.
type part struct {
	column     string
	path       []string
	constant   *string
	expression string // with its parentheses
}

// parseTerm reads a term; an empty one has no parts.
func parseTerm(text string) (term, error) {
	var t term
	for _, piece := range splitTerm(text) {
		p, err := parsePart(strings.TrimSpace(piece))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		t = append(t, p)
	}
	return t, nil
}

// splitTerm cuts at the commas that stand neither in parentheses nor in quotes.
func splitTerm(text string) (pieces []string) {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	depth, quoted, start := 0, false, 0
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			pieces, start = append(pieces, text[start:i]), i+1
		}
	}
	return append(pieces, text[start:])
}

func parsePart(text string) (part, error) {
	switch {
	case strings.HasPrefix(text, "("):
		if !strings.HasSuffix(text, ")") {
			return part{}, errors.New("an expression ends with its parenthesis")
		}
		return part{expression: oneLine(text)}, nil
	case strings.HasPrefix(text, "'"):
		inner, ok := strings.CutSuffix(text[1:], "'")
		if !ok || strings.Contains(inner, "'") {
			return part{}, errors.New("a constant stands between two single quotes")
		}
		return part{constant: &inner}, nil
	}
	names := strings.Split(text, "->")
	if slices.ContainsFunc(names, func(name string) bool { return !isName(name) }) {
		return part{}, errors.New("it is no column, column->member, 'constant' or (expression)")
	}
	return part{column: names[0], path: names[1:]}, nil
}

// isName refuses what a name would have to be escaped for, and what means something else.
func isName(name string) bool {
	return name != "" && !strings.ContainsAny(name, "\x00\r\n\"'`\\;{}()") && !strings.Contains(name, "->")
}

// oneLine keeps SQL of the user's from being taken for the end of a statement or the start of a comment.
func oneLine(sql string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(sql) }

var timeZone = regexp.MustCompile(`^([+-][0-9]{2}:[0-9]{2}|[A-Za-z0-9_+/-]+)$`)

// withDefaults fills in what follows from other fields.
func (m Mapping) withDefaults(table string, payload Payload) Mapping {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&m.EventID, m.ID)
	fill(&m.AggregateType, "'"+table+"'")
	fill(&m.AggregateID, m.PartitionKey)
	if payload == PayloadBinary {
		fill(&m.ContentType, "'application/octet-stream'")
	}
	fill(&m.ContentType, "'application/json'")
	fill(&m.TimeZone, "UTC")
	return m
}

// key is the term of the key.
func (m *Mapping) key() string { return cmp.Or(m.PartitionKey, m.AggregateID) }

// check finds what is wrong with a mapping by itself, all of it.
func (m Mapping) check(deletePublished bool) error {
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf("mapping: "+format, args...)) }
	for _, f := range m.fields() {
		switch {
		case f.required && *f.value == "":
			problem("%s is missing", f.name)
		case *f.value == "":
		case f.isColumn && !isName(*f.value):
			problem("%s is %q; it must be the name of a column", f.name, *f.value)
		default:
			if _, err := parseTerm(*f.value); err != nil {
				problem("%s: %w", f.name, err)
			}
		}
	}
	if m.Status != "" && (len(m.Words.Pending) == 0 || slices.Contains(m.Words.Pending, "")) {
		problem("status.pending is missing: which words of the column %s wait to be sent?", m.Status)
	}
	if m.Status != "" && m.Words.Published == "" && !deletePublished {
		problem("status.published is missing: which word of the column %s says that an event was published?", m.Status)
	}
	if twice := m.Words.twice(); twice != "" {
		problem("the word %q stands for two states", twice)
	}
	if m.Status == "" && m.PublishedAt == "" && !deletePublished {
		problem("nothing can mark a row as published: name status or published_at, or have published rows deleted")
	}
	if !timeZone.MatchString(m.TimeZone) {
		problem(`time_zone is %q; it must be "UTC", an offset such as "+09:00", or a name such as "Asia/Seoul"`, m.TimeZone)
	}
	if m.SideSchema != "" && !isName(m.SideSchema) {
		problem("side_schema is %q, which is no name", m.SideSchema)
	}
	return errors.Join(errs...)
}

// field is a field of a Mapping that names a column or holds a term.
type field struct {
	name     string // as people who write a configuration file know it
	value    *string
	isColumn bool
	required bool
	kinds    []string // that a column may be of; nil: any but bytes
}

// The kinds of types that the databases' their_columns.sql tell apart.
const (
	kindInteger = "integer"
	kindText    = "text"
	kindUUID    = "uuid"
	kindEnum    = "enum"
	kindBoolean = "boolean"
	kindTime    = "time"
	kindJSON    = "json"
	kindJSONB   = "jsonb"
	kindBytes   = "bytes"
)

func (m *Mapping) fields() []field {
	list := []field{
		{name: "id", value: &m.ID, isColumn: true, required: true, kinds: []string{kindInteger, kindUUID, kindText}},
		{name: "order", value: &m.Order, isColumn: true, kinds: []string{kindInteger, kindTime, kindUUID, kindText}},
		{name: "event_id", value: &m.EventID},
		{name: "aggregate_type", value: &m.AggregateType},
		{name: "aggregate_id", value: &m.AggregateID, required: true},
		{name: "partition_key", value: &m.PartitionKey},
		{name: "event_type", value: &m.EventType, required: true},
		{name: "aggregate_version", value: &m.AggregateVersion, isColumn: true, kinds: []string{kindInteger}},
		{name: "topic", value: &m.Topic},
		{name: "content_type", value: &m.ContentType},
		{name: "dedup_key", value: &m.DedupKey},
		{name: "payload", value: &m.Payload, required: true, kinds: []string{kindJSON, kindJSONB, kindText, kindBytes}},
		{name: "headers", value: &m.Headers, kinds: []string{kindJSON, kindJSONB, kindText}},
		{name: "status", value: &m.Status, isColumn: true, kinds: []string{kindText, kindEnum, kindInteger, kindBoolean}},
		{name: "published_at", value: &m.PublishedAt, isColumn: true, kinds: []string{kindTime}},
		{name: "retry_count", value: &m.RetryCount, isColumn: true, kinds: []string{kindInteger}},
		{name: "next_attempt_at", value: &m.NextAttemptAt, isColumn: true, kinds: []string{kindTime}},
		{name: "last_error", value: &m.LastError, isColumn: true, kinds: []string{kindText}},
		{name: "updated_at", value: &m.UpdatedAt, isColumn: true, kinds: []string{kindTime}},
		{name: "published_to", value: &m.PublishedTo, isColumn: true, kinds: []string{kindText}},
		{name: "claim_token", value: &m.ClaimToken, isColumn: true, kinds: []string{kindText, kindUUID}},
		{name: "processing_until", value: &m.ProcessingUntil, isColumn: true, kinds: []string{kindTime}},
		{name: "created_at", value: &m.CreatedAt, isColumn: true, kinds: []string{kindTime, kindInteger}},
	}
	for name, text := range m.HeaderTerms {
		list = append(list, field{name: "the header " + name, value: &text, required: true})
	}
	return list
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
