package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/demo"
)

func (c *command) demo() *cobra.Command {
	o := demo.Options{Version: version()}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Shows everything at work in one process: application, relay, JetStream, consumer",
		Long: "Runs a small application that takes orders, its outbox in a SQLite file, the relay with its admin server,\n" +
			"a JetStream server and a consumer with an inbox, all in this process. In the end a ledger holds what was\n" +
			"committed against what was published and applied; the exit code is 1 when anything is missing, made up,\n" +
			"out of order or applied twice.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Exit && o.Events == 0 {
				return usageError{errors.New("--exit needs --events: say how many events to run")}
			}
			if o.Events < 0 {
				return usageError{fmt.Errorf("--events %d is below 0", o.Events)}
			}
			o.Out = c.stdout
			if c.json {
				o.Out = c.stderr
			}
			o.Logger = slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			ledger, err := demo.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.printLedger(ledger)
		},
	}
	cmd.Flags().IntVar(&o.Events, "events", 0, "commit this `number` of events as fast as possible; 0 is a gentle load")
	cmd.Flags().BoolVar(&o.Exit, "exit", false, "end when the events of --events are applied")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "`folder` to keep the files in (default a temporary one, removed in the end)")
	cmd.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:8970", "`address` of the admin server")
	return c.printsJSON(cmd)
}

var errUnsound = errors.New("the ledger does not balance: see missing, ghosts, out_of_order and duplicates_applied")

func (c *command) printLedger(l demo.Ledger) error {
	if err := c.writeLedger(l); err != nil {
		return err
	}
	if !l.Sound() {
		return errUnsound
	}
	return nil
}

func (c *command) writeLedger(l demo.Ledger) error {
	if c.json {
		return c.printJSON(l)
	}
	fmt.Fprintln(c.stdout, "\nLedger")
	t := newTable(c.stdout)
	for _, line := range []struct {
		name  string
		count int
	}{
		{"committed", l.Committed}, {"rolled back", l.RolledBack}, {"published", l.Published}, {"applied", l.Applied},
		{"duplicates published", l.DuplicatesPublished}, {"duplicates applied", l.DuplicatesApplied},
		{"missing", l.Missing}, {"ghosts", l.Ghosts}, {"out of order", l.OutOfOrder},
	} {
		t.row("  "+line.name, strconv.Itoa(line.count))
	}
	t.row("  seconds", strconv.FormatFloat(l.Seconds, 'f', 2, 64))
	return t.flush()
}
