package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/postrider/postrider/internal/jobs"
	"github.com/postrider/postrider/operator"
)

const (
	// jobTaken is how long somebody who finds that others carry out a job leaves it to them.
	jobTaken = time.Second

	noJobRuns = time.Duration(-1)
)

// StepJobs implements operator.JobStore and relay.JobStepper. Each part is one transaction, which begins by locking the job.
func (s *Store) StepJobs(ctx context.Context) (next time.Duration, err error) {
	const op = "carry out jobs"
	ids, err := s.ids(ctx, op)
	if err != nil {
		return noJobRuns, err
	}
	var running []runningJob
	if err := s.run(ctx, op, "job_due", into(&running, scanRunning)); err != nil {
		return noJobRuns, err
	}
	next = noJobRuns
	for _, job := range running {
		if job.wait <= 0 {
			var stepErr error
			job.wait, stepErr = s.stepJob(ctx, op, ids, job.id)
			err = errors.Join(err, stepErr)
		}
		if job.wait >= 0 && (next == noJobRuns || job.wait < next) {
			next = job.wait
		}
	}
	return next, err
}

// runningJob is a job that is RUNNING, and how long it is until it is due.
type runningJob struct {
	id   int64
	wait time.Duration
}

func scanRunning(rows *sql.Rows) (j runningJob, err error) {
	var seconds float64
	err = rows.Scan(&j.id, &seconds)
	j.wait = time.Duration(seconds * float64(time.Second))
	return j, err
}

// stepJob carries out a part of a job, and tells how long it is until the next one is due.
func (s *Store) stepJob(ctx context.Context, op string, ids ids, id int64) (wait time.Duration, err error) {
	changed := 0
	err = s.repeat(ctx, op, func() error {
		return s.inTx(ctx, func(tx *sql.Tx) error {
			var taken []takenJob
			if err := s.runIn(ctx, op, tx, "job_take", into(&taken, scanTaken), id); err != nil {
				return err
			}
			if len(taken) == 0 {
				wait = jobTaken
				return nil
			}
			job := taken[0]
			to, pause := jobs.Pace(job.looked, job.total, job.rate)
			if changed, err = s.changePart(ctx, op, ids, tx, job, to); err != nil {
				return err
			}
			if wait = pause; to == job.total {
				wait = noJobRuns
			}
			return s.runIn(ctx, op, tx, "job_step", nil, id, to, changed, pause.Seconds())
		})
	})
	if changed > 0 {
		s.floors.forget()
	}
	return wait, err
}

// takenJob is a job whose row the transaction has locked.
type takenJob struct {
	id          int64
	kind        operator.JobKind
	who, reason string
	rate        int
	total       int
	looked      int
}

func scanTaken(rows *sql.Rows) (j takenJob, err error) {
	err = rows.Scan(&j.id, &j.kind, &j.who, &j.reason, &j.rate, &j.total, &j.looked)
	return j, err
}

// jobWork is what the kinds of jobs do: the query of an operator's action, and the outcome that is kept with the events.
var jobWork = map[operator.JobKind]struct{ query, outcome string }{
	operator.JobRedrive: {"redrive", "redriven"},
	operator.JobDiscard: {"discard", "discarded"},
}

// changePart changes those events of a job's next part that are DEAD, and counts them.
func (s *Store) changePart(ctx context.Context, op string, ids ids, tx *sql.Tx, job takenJob, to int) (int, error) {
	var part []string
	if err := s.runIn(ctx, op, tx, "job_part", into(&part, scanValue[string]), job.id, job.looked, to); err != nil {
		return 0, err
	}
	first, err := ids.after("")
	if err != nil {
		return 0, err
	}
	var changed []string
	work := jobWork[job.kind]
	err = s.runFilteredIn(ctx, op, tx, s.aside(work.query), s.among(part), into(&changed, scanValue[string]),
		first, len(part), work.outcome, job.reason, job.who)
	return len(changed), err
}
