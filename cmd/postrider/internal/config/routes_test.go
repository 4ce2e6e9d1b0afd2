package config

import "testing"

func TestRouteTakesAllOf(t *testing.T) {
	for _, c := range []struct {
		earlier, later Route
		want           bool
	}{
		{Route{}, Route{}, true},
		{Route{}, Route{AggregateType: "order", EventType: "*"}, true},
		{Route{AggregateType: "order"}, Route{}, false},
		{Route{AggregateType: "*"}, Route{}, true},
		{Route{AggregateType: "*"}, Route{AggregateType: "a/*"}, true},
		{Route{AggregateType: "o*"}, Route{}, false},
		{Route{AggregateType: "o*"}, Route{AggregateType: "o/x"}, false},
		{Route{AggregateType: "order"}, Route{AggregateType: "order", EventType: "x"}, true},
		{Route{AggregateType: "order", EventType: "x"}, Route{AggregateType: "order"}, false},
		{Route{AggregateType: "ord*"}, Route{AggregateType: "order"}, true},
		{Route{AggregateType: "ord*"}, Route{AggregateType: "invoice"}, false},
		{Route{AggregateType: "ord*"}, Route{AggregateType: "orde*"}, false}, // not decided
		{Route{AggregateType: "a?"}, Route{AggregateType: `a\*`}, false},
	} {
		if got := c.earlier.takesAllOf(c.later); got != c.want {
			t.Errorf("%+v before %+v: %v, want %v", c.earlier, c.later, got, c.want)
		}
	}
}
