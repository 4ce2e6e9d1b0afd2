package postrider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postrider/postrider/internal/header"
	"github.com/postrider/postrider/internal/uuid"
)

// checker collects what is wrong with one event.
type checker struct {
	index    int
	problems EventErrors
}

func (c *checker) bad(field, format string, args ...any) {
	c.problems = append(c.problems, &EventError{Index: c.index, Field: field, Problem: fmt.Sprintf(format, args...)})
}

// check returns what is wrong with the event at index.
func (r rules) check(index int, e *Event) EventErrors {
	c := checker{index: index}
	c.id(e.ID)
	c.required("aggregate_type", e.AggregateType)
	c.required("aggregate_id", e.AggregateID)
	c.required("event_type", e.Type)
	if e.AggregateVersion < 0 {
		c.bad("aggregate_version", "is %d: versions count from 1, and 0 means not set", e.AggregateVersion)
	}
	c.optional("topic", e.Topic)
	r.checkPayload(&c, e)
	c.headers(e.Headers)
	c.optional("dedup_key", e.DedupKey)
	if year := e.At.UTC().Year(); !e.At.IsZero() && (year < 1970 || year > 9998) {
		c.bad("next_attempt_at", "is in the year %d: it must be a moment of the years 1970 to 9998", year)
	}
	return c.problems
}

func (r rules) checkPayload(c *checker, e *Event) {
	if len(e.Payload) > r.maxPayload {
		c.bad("payload", "has %d bytes: this outbox takes at most %d (Config.MaxPayload)", len(e.Payload), r.maxPayload)
	} else if !r.binary {
		c.json(e.Payload)
	}
	if r.binary {
		c.required("content_type", e.ContentType)
	} else {
		c.optional("content_type", e.ContentType)
	}
}

func (c *checker) id(id string) {
	if id == "" {
		return
	}
	switch canonical, ok := uuid.Canonical(id); {
	case !ok:
		c.bad("event_id", "is no UUID in the form of 36 characters")
	case canonical == uuid.Nil:
		c.bad("event_id", "is the nil UUID, which identifies nothing")
	}
}

func (c *checker) required(field, value string) {
	if value == "" {
		c.bad(field, "is empty: it must be set")
		return
	}
	c.optional(field, value)
}

func (c *checker) optional(field, value string) {
	if len(value) > MaxField {
		c.bad(field, "has %d bytes: it takes at most %d", len(value), MaxField)
	}
	c.text(field, "", value)
}

// text checks what no column, or no broker, takes in a text. prefix says which text of the field it is.
func (c *checker) text(field, prefix, value string) {
	if !utf8.ValidString(value) {
		c.bad(field, "%sis not valid UTF-8", prefix)
	} else if i := strings.IndexFunc(value, unicode.IsControl); i >= 0 {
		control, _ := utf8.DecodeRuneInString(value[i:])
		c.bad(field, "%shas the control character %U at byte %d", prefix, control, i)
	}
}

func (c *checker) json(payload []byte) {
	switch {
	case len(payload) == 0:
		c.bad("payload", "is empty: it must be a JSON value (for other bytes set Config.Binary)")
	case !utf8.Valid(payload):
		c.bad("payload", "is not valid UTF-8 (for other bytes set Config.Binary)")
	case !json.Valid(payload):
		c.bad("payload", "is not valid JSON (for other bytes set Config.Binary)")
	}
}

func (c *checker) headers(headers map[string]string) {
	size := 0
	seen := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		size += len(name) + len(headers[name])
		if mistake := header.Mistake(name); mistake != "" {
			c.bad("headers", "name %.40q %s", name, mistake)
		}
		c.text("headers", fmt.Sprintf("value of %.40q ", name), strings.ReplaceAll(headers[name], "\t", " "))

		folded := strings.ToLower(name)
		if other, ok := seen[folded]; ok {
			c.bad("headers", "has both %.40q and %.40q: names must differ by more than case", other, name)
		}
		seen[folded] = name
	}
	if size > MaxHeaders {
		c.bad("headers", "have %d bytes: they take at most %d together", size, MaxHeaders)
	}
}
