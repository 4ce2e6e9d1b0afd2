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

// deadWork is what can be done to dead letters.
type deadWork struct {
	kind operator.JobKind
	done string // what the events are afterwards
	hint string // where else events may be
}

var (
	redriving  = deadWork{kind: operator.JobRedrive, done: "redriven"}
	discarding = deadWork{kind: operator.JobDiscard, done: "discarded"}
)

// deadJobFlags say how a job is made and carried out.
type deadJobFlags struct {
	chosen          filterFlags
	acting          actionFlags
	rate            int
	preview, detach bool
}

func (f *deadJobFlags) add(cmd *cobra.Command) {
	f.chosen.selects(cmd)
	f.chosen.selectsSinks(cmd)
	f.chosen.asksForAll(cmd)
	f.acting.add(cmd, "events")
	flags := cmd.Flags()
	flags.IntVar(&f.rate, "rate", 0, "at most this many `events` each second; 0 for no bound")
	flags.BoolVar(&f.preview, "preview", false, "change nothing: tell how many events of which groups would be taken")
	flags.BoolVar(&f.detach, "detach", false, "leave the job to the relays instead of following it")
}

func (f *deadJobFlags) job(kind operator.JobKind, ids []string) (operator.NewJob, error) {
	filter, err := f.chosen.target(ids)
	if err != nil {
		return operator.NewJob{}, err
	}
	switch {
	case f.rate < 0:
		return operator.NewJob{}, usageError{fmt.Errorf("--rate %d is below 0", f.rate)}
	case f.preview && f.detach:
		return operator.NewJob{}, usageError{errors.New("--preview contradicts --detach: a preview makes no job")}
	case kind == operator.JobDiscard && f.acting.reason == "" && !f.preview:
		return operator.NewJob{}, errNoReason
	}
	return operator.NewJob{Kind: kind, Filter: filter, Action: f.acting.action(), Rate: f.rate}, nil
}

// makesJob completes a command that makes a job over the chosen dead letters.
func (c *command) makesJob(work deadWork, cmd *cobra.Command) *cobra.Command {
	var flags deadJobFlags
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		n, err := flags.job(work.kind, ids)
		if err != nil {
			return err
		}
		return c.withOutbox(func(_ *config.Config, o *wiring.Outbox) error {
			if flags.preview {
				store, err := storeOf(o, flags.chosen.to)
				if err != nil {
					return err
				}
				return c.preview(cmd.Context(), store, work, n.Filter)
			}
			jobs, err := jobsOf(o, flags.chosen.to)
			if err != nil {
				return err
			}
			work.hint = hintOfDestinations(o, flags.chosen.to)
			return c.carryOut(cmd.Context(), jobs, work, n, flags.detach)
		})
	}
	flags.add(cmd)
	return c.printsJSON(cmd)
}

// carryOut makes a job and, unless it is left to the relays, follows it to its end.
func (c *command) carryOut(ctx context.Context, jobs operator.JobStore, work deadWork, n operator.NewJob, detach bool) error {
	job, err := jobs.CreateJob(ctx, n)
	if err != nil {
		return err
	}
	if detach {
		return errors.Join(c.printDetached(job, work), leftAlone(n.Filter, job.Total, work.done, work.hint))
	}
	fmt.Fprintf(c.stderr, "job %s: %s to be %s\n", job.ID, human.Events(job.Total), work.done)
	job, err = c.follow(ctx, jobs, job)
	if err != nil {
		return err
	}
	return errors.Join(c.printOutcome(job, work), c.remainder(job, n.Filter, work))
}

func (c *command) printDetached(job operator.Job, work deadWork) error {
	if c.json {
		return c.printJSON(map[string]any{"job": job})
	}
	_, err := fmt.Fprintf(c.stdout, "job %s: %s to be %s by the relays; postrider dead jobs show %s tells how far it is\n",
		job.ID, human.Events(job.Total), work.done, reference(job))
	return err
}

func (c *command) printOutcome(job operator.Job, work deadWork) error {
	if c.json {
		return c.printJSON(map[string]any{work.done: job.Changed, "job": job})
	}
	_, err := fmt.Fprintf(c.stdout, "%s %s\n", human.Events(job.Changed), work.done)
	return err
}

// reference is how a command names the job.
func reference(job operator.Job) string {
	if job.Destination == "" {
		return job.ID
	}
	return job.ID + " --to " + job.Destination
}

// remainder tells of chosen events that have not changed. It is an error when the job did not come to its end, or when
// an event that was named is among them.
func (c *command) remainder(job operator.Job, f operator.Filter, work deadWork) error {
	switch {
	case job.State == operator.JobPaused:
		return fmt.Errorf("job %s is paused after %s: %s; postrider dead jobs continue %s lets the relays go on with it",
			job.ID, human.Progress(job), plain(job.Steered), reference(job))
	case job.State == operator.JobCancelled:
		return fmt.Errorf("job %s was cancelled after %s: %s", job.ID, human.Progress(job), plain(job.Steered))
	case job.Changed < job.Total:
		fmt.Fprintf(c.stderr, "%s had been changed by others before the job came to them\n", human.Events(job.Total-job.Changed))
	}
	return leftAlone(f, job.Changed, work.done, work.hint)
}
