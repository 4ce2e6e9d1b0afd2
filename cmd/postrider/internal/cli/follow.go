package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/operator"
)

// How long the command waits between two looks at the job that it follows.
const (
	shortestLook = 10 * time.Millisecond
	longestLook  = time.Second
)

// follow carries a job out, beside the relays if some are at work, until it is no longer RUNNING. The job outlives an
// error, which says so.
func (c *command) follow(ctx context.Context, jobs operator.JobStore, job operator.Job) (operator.Job, error) {
	shown := progress{c.stderr}
	defer shown.end()
	for job.State == operator.JobRunning {
		shown.show(job)
		next, err := step(ctx, jobs, &job)
		if err == nil && job.State == operator.JobRunning {
			err = sleep(ctx, next)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return job, fmt.Errorf("interrupted after %s: %s", human.Progress(job), staysBehind(job))
		case err != nil:
			return job, fmt.Errorf("%w; %s", err, staysBehind(job))
		}
	}
	return job, nil
}

func staysBehind(job operator.Job) string {
	return fmt.Sprintf("job %s stays, and the relays go on with it; postrider dead jobs shows, pauses and cancels it", job.ID)
}

// step carries out a part of what is due and reads the job again. next is when to look again. An error may be another
// job's: it does not matter once this one has ended.
func step(ctx context.Context, jobs operator.JobStore, job *operator.Job) (next time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	next, stepErr := jobs.StepJobs(ctx)
	now, err := jobs.Job(ctx, job.ID)
	if err != nil {
		return 0, errors.Join(stepErr, err)
	}
	*job = now
	if job.State != operator.JobRunning {
		return 0, nil
	}
	return min(max(next, shortestLook), longestLook), stepErr
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// progress shows how far a job is on a line of a terminal, and nowhere else.
type progress struct{ w io.Writer }

func (p progress) show(job operator.Job) {
	if p.onTerminal() {
		fmt.Fprintf(p.w, "\r%s\x1b[K", human.Progress(job))
	}
}

// end frees the line for what is printed next.
func (p progress) end() {
	if p.onTerminal() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p progress) onTerminal() bool {
	file, ok := p.w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
