package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/operator"
)

func (c *command) check() *cobra.Command {
	return c.printsJSON(&cobra.Command{
		Use:   "check",
		Short: "Looks for what is wrong with configuration, database, tables and sinks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := c.findings(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.printFindings(findings); err != nil {
				return err
			}
			if slices.ContainsFunc(findings, isError) {
				return errReported
			}
			return nil
		},
	})
}

func isError(f operator.Finding) bool { return f.Level == operator.LevelError }

// findings looks at everything. A mistake in the configuration is a finding; only a file that cannot be read is an
// error.
func (c *command) findings(ctx context.Context) ([]operator.Finding, error) {
	cfg, err := c.load()
	var mistakes *config.Error
	switch {
	case errors.As(err, &mistakes):
		return configFindings(mistakes), nil
	case err != nil:
		return nil, err
	}
	findings := []operator.Finding{operator.OK("configuration", c.file+" has no mistakes")}
	findings = append(findings, wiring.CheckRoutes(cfg)...)
	findings = append(findings, outboxFindings(ctx, cfg)...)
	found, kept := sinkFindings(ctx, cfg)
	findings = append(findings, found...)
	return append(findings, inboxFindings(ctx, cfg, kept)...), nil
}

func configFindings(mistakes *config.Error) []operator.Finding {
	var findings []operator.Finding
	for _, p := range mistakes.Problems {
		subject := fmt.Sprintf("%s:%d", p.File, p.Line)
		if p.Path != "" {
			subject += " " + p.Path
		}
		findings = append(findings, operator.Problem(subject, p.Message, p.Hint))
	}
	return findings
}

func outboxFindings(ctx context.Context, cfg *config.Config) []operator.Finding {
	outbox, err := wiring.OpenOutbox(cfg)
	if err != nil {
		return []operator.Finding{operator.Problem("outbox", err.Error(), "")}
	}
	defer outbox.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return outbox.Check(ctx, cfg.Relay)
}

// inboxFindings holds the windows of the inbox against how long events are kept elsewhere.
func inboxFindings(ctx context.Context, cfg *config.Config, kept []wiring.Kept) []operator.Finding {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return wiring.CheckInbox(ctx, cfg, kept)
}

func sinkFindings(ctx context.Context, cfg *config.Config) (findings []operator.Finding, kept []wiring.Kept) {
	for _, s := range cfg.Sinks {
		found, keeps := findingsOf(ctx, s, cfg.Deliveries())
		findings, kept = append(findings, found...), append(kept, keeps...)
	}
	return findings, kept
}

// findingsOf leaves embedded servers alone: they are part of the relay's process.
func findingsOf(ctx context.Context, s config.Sink, routes []config.Route) ([]operator.Finding, []wiring.Kept) {
	subject := "sink " + s.Name
	if s.NATS != nil && s.NATS.Embedded != nil {
		return []operator.Finding{operator.OK(subject, "its server is part of postrider run, so it was not looked at")}, nil
	}
	sinks, err := wiring.OpenSinks(ctx, []config.Sink{s}, io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		return []operator.Finding{operator.Problem(subject, err.Error(), "")}, nil
	}
	defer sinks.Close()
	findings := sinks.Check(ctx, routes)
	if slices.ContainsFunc(findings, isError) {
		return findings, nil
	}
	return findings, sinks.Kept(ctx, routes)
}

func (c *command) printFindings(findings []operator.Finding) error {
	if c.json {
		return c.printJSON(map[string]any{"findings": findings})
	}
	for _, f := range findings {
		if _, err := fmt.Fprintf(c.stdout, "%-7s  %s\n", f.Level, plain(wiring.Line(f))); err != nil {
			return err
		}
	}
	return nil
}
