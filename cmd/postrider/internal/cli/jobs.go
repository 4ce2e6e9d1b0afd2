package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/operator"
)

// mostJobs is how many jobs are listed unless --limit says otherwise.
const mostJobs = 50

func (c *command) deadJobs() *cobra.Command {
	cmd := c.jobsList(&cobra.Command{
		Use:   "jobs",
		Short: "Lists the jobs that redrive or discard dead letters, the newest first, and steers them",
		Args:  cobra.NoArgs,
	})
	cmd.PersistentFlags().String("to", "", inDestination)
	cmd.AddCommand(
		c.jobsShow(),
		c.steersJob(operator.JobPaused, &cobra.Command{
			Use:   "pause JOB",
			Short: "Lets a job rest until it is continued; what it has done stays done",
		}),
		c.steersJob(operator.JobRunning, &cobra.Command{
			Use:   "continue JOB",
			Short: "Lets a paused job go on where it stopped",
		}),
		c.steersJob(operator.JobCancelled, &cobra.Command{
			Use:   "cancel JOB",
			Short: "Ends a job for good; what it has done stays done, the rest of its events stay DEAD",
		}),
	)
	return cmd
}

// withJobs calls f with the jobs of the configured outbox, or of the destination that --to names.
func (c *command) withJobs(cmd *cobra.Command, f func(context.Context, operator.JobStore) error) error {
	return c.withOutbox(func(_ *config.Config, o *wiring.Outbox) error {
		ctx, cancel := looking(cmd)
		defer cancel()
		to, err := cmd.Flags().GetString("to")
		if err != nil {
			return err
		}
		jobs, err := jobsOf(o, to)
		if err != nil {
			return err
		}
		return f(ctx, jobs)
	})
}

func (c *command) jobsList(cmd *cobra.Command) *cobra.Command {
	var limit int
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.withJobs(cmd, func(ctx context.Context, jobs operator.JobStore) error {
			list, err := jobs.Jobs(ctx, limit)
			if err != nil {
				return err
			}
			return c.printJobs(list)
		})
	}
	cmd.Flags().IntVar(&limit, "limit", mostJobs, "at most this many jobs")
	return c.printsJSON(cmd)
}

func (c *command) printJobs(jobs []operator.Job) error {
	if c.json {
		return c.printJSON(map[string]any{"jobs": append([]operator.Job{}, jobs...)})
	}
	t := newTable(c.stdout, "JOB", "KIND", "STATE", "EVENTS", "CHANGED", "RATE", "CREATED", "WHO", "REASON")
	for _, j := range jobs {
		t.row(j.ID, string(j.Kind), string(j.State), human.Progress(j), strconv.Itoa(j.Changed), human.Rate(j.Rate),
			human.UTC(j.CreatedAt), j.Who, short(j.Reason))
	}
	return t.flush()
}

func (c *command) jobsShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show JOB",
		Short:             "Shows one job: what it was made of, how far it is, who made and who steered it",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withJobs(cmd, func(ctx context.Context, jobs operator.JobStore) error {
				job, err := jobs.Job(ctx, args[0])
				if err != nil {
					return err
				}
				return c.printJob(job)
			})
		},
	}
	return c.printsJSON(cmd)
}

func (c *command) printJob(j operator.Job) error {
	if c.json {
		return c.printJSON(j)
	}
	t := newTable(c.stdout)
	t.row("job", j.ID)
	t.row("kind", string(j.Kind))
	t.row("state", string(j.State))
	t.row("events", human.Progress(j))
	t.row("changed", strconv.Itoa(j.Changed))
	t.row("filter", j.Filter)
	t.row("rate", human.Rate(j.Rate))
	t.row("who", j.Who)
	t.row("reason", j.Reason)
	t.row("created", human.UTC(j.CreatedAt))
	t.row("steered", j.Steered)
	if j.FinishedAt != nil {
		t.row("finished", human.UTC(*j.FinishedAt))
	}
	return t.flush()
}

// steersJob completes a command that brings a job into a state.
func (c *command) steersJob(to operator.JobState, cmd *cobra.Command) *cobra.Command {
	var acting actionFlags
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = c.completeJob
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withJobs(cmd, func(ctx context.Context, jobs operator.JobStore) error {
			job, err := jobs.SteerJob(ctx, args[0], to, acting.action())
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(job)
			}
			_, err = fmt.Fprintf(c.stdout, "job %s is %s after %s\n", job.ID, job.State, human.Progress(job))
			return err
		})
	}
	acting.add(cmd, "job")
	return c.printsJSON(cmd)
}

// completeJob lets a shell complete the id of a job.
func (c *command) completeJob(cmd *cobra.Command, args []string, _ string) (ids []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	err := c.withJobs(cmd, func(ctx context.Context, jobs operator.JobStore) error {
		list, err := jobs.Jobs(ctx, mostJobs)
		for _, j := range list {
			ids = append(ids, cobra.CompletionWithDesc(j.ID, human.Job(j)))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
