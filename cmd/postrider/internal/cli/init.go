package cli

import (
	"fmt"
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
		Short: "Creates the outbox tables or brings them up to this version",
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
				return outbox.Store.Print(c.stdout)
			}
			if err := outbox.Store.Init(cmd.Context()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.stdout, "outbox %s is ready in %s\n", cfg.Outbox.Table, outbox.Address)
			return err
		},
	}
	cmd.Flags().BoolVar(&printed, "print", false, "print the SQL and touch nothing")
	cmd.Flags().StringVar(&payload, "payload", "", "`type` of the payload column, json or binary (default as in outbox.payload)")
	return cmd
}
