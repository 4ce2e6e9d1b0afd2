package operator_test

import (
	"strconv"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
)

func TestFilterForPeople(t *testing.T) {
	var many []string
	for i := range 12 {
		many = append(many, strconv.Itoa(i))
	}
	for want, filter := range map[string]operator.Filter{
		"all events":                           {},
		`event_type=placed error~"timeout"`:    {EventType: "placed", ErrorContains: "timeout"},
		"id=0,1,2,3,4,5,6,7,8,9,... (12 ids)":  {IDs: many},
		`id=7 state=DEAD aggregate_id="a b"`:   {IDs: []string{"7"}, State: postrider.StateDead, AggregateID: "a b"},
		"aggregate_type=x sink=s id>5 limit=2": {AggregateType: "x", Sink: "s", After: "5", Limit: 2},
	} {
		if got := filter.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
