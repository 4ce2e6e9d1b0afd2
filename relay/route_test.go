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
		one, err := resolveRoute(r, map[string]int{"main": 0, "audit": 1}, DefaultRetry())
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
	_, err := resolveRoute(Route{Sink: "main", Headers: "cloudevent"}, map[string]int{"main": 0}, DefaultRetry())
	if err == nil || !strings.Contains(err.Error(), `header style "cloudevent"`) {
		t.Errorf("got %v", err)
	}
}
