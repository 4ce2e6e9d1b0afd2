package config

import (
	"fmt"
	"path"
	"strings"
)

// Route sends the events that it matches to a sink, or to several.
type Route struct {
	// AggregateType and EventType are patterns as [path.Match] has them;
	// empty, like * alone, matches everything.
	AggregateType, EventType string
	// Sink is the name of one of the sinks; it is empty when To is set.
	Sink string
	// To has a whole route for each sink of an event that goes to several,
	// with the patterns of this one. They name different sinks. It is nil
	// for a route to one sink.
	To []Route
	// Topic is the template for the topic, or the subject with NATS, of an
	// event without a topic of its own: plain text with the fields
	// {aggregate_type}, {aggregate_id} and {event_type}. The default is
	// {aggregate_type}, with the preset debezium outbox.event.{aggregate_type}.
	Topic string
	// Key is the template for the message key, with the fields
	// {aggregate_type} and {key}, which is the event's key and the default.
	Key string
	// Headers is the layout of the message headers. The default is postrider,
	// with the preset debezium debezium.
	Headers Headers
	// SetHeaders are headers that messages get beside those of the layout:
	// names, and templates of their values.
	SetHeaders map[string]string
	// Retry is the route's own policy, or that of the relay.
	Retry Retry
	// OnDead is the route's own, or that of the relay.
	OnDead OnDead
}

// Headers is a layout of message headers.
type Headers string

// The layouts of message headers.
const (
	HeadersPostrider   Headers = "postrider"
	HeadersCloudEvents Headers = "cloudevents"
	HeadersDebezium    Headers = "debezium"
)

// placedRoute is a route without mistakes, and where it stands.
type placedRoute struct {
	Route
	line int
}

// readRoutes takes what a route leaves open from the defaults. noHold is what is
// wrong with keys that DEAD events hold, or nil.
func readRoutes(v value, sinks []Sink, defaults Route, outbox Outbox, noHold *mistake) []Route {
	var routes []Route
	var placed []placedRoute
	isList := v.items(func(item value) {
		var route Route
		if item.r.isClean(func() { route = readRoute(item, sinks, defaults, outbox, noHold) }) {
			reportUnreachable(item, route, placed)
			placed = append(placed, placedRoute{route, item.at.Line})
		}
		routes = append(routes, route)
	})
	if isList && len(routes) == 0 {
		v.problem("is empty", "without a route no event goes anywhere: [{sink: main}]")
	}
	return routes
}

func reportUnreachable(v value, route Route, earlier []placedRoute) {
	for _, e := range earlier {
		if e.takesAllOf(route) {
			v.problem(fmt.Sprintf("no event gets here: the route in line %d takes them all", e.line),
				"put the route with the narrower patterns first, or remove it")
			return
		}
	}
}

func readRoute(v value, sinks []Sink, defaults Route, outbox Outbox, noHold *mistake) Route {
	route := defaults
	v.object(func(o *object) {
		strAs(o, "aggregate_type", &route.AggregateType, parsePattern)
		strAs(o, "event_type", &route.EventType, parsePattern)
		for _, key := range []string{"sink", "sinks", "to", "topic", "key", "headers", "set_headers", "retry", "on_dead"} {
			o.field(key) // known to every route, whichever of them it may have
		}
		if o.has("sinks") || o.has("to") {
			readFanOut(o, &route, sinks, outbox, noHold)
			return
		}
		o.require("sink", "name one of the sinks")
		var sink Sink
		strAs(o, "sink", &route.Sink, func(text string) (string, *mistake) { return parseSink(text, sinks, &sink) })
		readDelivery(o, &route, defaults.Retry, noHold, sink)
	})
	return route
}

// parseSink takes the name of a sink, and finds it.
func parseSink(text string, sinks []Sink, sink *Sink) (string, *mistake) {
	found, ok := findSink(sinks, text)
	if !ok && len(sinks) > 0 {
		return "", &mistake{"is none of the sinks", suggest(text, sinkNames(sinks), "sinks")}
	}
	*sink = found
	return text, nil
}

// readDelivery reads how events go to sinks.
func readDelivery(o *object, route *Route, inherited Retry, noHold *mistake, sinks ...Sink) {
	strAs(o, "topic", &route.Topic, func(text string) (string, *mistake) {
		for _, sink := range sinks {
			if _, wrong := parseTopic(text, sink.Type); wrong != nil {
				return "", wrong
			}
		}
		return text, nil
	})
	strAs(o, "key", &route.Key, parseKey)
	choice(o, "headers", &route.Headers, HeadersPostrider, HeadersCloudEvents, HeadersDebezium)
	route.SetHeaders = readHeaders(o.field("set_headers"))
	route.Retry = readRetry(o.field("retry"), inherited)
	readOnDead(o, &route.OnDead, noHold)
}

func parsePattern(text string) (string, *mistake) {
	if _, err := path.Match(text, ""); err != nil {
		return "", &mistake{"is no pattern", `write * for any letters, ? for one, [a-z] for a choice, and \ before a letter that is meant itself`}
	}
	return text, nil
}

// takesAllOf reports whether every event that the later route matches is
// surely matched by r.
func (r Route) takesAllOf(later Route) bool {
	return covers(r.AggregateType, later.AggregateType) && covers(r.EventType, later.EventType)
}

// covers reports whether all that the pattern b matches is surely matched by
// the pattern a. Of two different patterns it is not decided.
func covers(a, b string) bool {
	switch {
	case a == "" || a == "*" || a == b:
		return true
	case b == "" || strings.ContainsAny(b, `*?[\`):
		return false
	}
	matched, err := path.Match(a, b)
	return matched && err == nil
}
