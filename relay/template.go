package relay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// template is a text in which fields of an event stand in braces.
type template []piece

// piece is a literal, or a field.
type piece struct {
	literal string
	field   func(*Event) string
}

// fields are what templates can hold.
var fields = map[string]func(*Event) string{
	"aggregate_type": func(e *Event) string { return e.AggregateType },
	"aggregate_id":   func(e *Event) string { return e.AggregateID },
	"event_type":     func(e *Event) string { return e.EventType },
	"event_id":       func(e *Event) string { return e.EventID },
	"outbox_id":      func(e *Event) string { return e.ID },
	"key":            (*Event).Key,
	"aggregate_version": func(e *Event) string {
		if e.AggregateVersion == nil {
			return ""
		}
		return strconv.FormatInt(*e.AggregateVersion, 10)
	},
}

// TopicFields lists the names that a topic template may hold in braces.
func TopicFields() []string { return []string{"aggregate_type", "aggregate_id", "event_type"} }

// KeyFields lists the names that a key template may hold in braces.
func KeyFields() []string { return []string{"aggregate_type", "key"} }

// HeaderFields lists the names that the template of a header may hold in braces.
func HeaderFields() []string {
	return []string{"aggregate_type", "aggregate_id", "event_type", "event_id", "outbox_id", "key", "aggregate_version"}
}

// parseTemplate takes a template with some of the fields.
func parseTemplate(text string, known []string) (t template, err error) {
	for rest := text; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		if literal != "" {
			t = append(t, piece{literal: literal})
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		switch {
		case !closed:
			return nil, fmt.Errorf("%q: { without }", text)
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("%q: unknown field {%s}, known are %s", text, name, strings.Join(known, ", "))
		}
		t = append(t, piece{field: fields[name]})
		rest = tail
	}
	return t, nil
}

// of fills the template for an event.
func (t template) of(e *Event) string {
	if len(t) == 1 {
		return t[0].of(e)
	}
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.of(e))
	}
	return b.String()
}

func (p piece) of(e *Event) string {
	if p.field == nil {
		return p.literal
	}
	return p.field(e)
}

// headerTemplate is one header that a route adds.
type headerTemplate struct {
	name  string
	value template
}
