package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/operator"
)

func (c *command) events() *cobra.Command {
	return group("events", "Shows single events and changes what becomes of them",
		c.eventsList(), c.eventsShow(), c.eventsRetry(), c.eventsDiscard())
}

func (c *command) eventsList() *cobra.Command {
	var chosen filterFlags
	cmd := &cobra.Command{
		Use:   "list [EVENT...]",
		Short: "Lists events, the oldest first (100 unless --limit says otherwise)",
		RunE: func(cmd *cobra.Command, ids []string) error {
			filter, err := chosen.filter(ids)
			if err != nil {
				return err
			}
			return c.withOutbox(func(_ *config.Config, o *wiring.Outbox) error {
				ctx, cancel := looking(cmd)
				defer cancel()
				store, err := storeOf(o, chosen.to)
				if err != nil {
					return err
				}
				rows, err := store.Events(ctx, filter)
				if err != nil {
					return err
				}
				return c.printEvents(rows)
			})
		},
	}
	chosen.selects(cmd)
	chosen.selectsStates(cmd)
	return c.printsJSON(cmd)
}

func (c *command) printEvents(rows []operator.Row) error {
	if c.json {
		list := make([]eventJSON, len(rows))
		for i, r := range rows {
			list[i] = newEventJSON(r)
		}
		return c.printJSON(map[string]any{"events": list})
	}
	t := newTable(c.stdout, "ID", "EVENT ID", "STATUS", "AGGREGATE TYPE", "KEY", "EVENT TYPE", "RETRIES", "CREATED", "LAST ERROR")
	for _, r := range rows {
		t.row(r.ID, r.EventID, string(r.Status), r.AggregateType, r.AggregateID, r.EventType,
			strconv.Itoa(r.RetryCount), human.UTC(r.CreatedAt), short(r.LastError))
	}
	return t.flush()
}

func (c *command) eventsShow() *cobra.Command {
	return c.showsEvent(c.printEvent, &cobra.Command{
		Use:   "show EVENT",
		Short: "Shows one event with its payload and its attempts; EVENT is an event id or an outbox id",
	})
}

func (c *command) eventsRetry() *cobra.Command {
	return c.changes("retried", operator.Store.Retry, &cobra.Command{
		Use:   "retry [EVENT...]",
		Short: "Makes events that wait for a retry due at once, and DEAD ones PENDING",
	})
}

func (c *command) eventsDiscard() *cobra.Command {
	return c.discards(&cobra.Command{
		Use:   "discard [EVENT...]",
		Short: "Makes DEAD events DISCARDED, for good",
	})
}
