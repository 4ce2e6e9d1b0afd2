package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/operator"
)

// change is a method of the operator's store. It returns how many events it changed, also beside an error.
type change func(operator.Store, context.Context, operator.Filter, operator.Action) (int, error)

// changes completes a command that changes the chosen events; done says what they are then.
func (c *command) changes(done string, do change, cmd *cobra.Command) *cobra.Command {
	var chosen filterFlags
	var acting actionFlags
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		filter, err := chosen.target(ids)
		if err != nil {
			return err
		}
		return c.withOutbox(func(_ *config.Config, o *wiring.Outbox) error {
			store, err := storeOf(o, chosen.to)
			if err != nil {
				return err
			}
			n, err := do(store, cmd.Context(), filter, acting.action())
			if err == nil {
				err = leftAlone(filter, n, done, hintOfDestinations(o, chosen.to))
			}
			return errors.Join(c.printChanged(n, done), err)
		})
	}
	chosen.selects(cmd)
	chosen.asksForAll(cmd)
	acting.add(cmd, "event")
	return c.printsJSON(cmd)
}

// leftAlone says that not all the events that were named one by one have changed. hint tells where else they may be.
func leftAlone(f operator.Filter, changed int, done, hint string) error {
	if f.Limit > 0 || len(f.IDs) <= changed {
		return nil
	}
	return fmt.Errorf("%d of %d events were left alone: they do not exist, or are not in a state in which they can be %s; see postrider events show%s",
		len(f.IDs)-changed, len(f.IDs), done, hint)
}

// hintOfDestinations tells where else events may be.
func hintOfDestinations(o *wiring.Outbox, to string) string {
	if to != "" || len(o.Destinations) == 0 {
		return ""
	}
	return ", and use --to SINK for an event that goes to several sinks"
}

func (c *command) printChanged(n int, done string) error {
	if c.json {
		return c.printJSON(map[string]int{done: n})
	}
	_, err := fmt.Fprintf(c.stdout, "%s %s\n", human.Events(n), done)
	return err
}

var errNoReason = usageError{errors.New("--reason is missing: say why the events need not be sent; it is kept with them")}

// discards completes a command that gives the chosen events up.
func (c *command) discards(cmd *cobra.Command) *cobra.Command {
	cmd = c.changes("discarded", operator.Store.Discard, cmd)
	discard := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if cmd.Flag("reason").Value.String() == "" {
			return errNoReason
		}
		return discard(cmd, ids)
	}
	return cmd
}
