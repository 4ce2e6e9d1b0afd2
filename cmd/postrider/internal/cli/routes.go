package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/relay"
)

func (c *command) routes() *cobra.Command {
	return group("routes", "Which event goes where", c.routesTest())
}

func (c *command) routesTest() *cobra.Command {
	var e relay.Event
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Tells where an event would go, without sending it or asking a server",
		Example: "  postrider routes test --aggregate-type order --event-type OrderPlaced --aggregate-id 17\n" +
			"  postrider routes test --aggregate-type order --event-type OrderPlaced --aggregate-id 17 --header tenant=eu --json",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if e.AggregateType == "" || e.EventType == "" {
				return usageError{errors.New("routes go by --aggregate-type and --event-type: give both")}
			}
			cfg, err := c.load()
			if err != nil {
				return err
			}
			plans, err := wiring.PlansOf(cfg, e)
			if err != nil {
				return err
			}
			if len(plans) == 0 {
				return errors.New("no route takes this event; it would become DEAD")
			}
			if c.json {
				return c.printJSON(plansAsJSON(plans))
			}
			return c.printPlans(plans)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&e.AggregateType, "aggregate-type", "", "aggregate `type` of the event")
	flags.StringVar(&e.EventType, "event-type", "", "event `type`")
	flags.StringVar(&e.AggregateID, "aggregate-id", "", "aggregate `id`, which is the key")
	flags.StringVar(&e.EventID, "event-id", "00000000-0000-4000-8000-000000000000", "event `id`")
	flags.StringVar(&e.ContentType, "content-type", "application/json", "content `type` of the payload")
	flags.StringVar(&e.Topic, "topic", "", "`topic` of the event's own, which wins over the route's")
	flags.StringToStringVar(&e.Headers, "header", nil, "header of the event's own, as `NAME=VALUE`; may be repeated")
	return c.printsJSON(cmd)
}

func (c *command) printPlans(plans []relay.Plan) error {
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(c.stdout)
		}
		if err := c.printPlan(p); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) printPlan(p relay.Plan) error {
	fmt.Fprintf(c.stdout, "route %d, sink %s (%s)\n\n", p.Route+1, p.Sink.Name, p.Sink.Type)
	t := newTable(c.stdout)
	t.row("topic", p.Message.Topic)
	t.row("key", p.Message.Key)
	for _, h := range p.Message.Headers {
		t.row(h.Name, h.Value)
	}
	return t.flush()
}

// shownPlan is a relay.Plan as --json prints it. A route is counted from 1, as the lines of a file are.
type shownPlan struct {
	Route   int           `json:"route"`
	Sink    string        `json:"sink"`
	Type    string        `json:"type"`
	Topic   string        `json:"topic"`
	Key     string        `json:"key"`
	Headers []shownHeader `json:"headers"`
}

type shownHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// plansAsJSON is one plan as it stands, and several as a list.
func plansAsJSON(plans []relay.Plan) any {
	if len(plans) == 1 {
		return planAsJSON(plans[0])
	}
	var list []shownPlan
	for _, p := range plans {
		list = append(list, planAsJSON(p))
	}
	return map[string]any{"route": plans[0].Route + 1, "destinations": list}
}

func planAsJSON(p relay.Plan) shownPlan {
	shown := shownPlan{Route: p.Route + 1, Sink: p.Sink.Name, Type: p.Sink.Type, Topic: p.Message.Topic, Key: p.Message.Key}
	for _, h := range p.Message.Headers {
		shown.Headers = append(shown.Headers, shownHeader(h))
	}
	return shown
}
