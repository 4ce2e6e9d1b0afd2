package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
)

func (c *command) init() *cobra.Command {
	var printed bool
	var payload string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Creates the outbox tables or brings them up to this version; beside a table of yours, only the side tables",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			if payload != "" {
				cfg.Outbox.Payload = config.Payload(payload)
			}
			if !slices.Contains([]config.Payload{config.PayloadJSON, config.PayloadBinary}, cfg.Outbox.Payload) {
				return usageError{fmt.Errorf("--payload %q is neither json nor binary", payload)}
			}
			outbox, err := wiring.CreateOutbox(cfg)
			if err != nil {
				return err
			}
			defer outbox.Close()
			if printed {
				return printSQL(outbox, c.stdout)
			}
			if err := outbox.Init(cmd.Context()); err != nil {
				return err
			}
			return c.printReady(cfg, outbox)
		},
	}
	cmd.Flags().BoolVar(&printed, "print", false, "print the SQL and touch nothing")
	cmd.Flags().StringVar(&payload, "payload", "", "`type` of the payload column, json or binary (default as in outbox.payload)")
	return cmd
}

func (c *command) printReady(cfg *config.Config, outbox *wiring.Outbox) error {
	text := "outbox %s is ready in %s\n"
	if cfg.Outbox.IsTheirs() {
		text = "the side tables of %s are ready in %s; the table itself was not touched\n"
	}
	if _, err := fmt.Fprintf(c.stdout, text, cfg.Outbox.Table, outbox.Address); err != nil {
		return err
	}
	for _, d := range outbox.Destinations {
		if _, err := fmt.Fprintf(c.stdout, "outbox %s of sink %s is ready\n", d.Table, d.Sink); err != nil {
			return err
		}
	}
	return nil
}

func printSQL(of interface{ Print(w io.Writer) error }, w io.Writer) error {
	err := of.Print(w)
	if errors.Is(err, wiring.ErrNoSQL) {
		return usageError{fmt.Errorf("--print: %w", err)}
	}
	return err
}
