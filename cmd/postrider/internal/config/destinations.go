package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Destination is a sink that gets events which go to several sinks, and the
// outbox of its own from which it gets them.
type Destination struct {
	// Sink is the name of the sink.
	Sink string
	// Table is the table of its outbox, perhaps with its schema before a dot.
	// The default is the name of the outbox table, _to_ and the sink's name.
	Table string
}

// maxTable is the longest name of a table that postrider init creates.
const maxTable = 45

// readFanOut reads a route to several sinks: all alike, or each with
// settings of its own.
func readFanOut(o *object, route *Route, sinks []Sink, outbox Outbox, noHold *mistake) {
	place := o.firstOf("sinks", "to")
	o.exclude("sinks", "to", "keep one of both")
	o.exclude(place, "sink", "keep one of both")
	if outbox.Database == MongoDB {
		o.problem(place, "needs an outbox in an SQL database: with MongoDB an event goes to one sink in this version", "write sink")
	}
	if !o.has("to") {
		readSinkList(o, route, sinks, outbox, noHold)
		return
	}
	for _, key := range []string{"topic", "key", "headers", "set_headers", "retry", "on_dead"} {
		o.exclude("to", key, "write it with each of the destinations")
	}
	readTo(o.field("to"), route, sinks, outbox, noHold)
}

// readSinkList makes a route to each sink of the same settings.
func readSinkList(o *object, route *Route, sinks []Sink, outbox Outbox, noHold *mistake) {
	var names []string
	strs(o, "sinks", &names)
	var known []Sink
	for i, name := range names {
		var sink Sink
		if _, wrong := parseSink(name, sinks, &sink); wrong != nil {
			o.problem("sinks", fmt.Sprintf("%q %s", name, wrong.message), wrong.hint)
		}
		if slices.Contains(names[:i], name) {
			o.problem("sinks", fmt.Sprintf("%q is there twice", name), "an event goes to a sink once; keep one")
		}
		outbox.checkTable(o.peek("sinks"), name)
		known = append(known, sink)
	}
	readDelivery(o, route, route.Retry, noHold, known...)
	var to []Route
	for _, name := range names {
		one := *route
		one.Sink = name
		to = append(to, one)
	}
	route.To = to
}

// readTo reads a route for each sink with its own settings.
func readTo(v value, route *Route, sinks []Sink, outbox Outbox, noHold *mistake) {
	var to []Route
	isList := v.items(func(item value) {
		one := *route
		item.object(func(o *object) {
			var sink Sink
			o.require("sink", "name one of the sinks")
			strAs(o, "sink", &one.Sink, func(text string) (string, *mistake) {
				if slices.ContainsFunc(to, func(other Route) bool { return other.Sink == text }) {
					return "", &mistake{"is there twice", "an event goes to a sink once; keep one"}
				}
				return parseSink(text, sinks, &sink)
			})
			outbox.checkTable(o.peek("sink"), one.Sink)
			readDelivery(o, &one, route.Retry, noHold, sink)
		})
		to = append(to, one)
	})
	if isList && len(to) == 0 {
		v.problem("is empty", "name at least one sink: [{sink: main}]")
	}
	route.To = to
}

// readDestinations reads the tables of the outboxes of destinations.
func readDestinations(v value) map[string]string {
	if !v.is(yaml.MappingNode) {
		return nil
	}
	tables := make(map[string]string)
	v.pairs(func(key *yaml.Node, field value) {
		var table string
		if readString(field, &table, parseTable) {
			tables[key.Value] = table
			checkLength(field, table)
		}
	})
	return tables
}

// checkTable reports that the name made for a sink's table is too long.
func (outbox Outbox) checkTable(v value, sink string) {
	if _, given := outbox.Destinations[sink]; !given {
		checkLength(v, outbox.destinationTable(sink))
	}
}

func checkLength(v value, table string) {
	if _, name := splitTable(table); len(name) > maxTable {
		v.problem(fmt.Sprintf("the name %s has %d bytes, and no more than %d fit", name, len(name), maxTable),
			"give the destination's table a shorter name in outbox.destinations: {SINK: TABLE}")
	}
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_]`)

// destinationTable is the table of a destination's outbox. It stands beside
// the outbox, or beside the side tables of one that is theirs.
func (outbox Outbox) destinationTable(sink string) string {
	if table, given := outbox.Destinations[sink]; given {
		return table
	}
	schema, name := splitTable(outbox.Table)
	if outbox.Mapping != nil && outbox.Mapping.SideSchema != "" {
		schema = outbox.Mapping.SideSchema
	}
	name = notInName.ReplaceAllString(strings.Trim(name, `"`)+"_to_"+sink, "_")
	if schema != "" {
		name = schema + "." + name
	}
	return name
}

// splitTable gives what stands before the dot of a table's name, and behind.
func splitTable(table string) (schema, name string) {
	if begins := strings.Index(table, `"`); begins >= 0 {
		return strings.TrimSuffix(table[:begins], "."), table[begins:]
	}
	if schema, name, qualified := strings.Cut(table, "."); qualified {
		return schema, name
	}
	return "", table
}

// destinationsOf lists the destinations of the routes.
func destinationsOf(c Config) []Destination {
	var destinations []Destination
	for _, sink := range c.Sinks {
		if len(c.RoutesTo(sink.Name)) > 0 {
			destinations = append(destinations, Destination{Sink: sink.Name, Table: c.Outbox.destinationTable(sink.Name)})
		}
	}
	return destinations
}

// RoutesTo lists the routes by which a sink gets events that go to several,
// in their order. It is empty for a sink that gets none.
func (c Config) RoutesTo(sink string) []Route {
	var routes []Route
	for _, route := range c.Routes {
		for _, to := range route.To {
			if to.Sink == sink {
				routes = append(routes, to)
			}
		}
	}
	return routes
}

// Deliveries lists the routes with those to several sinks taken apart.
func (c Config) Deliveries() []Route {
	var routes []Route
	for _, route := range c.Routes {
		if route.To == nil {
			routes = append(routes, route)
		}
		routes = append(routes, route.To...)
	}
	return routes
}

// IsDirect reports whether a route to this sink alone leads to it, so that
// events come to it from the outbox itself.
func (c Config) IsDirect(sink string) bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.To == nil && r.Sink == sink })
}

// reportDestinations looks at the tables of all destinations together.
func reportDestinations(tables, routes value, c Config) {
	sinkOf := map[string]string{}
	for _, d := range c.Destinations {
		other, taken := sinkOf[d.Table]
		switch {
		case d.Table == c.Outbox.Table:
			routes.problem(fmt.Sprintf("the outbox of sink %s would be the outbox itself", d.Sink), "give it another table in outbox.destinations")
		case taken:
			routes.problem(fmt.Sprintf("the outboxes of the sinks %s and %s would be one table, %s", other, d.Sink, d.Table),
				"give one of them another table in outbox.destinations")
		}
		sinkOf[d.Table] = d.Sink
	}
	for _, sink := range slices.Sorted(maps.Keys(c.Outbox.Destinations)) {
		if len(c.RoutesTo(sink)) == 0 {
			tables.child(sink).problem("no route with several sinks names this sink", "correct the name, or remove it")
		}
	}
}
