// Package cli is the command line. Each command has a file of its own; what they share is in root.go and print.go.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // wrong usage or configuration
)

// answerTimeout bounds commands that only look.
const answerTimeout = 30 * time.Second

// command is what all commands share.
type command struct {
	stdout, stderr io.Writer
	file           string // of the configuration
	json           bool
	started        bool // the arguments were right and the command has begun
}

// Main runs the command that args name and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal(stderr)
	defer stop()
	c := &command{stdout: stdout, stderr: stderr}
	root := c.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil, errors.Is(err, errReported):
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		fmt.Fprintln(stderr, "postrider: interrupted")
	default:
		fmt.Fprintln(stderr, "postrider:", err)
	}
	return c.exitCode(err)
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "postrider",
		Short: "Moves events from an outbox table to a broker",
		Long: "Postrider moves every event that an application committed to its outbox table to a broker, in order per\n" +
			"key and without losing any. `postrider demo` shows it with everything built in.",
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { c.started = true },
	}
	root.PersistentFlags().StringVarP(&c.file, "config", "c", "postrider.yaml", "the configuration `file`")
	root.AddCommand(
		c.demo(), c.init(), c.check(), c.run(), c.status(), c.events(), c.trace(), c.dead(), c.dlt(), c.inbox(), c.routes(), c.version(),
	)
	return root
}

// printsJSON adds --json to a command that prints data. Errors stay text, on standard error: a program that runs the
// command goes by its exit code, and finds on standard output JSON or nothing.
func (c *command) printsJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.json, "json", false, "print data as JSON; errors stay text, on standard error")
	return cmd
}

// group makes a command that has only subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use:   use,
		Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q for %q; see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())}
			}
			return usageError{fmt.Errorf("%s needs a command; see %s --help", cmd.CommandPath(), cmd.CommandPath())}
		},
	}
	g.AddCommand(commands...)
	return g
}

// errReported ends a command that has told already what is wrong.
var errReported = errors.New("reported")

// usageError is a wrong use of a command.
type usageError struct{ error }

func (c *command) exitCode(err error) int {
	var usage usageError
	var mistakes *config.Error
	var mistake *wiring.ConfigError
	switch {
	case err == nil:
		return exitDone
	case !c.started, errors.As(err, &usage), errors.As(err, &mistakes), errors.As(err, &mistake):
		return exitUsage
	default:
		return exitFailed
	}
}

// load reads the configuration.
func (c *command) load() (*config.Config, error) {
	cfg, err := config.Load(c.file)
	var mistakes *config.Error
	if err != nil && !errors.As(err, &mistakes) {
		return nil, usageError{err} // the file cannot be read
	}
	return cfg, err
}

// withOutbox calls f with the configured outbox.
func (c *command) withOutbox(f func(*config.Config, *wiring.Outbox) error) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	outbox, err := wiring.OpenOutbox(cfg)
	if err != nil {
		return err
	}
	defer outbox.Close()
	return f(cfg, outbox)
}

// looking bounds a command that only looks.
func looking(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(cmd.Context(), answerTimeout)
}
