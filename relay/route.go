package relay

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/postrider/postrider/relay/internal/lifecycle"
)

// RetryPolicy says when a failed event is tried again, and when it is given up.
type RetryPolicy = lifecycle.RetryPolicy

// Route says which events go to which sink and topic. The first route that matches an event serves it; an event
// that none matches becomes DEAD with that reason.
type Route struct {
	AggregateType string // pattern in the form of path.Match; empty matches every aggregate type
	EventType     string // pattern in the form of path.Match; empty matches every event type
	Sink          string // name of the sink
	// Topic is a template: {aggregate_type}, {event_type} and {aggregate_id} stand for the event's values. Empty
	// means DefaultTopic. An event with a topic of its own goes there instead.
	Topic   string
	Headers HeaderStyle  // default HeadersPostrider
	Retry   *RetryPolicy // nil means Config.Retry
}

// DefaultTopic is the topic template of a route without one.
const DefaultTopic = "{aggregate_type}"

// TopicFields lists the names that a topic template may hold in braces.
func TopicFields() []string { return []string{"aggregate_type", "event_type", "aggregate_id"} }

// errNoRoute is the reason of events that no route matches.
var errNoRoute = errors.New("no route matches this event: add a route for its aggregate type and event type, then redrive it")

// route is a Route that was checked and resolved.
type route struct {
	Route
	sink    int // index of the sink
	retry   RetryPolicy
	pieces  []topicPiece
	binding CloudEventsBinding // of the sink
}

// topicPiece is a literal, or the name of a field.
type topicPiece struct {
	literal string
	field   string
}

func resolveRoute(r Route, sinks map[string]int, fallback RetryPolicy) (*route, error) {
	var problems []error
	for _, pattern := range []string{r.AggregateType, r.EventType} {
		if _, err := path.Match(pattern, ""); err != nil {
			problems = append(problems, fmt.Errorf("pattern %q: %w", pattern, err))
		}
	}
	sink, ok := sinks[r.Sink]
	if !ok {
		problems = append(problems, fmt.Errorf("unknown sink %q", r.Sink))
	}
	setDefault(&r.Topic, DefaultTopic)
	pieces, err := parseTopic(r.Topic)
	if err != nil {
		problems = append(problems, err)
	}
	setDefault(&r.Headers, HeadersPostrider)
	if !slices.Contains(headerStyles, r.Headers) {
		problems = append(problems, fmt.Errorf("header style %q, must be one of %q", r.Headers, headerStyles))
	}
	resolved := &route{Route: r, sink: sink, retry: fallback, pieces: pieces}
	if r.Retry != nil {
		resolved.retry = *r.Retry
	}
	return resolved, errors.Join(problems...)
}

func parseTopic(template string) ([]topicPiece, error) {
	var pieces []topicPiece
	for rest := template; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		if literal != "" {
			pieces = append(pieces, topicPiece{literal: literal})
		}
		if !found {
			break
		}
		field, tail, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("topic template %q: { without }", template)
		}
		if !validField(field) {
			return nil, fmt.Errorf("topic template %q: unknown field {%s}, known are %s", template, field, strings.Join(TopicFields(), ", "))
		}
		pieces = append(pieces, topicPiece{field: field})
		rest = tail
	}
	return pieces, nil
}

func validField(name string) bool {
	for _, f := range TopicFields() {
		if f == name {
			return true
		}
	}
	return false
}

func (r *route) matches(k Kind) bool {
	return matches(r.AggregateType, k.AggregateType) && matches(r.EventType, k.EventType)
}

func matches(pattern, value string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	ok, _ := path.Match(pattern, value) // the pattern was checked by resolveRoute
	return ok
}

// topic returns where the event goes.
func (r *route) topic(e *Event) string {
	if e.Topic != "" {
		return e.Topic
	}
	var b strings.Builder
	for _, p := range r.pieces {
		switch p.field {
		case "aggregate_type":
			b.WriteString(e.AggregateType)
		case "event_type":
			b.WriteString(e.EventType)
		case "aggregate_id":
			b.WriteString(e.AggregateID)
		default:
			b.WriteString(p.literal)
		}
	}
	return b.String()
}

// router finds the route of a kind and remembers it.
type router struct {
	routes []*route
	known  map[Kind]*route // nil value: no route matches
}

// maxKnownKinds bounds the memory that invented event types can take.
const maxKnownKinds = 10_000

func newRouter(routes []*route) *router {
	return &router{routes: routes, known: make(map[Kind]*route)}
}

// find returns the route of a kind, or nil.
func (r *router) find(k Kind) *route {
	if known, ok := r.known[k]; ok {
		return known
	}
	if len(r.known) >= maxKnownKinds {
		clear(r.known)
	}
	found := routeOf(r.routes, k)
	r.known[k] = found
	return found
}

// routeOf returns the first route that matches, or nil.
func routeOf(routes []*route, k Kind) *route {
	for _, candidate := range routes {
		if candidate.matches(k) {
			return candidate
		}
	}
	return nil
}

// kindsOf lists the kinds seen so far that go to one of the sinks.
func (r *router) kindsOf(sinks map[int]bool) []Kind {
	if len(sinks) == 0 {
		return nil
	}
	var kinds []Kind
	for k, route := range r.known {
		if route != nil && sinks[route.sink] {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
