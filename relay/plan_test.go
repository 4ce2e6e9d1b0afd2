package relay

import (
	"slices"
	"testing"
)

func TestThePlanIsWhatTheRelayWouldDo(t *testing.T) {
	c := Config{
		Sinks:  []NamedSink{{Name: "main"}, {Name: "audit"}},
		Routes: []Route{{AggregateType: "user", Sink: "main"}, {EventType: "Order*", Sink: "audit", Topic: "audit.{aggregate_id}"}},
	}
	p, found, err := PlanOf(c, Event{EventID: "e-7", AggregateType: "order", AggregateID: "17", EventType: "OrderPlaced"})
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	if p.Route != 1 || p.Sink.Name != "audit" || p.Message.Topic != "audit.17" || p.Message.Key != "17" ||
		!slices.Contains(p.Message.Headers, Header{HeaderEventID, "e-7"}) {
		t.Errorf("%+v", p)
	}
	if p, found, err := PlanOf(c, Event{AggregateType: "order", EventType: "Paid"}); found || err != nil {
		t.Errorf("an event without a route: %+v, %v, %v", p, found, err)
	}
	c.Routes[0].Sink = "absent"
	if _, _, err := PlanOf(c, Event{AggregateType: "user"}); err == nil {
		t.Error("a mistake in the routes is not told")
	}
}
