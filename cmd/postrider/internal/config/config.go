package config

import (
	"fmt"
	"os"

	"github.com/postrider/postrider/relay"
)

// Config is a whole postrider.yaml, checked and with all defaults filled in.
type Config struct {
	Outbox Outbox
	Relay  Relay
	// Sinks has at least one element, in the order of the file. Names are
	// unique.
	Sinks []Sink
	// Routes has at least one element; the first that matches an event
	// takes it.
	Routes []Route
	// Destinations has each sink that a route with several sinks names, in
	// the order of Sinks.
	Destinations []Destination
	Inbox        Inbox
	Admin        Admin
	Log          Log
}

// Load reads the file and expands variables from the environment of the
// process. A file that cannot be read gives an error of package os, wrapped;
// a file with mistakes gives an [*Error].
func Load(file string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w; name the file with -c", err)
	}
	return Parse(file, data, os.LookupEnv)
}

// Parse reads a configuration from memory. The file name is only used in
// problems; lookup gives the variables, as [os.LookupEnv] does. The error of
// a configuration with mistakes is an [*Error].
func Parse(file string, data []byte, lookup func(string) (string, bool)) (*Config, error) {
	r := &reader{file: file, lookup: lookup}
	var c Config
	if root := r.parseDocument(data); root != nil {
		newValue(r, "", root).object(func(o *object) {
			known := Outbox{} // what is wrong with the outbox is not told again by what depends on it
			if r.isClean(func() { c.Outbox = readOutbox(o.field("outbox")) }) {
				known = c.Outbox
			}
			var noHold *mistake
			c.Relay, noHold = readRelay(o.field("relay"), known)
			o.require("sinks", "name at least one: sinks: {main: {type: stdout}}")
			c.Sinks = readSinks(o.field("sinks"))
			o.require("routes", "without one no event goes anywhere: routes: [{sink: main}]")
			if r.isClean(func() { c.Routes = readRoutes(o.field("routes"), c.Sinks, defaultRoute(c), known, noHold) }) {
				c.Destinations = destinationsOf(c)
				reportDestinations(o.peek("outbox").child("destinations"), o.peek("routes"), c)
			}
			c.Inbox = readInbox(o.field("inbox"), c.Outbox)
			c.Admin = readAdmin(o.field("admin"))
			c.Log = readLog(o.field("log"))
		})
	}
	if err := asError(r.problems); err != nil {
		return nil, err
	}
	return &c, nil
}

// defaultRoute is what a route leaves open.
func defaultRoute(c Config) Route {
	if c.Outbox.Preset == "debezium" {
		return Route{Topic: "outbox.event.{aggregate_type}", Key: relay.DefaultKey, Headers: HeadersDebezium, Retry: c.Relay.Retry, OnDead: c.Relay.OnDead}
	}
	return Route{Topic: relay.DefaultTopic, Key: relay.DefaultKey, Headers: HeadersPostrider, Retry: c.Relay.Retry, OnDead: c.Relay.OnDead}
}
