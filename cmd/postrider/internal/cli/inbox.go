package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/inbox"
)

func (c *command) inbox() *cobra.Command {
	cmd := c.printsJSON(&cobra.Command{
		Use:   "inbox",
		Short: "Shows the consumers of the inbox: receipts, absorbed duplicates, the oldest receipt, how long they are kept",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := looking(cmd)
			defer cancel()
			return c.withInbox(wiring.OpenInbox, func(in *wiring.Inbox) error {
				consumers, err := in.Consumers(ctx)
				if err != nil {
					return err
				}
				return c.printConsumers(consumers)
			})
		},
	})
	cmd.AddCommand(c.inboxForget(), c.inboxInit(), c.parked())
	return cmd
}

// withInbox calls f with the configured inbox, which open opens.
func (c *command) withInbox(open func(*config.Config) (*wiring.Inbox, error), f func(*wiring.Inbox) error) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	in, err := open(cfg)
	if err != nil {
		return err
	}
	defer in.Close()
	return f(in)
}

func (c *command) printConsumers(consumers []inbox.ConsumerStatus) error {
	if c.json {
		return c.printJSON(map[string]any{"consumers": append([]inbox.ConsumerStatus{}, consumers...)})
	}
	t := newTable(c.stdout, "CONSUMER", "RECEIPTS", "DUPLICATES", "OLDEST", "WINDOW", "CLEANED")
	for _, s := range consumers {
		receipts, window := strconv.FormatInt(s.Receipts, 10), ""
		if s.More {
			receipts = "over " + receipts
		}
		if s.WindowSeconds != nil {
			window = (time.Duration(*s.WindowSeconds) * time.Second).String()
		}
		t.row(s.Consumer, receipts, strconv.FormatInt(s.Duplicates, 10), maybeUTC(s.Oldest), window, maybeUTC(s.CleanedAt))
	}
	return t.flush()
}

func maybeUTC(at *time.Time) string {
	if at == nil {
		return ""
	}
	return human.UTC(*at)
}

func (c *command) inboxForget() *cobra.Command {
	var consumer string
	var act actionFlags
	cmd := &cobra.Command{
		Use:   "forget --consumer NAME --reason TEXT DEDUP_KEY",
		Short: "Removes one receipt, so that the message is applied again when it is delivered again",
		Long: "Removes one receipt, so that the message is applied again when it is delivered again, and writes who did it and why\n" +
			"to the audit table. It delivers nothing: redrive the event. DEDUP_KEY is the event id unless the consumer has\n" +
			"keys of its own.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if consumer == "" {
				return usageError{errors.New("--consumer is missing")}
			}
			action := act.action()
			if action.Reason == "" {
				return usageError{errors.New("--reason is missing: it is kept, and says why the event may be applied again")}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerTimeout)
			defer cancel()
			return c.withInbox(wiring.OpenInbox, func(in *wiring.Inbox) error {
				if err := in.Forget(ctx, consumer, args[0], action.Who, action.Reason); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.stdout, "forgot the receipt of %s for consumer %s\n", plain(args[0]), plain(consumer))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&consumer, "consumer", "", "`name` of the consumer")
	act.add(cmd, "audit line")
	return cmd
}

func (c *command) inboxInit() *cobra.Command {
	var printed bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Creates the tables of the inbox or brings them up to this version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withInbox(wiring.CreateInbox, func(in *wiring.Inbox) error {
				if printed {
					return printSQL(in, c.stdout)
				}
				if err := in.Init(cmd.Context()); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.stdout, "inbox %s is ready in %s\n", in.Table, in.Address)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&printed, "print", false, "print the SQL and touch nothing")
	return cmd
}
