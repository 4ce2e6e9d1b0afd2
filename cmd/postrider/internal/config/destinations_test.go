package config

import (
	"reflect"
	"testing"
	"time"
)

const fanOut = `
sinks: {main: {type: kafka, brokers: [a:1]}, in-hooks: {type: stdout}, other: {type: stdout}}
routes:
  - {aggregate_type: order, sinks: [in-hooks, main], topic: orders}
  - {aggregate_type: user, sink: other}
  - to: [{sink: main, topic: all}, {sink: in-hooks, headers: cloudevents, retry: {schedule: [1m]}, on_dead: hold}]
`

func parseFanOut(t *testing.T, outbox string) *Config {
	t.Helper()
	c, err := Parse("postrider.yaml", []byte(outbox+fanOut), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRoutesToSeveralSinks(t *testing.T) {
	c := parseFanOut(t, `outbox: {dsn: "sqlite:a.db"}`)
	retry := defaultRetry()
	slow := Retry{Schedule: []time.Duration{time.Minute}, Jitter: retry.Jitter}
	orders := Route{AggregateType: "order", Topic: "orders", Key: "{key}", Headers: HeadersPostrider, Retry: retry, OnDead: ContinueKey}
	ofSink := func(r Route, sink string) Route { r.Sink = sink; return r }
	for sink, want := range map[string][]Route{
		"main":     {ofSink(orders, "main"), {Sink: "main", Topic: "all", Key: "{key}", Headers: HeadersPostrider, Retry: retry, OnDead: ContinueKey}},
		"in-hooks": {ofSink(orders, "in-hooks"), {Sink: "in-hooks", Topic: "{aggregate_type}", Key: "{key}", Headers: HeadersCloudEvents, Retry: slow, OnDead: HoldKey}},
		"other":    nil,
	} {
		if got := c.RoutesTo(sink); !reflect.DeepEqual(got, want) {
			t.Errorf("routes to %s:\n%+v, want\n%+v", sink, got, want)
		}
		if direct := c.IsDirect(sink); direct != (sink == "other") {
			t.Errorf("%s is direct: %v", sink, direct)
		}
	}
	if n := len(c.Deliveries()); n != 5 {
		t.Errorf("%d deliveries, want 5", n)
	}
}

func TestTablesOfDestinations(t *testing.T) {
	for outbox, want := range map[string]string{
		`{dsn: "sqlite:a.db"}`:                                         "outbox_events_to_in_hooks",
		`{dsn: "postgres://h/d", table: app.events}`:                   "app.events_to_in_hooks",
		`{dsn: "sqlite:a.db", destinations: {in-hooks: hooks}}`:        "hooks",
		`{dsn: "postgres://h/d", preset: debezium, side_schema: side}`: "side.outbox_to_in_hooks",
	} {
		c := parseFanOut(t, "outbox: "+outbox)
		if len(c.Destinations) != 2 || c.Destinations[1] != (Destination{Sink: "in-hooks", Table: want}) {
			t.Errorf("%s: destinations %+v, want in-hooks with %s", outbox, c.Destinations, want)
		}
	}
}
