package relay

import (
	"fmt"
	"strings"
	"testing"
)

func resolve(t *testing.T, routes ...Route) *router {
	t.Helper()
	var resolved []*route
	for _, r := range routes {
		one, err := resolveRoute(r, map[string]int{"main": 0, "audit": 1}, Config{Retry: DefaultRetry()})
		if err != nil {
			t.Fatal(err)
		}
		resolved = append(resolved, one)
	}
	return newRouter(resolved)
}

func TestFirstMatchingRouteServes(t *testing.T) {
	r := resolve(t,
		Route{AggregateType: "order", EventType: "Order*", Sink: "main", Topic: "placed"},
		Route{AggregateType: "order", Sink: "audit", Topic: "{aggregate_type}-{event_type}/{aggregate_id}"},
		Route{AggregateType: "user?", Sink: "main"},
	)
	for _, c := range []struct {
		aggregateType, eventType string
		sink                     int
		topic                    string
	}{
		{"order", "OrderPlaced", 0, "placed"},
		{"order", "Shipped", 1, "order-Shipped/17"},
		{"users", "Created", 0, "users"},
	} {
		e := &Event{AggregateType: c.aggregateType, EventType: c.eventType, AggregateID: "17"}
		got := r.find(e.Kind())
		if got == nil || got.sink != c.sink || got.topic(e) != c.topic {
			t.Errorf("%s %s: got %+v", c.aggregateType, c.eventType, got)
		}
	}
	if got := r.find(Kind{"user", "Created"}); got != nil {
		t.Errorf("an event that no route matches goes to %+v", got)
	}
}

func TestTopicOfTheRowOverridesTheRoute(t *testing.T) {
	r := resolve(t, Route{Sink: "main", Topic: "orders"})
	e := &Event{AggregateType: "order", EventType: "OrderPlaced", Topic: "special"}
	if got := r.find(e.Kind()).topic(e); got != "special" {
		t.Errorf("topic %q", got)
	}
	r = resolve(t, Route{Sink: "main", Topic: "orders", KeepTopic: true})
	if got := r.find(e.Kind()).topic(e); got != "orders" {
		t.Errorf("topic %q of a route that keeps its own", got)
	}
}

func TestInventedKindsTakeBoundedMemory(t *testing.T) {
	r := resolve(t, Route{Sink: "main"})
	for i := range 3 * maxKnownKinds {
		r.find(Kind{"order", fmt.Sprint(i)})
	}
	if len(r.known) > maxKnownKinds {
		t.Errorf("%d kinds are remembered", len(r.known))
	}
}

func TestUnknownHeaderStyleIsRefused(t *testing.T) {
	_, err := resolveRoute(Route{Sink: "main", Headers: "cloudevent"}, map[string]int{"main": 0}, Config{Retry: DefaultRetry()})
	if err == nil || !strings.Contains(err.Error(), `header style "cloudevent"`) {
		t.Errorf("got %v", err)
	}
}

func TestTemplatesOfARoute(t *testing.T) {
	r := resolve(t, Route{
		Sink: "main", Topic: "{aggregate_type}.{event_type}", Key: "{aggregate_type}-{key}",
		SetHeaders: map[string]string{
			"source": "shop/{aggregate_type}", "row": "{outbox_id}/{event_id}/{key}", "version": "{aggregate_version}", "tenant": "all",
		},
	})
	seven := int64(7)
	e := &Event{
		ID: "1", EventID: "e", AggregateType: "order", AggregateID: "17", PartitionKey: "p", EventType: "Placed",
		Headers: map[string]string{"Tenant": "its own"},
	}
	m := r.find(e.Kind()).message(e)
	if m.Topic != "order.Placed" || m.Key != "order-p" {
		t.Errorf("topic %q, key %q", m.Topic, m.Key)
	}
	values := make(map[string]string)
	for _, h := range m.Headers {
		values[h.Name] = h.Value
	}
	for name, want := range map[string]string{"source": "shop/order", "row": "1/e/p", "Tenant": "its own"} {
		if values[name] != want {
			t.Errorf("header %s is %q, want %q", name, values[name], want)
		}
	}
	for _, name := range []string{"version", "tenant"} {
		if _, there := values[name]; there {
			t.Errorf("header %s is there: %v", name, values)
		}
	}
	e.AggregateVersion = &seven
	if m := r.find(e.Kind()).message(e); !hasHeader(m.Headers, "version") {
		t.Errorf("no version in %v", m.Headers)
	}
}

func TestMistakesInTemplatesAreTold(t *testing.T) {
	_, err := resolveRoute(Route{
		Sink: "main", Topic: "{event_id}", Key: "{event_type}",
		SetHeaders: map[string]string{"a b": "x", "open": "{key", "Content-Type": "text/plain", "id": "{topic}"},
	}, map[string]int{"main": 0}, Config{Retry: DefaultRetry()})
	for _, want := range []string{
		`topic template "{event_id}": unknown field {event_id}`,
		`key template "{event_type}": unknown field {event_type}`,
		`key template "{event_type}" does not hold {key}`,
		`header name "a b" is no token`,
		`header open "{key": { without }`,
		`header name "Content-Type" is reserved`,
		`header id "{topic}": unknown field {topic}`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not told in\n%v", want, err)
		}
	}
}
