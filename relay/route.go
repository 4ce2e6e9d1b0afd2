package relay

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/postrider/postrider/internal/header"
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
	// Topic is a template: TopicFields in braces stand for the event's values. Empty means DefaultTopic. An event with
	// a topic of its own goes there instead, unless KeepTopic is set.
	Topic     string
	KeepTopic bool // Topic is where the sink needs it, whatever topic an event asks for
	// Key is the template of the message key, with KeyFields. It must hold {key}: events of different keys are in no
	// order, and a message key that they shared would tell otherwise. Empty means DefaultKey.
	Key     string
	Headers HeaderStyle // default HeadersPostrider
	// SetHeaders are headers that the messages get beside those of the style: names, and templates with HeaderFields. A
	// header of the event's own goes before one of its name; a value that comes out empty is left out.
	SetHeaders map[string]string
	Retry      *RetryPolicy // nil means Config.Retry
	OnDead     OnDead       // what becomes of the key of an event that is DEAD; empty means Config.OnDead
}

// OnDead says what becomes of a key when one of its events is DEAD.
type OnDead string

// What can become of a key.
const (
	OnDeadContinue OnDead = "continue" // its later events are sent
	OnDeadHold     OnDead = "hold"     // its events wait until an operator has redriven the event, which then leaves first, or has discarded it
)

var onDeads = []OnDead{OnDeadContinue, OnDeadHold}

// DefaultTopic is the topic template of a route without one.
const DefaultTopic = "{aggregate_type}"

// DefaultKey is the key template of a route without one.
const DefaultKey = "{key}"

// errNoRoute is the reason of events that no route matches.
var errNoRoute = errors.New("no route matches this event: add a route for its aggregate type and event type, then redrive it")

// route is a Route that was checked and resolved.
type route struct {
	Route
	sink    int // index of the sink
	retry   RetryPolicy
	topics  template
	keys    template
	headers []headerTemplate   // by name
	binding CloudEventsBinding // of the sink
}

// resolveRoute checks a route. What it leaves open is as c says.
func resolveRoute(r Route, sinks map[string]int, c Config) (*route, error) {
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
	setDefault(&r.Key, DefaultKey)
	setDefault(&r.Headers, HeadersPostrider)
	if !slices.Contains(headerStyles, r.Headers) {
		problems = append(problems, fmt.Errorf("header style %q, must be one of %q", r.Headers, headerStyles))
	}
	setDefault(&r.OnDead, cmp.Or(c.OnDead, OnDeadContinue))
	if !slices.Contains(onDeads, r.OnDead) {
		problems = append(problems, fmt.Errorf("OnDead is %q, must be one of %q", r.OnDead, onDeads))
	}
	resolved := &route{Route: r, sink: sink, retry: c.Retry}
	if r.Retry != nil {
		resolved.retry = *r.Retry
	}
	return resolved, errors.Join(append(problems, resolved.parseTemplates())...)
}

func (r *route) parseTemplates() error {
	var problems []error
	parse := func(what, text string, known []string) template {
		t, err := parseTemplate(text, known)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %w", what, err))
		}
		return t
	}
	r.topics = parse("topic template", r.Topic, TopicFields())
	r.keys = parse("key template", r.Key, KeyFields())
	if !strings.Contains(r.Key, DefaultKey) {
		problems = append(problems, fmt.Errorf("key template %q does not hold %s", r.Key, DefaultKey))
	}
	for _, name := range slices.Sorted(maps.Keys(r.SetHeaders)) {
		if mistake := header.Mistake(name); mistake != "" {
			problems = append(problems, fmt.Errorf("header name %.40q %s", name, mistake))
		}
		r.headers = append(r.headers, headerTemplate{name, parse("header "+name, r.SetHeaders[name], HeaderFields())})
	}
	return errors.Join(problems...)
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
	if e.Topic != "" && !r.KeepTopic {
		return e.Topic
	}
	return r.topics.of(e)
}

// key returns what the message goes by.
func (r *route) key(e *Event) string {
	return r.keys.of(e)
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
