package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/operator"
)

func (c *command) dead() *cobra.Command {
	return group("dead", "Shows dead letters, sends them again or gives them up",
		c.deadList(),
		c.makesJob(redriving, &cobra.Command{
			Use:   "redrive [EVENT...]",
			Short: "Makes DEAD events PENDING with their attempts reset, so that the relay sends them again",
			Long:  "Makes DEAD events PENDING with their attempts reset, so that the relay sends them again.\n\n" + howJobsWork,
			Example: "  postrider dead redrive --event-type OrderPaid --preview\n" +
				"  postrider dead redrive --event-type OrderPaid --rate 50 --detach --reason 'the broker has room again'",
		}),
		c.makesJob(discarding, &cobra.Command{
			Use:   "discard [EVENT...]",
			Short: "Makes DEAD events DISCARDED: they are never sent",
			Long:  "Makes DEAD events DISCARDED: they are never sent.\n\n" + howJobsWork,
		}),
		c.deadJobs(),
	)
}

const howJobsWork = "The events that are DEAD and chosen now are the set of a job, which is kept in the database and carried out in\n" +
	"outbox order, by the relays and by this command while it follows the job. An interrupt leaves the job to the\n" +
	"relays. `postrider dead jobs` shows, pauses, continues and cancels jobs."

func (c *command) deadList() *cobra.Command {
	var limit int
	var to string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Lists dead letters grouped by cause, the largest group first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withOutbox(func(_ *config.Config, o *wiring.Outbox) error {
				ctx, cancel := looking(cmd)
				defer cancel()
				groups, err := deadGroups(ctx, o, to, limit)
				if err != nil {
					return err
				}
				return c.printDead(groups, len(o.Destinations) > 0)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "at most this many groups")
	selectsDestination(cmd, &to)
	return c.printsJSON(cmd)
}

// deadGroups are those of one destination, or of all and the outbox itself.
func deadGroups(ctx context.Context, o *wiring.Outbox, to string, limit int) ([]operator.DeadGroup, error) {
	if to == "" {
		return o.DeadGroups(ctx, limit)
	}
	store, err := storeOf(o, to)
	if err != nil {
		return nil, err
	}
	groups, err := store.DeadGroups(ctx, limit)
	for i := range groups {
		groups[i].Destination = to
	}
	return groups, err
}

func (c *command) printDead(groups []operator.DeadGroup, destinations bool) error {
	if c.json {
		return c.printJSON(map[string]any{"groups": append([]operator.DeadGroup{}, groups...)})
	}
	return c.printGroups(groups, destinations)
}

func (c *command) printGroups(groups []operator.DeadGroup, destinations bool) error {
	heading := []string{"EVENTS", "HOLDING", "SINK", "AGGREGATE TYPE", "EVENT TYPE", "OLDEST", "ONE OF THEM", "ERROR"}
	if destinations {
		heading = append([]string{"TO"}, heading...)
	}
	t := newTable(c.stdout, heading...)
	for _, g := range groups {
		row := []string{strconv.FormatInt(g.Count, 10), strconv.FormatInt(g.Holding, 10), g.Sink, g.AggregateType, g.EventType,
			human.UTC(g.Oldest), g.Sample, g.Error}
		if destinations {
			row = append([]string{g.Destination}, row...)
		}
		t.row(row...)
	}
	return t.flush()
}
