package cli

import (
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/daemon"
)

func (c *command) run() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Runs the relay with its admin server until SIGINT or SIGTERM",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			o := daemon.Options{Version: version(), Stdout: c.stdout, Logger: newLogger(c.stderr, cfg.Log)}
			if cfg.Admin.Listen != "" {
				var tcp net.ListenConfig
				if o.Listener, err = tcp.Listen(cmd.Context(), "tcp", cfg.Admin.Listen); err != nil {
					return fmt.Errorf("admin server: %w; choose another address with admin.listen", err)
				}
			}
			return daemon.Run(cmd.Context(), cfg, o)
		},
	}
}

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
