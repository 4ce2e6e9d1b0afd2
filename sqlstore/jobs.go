package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/postrider/postrider/internal/jobs"
	"github.com/postrider/postrider/internal/text"
	"github.com/postrider/postrider/operator"
)

// forgetChunk is how many events of the set of a job that has ended one statement deletes.
const forgetChunk = 10_000

// CreateJob implements operator.JobStore.
func (s *Store) CreateJob(ctx context.Context, n operator.NewJob) (job operator.Job, err error) {
	const op = "create a job"
	const ownParameters = 2
	if err := jobs.Check(n); err != nil {
		return job, s.fail(op, err)
	}
	ids, err := s.ids(ctx, op)
	if err != nil {
		return job, err
	}
	n.Filter.State = "" // the statement chooses what is DEAD
	condition, args, err := s.where(ids, n.Filter, ownParameters+1)
	if err != nil {
		return job, s.fail(op, err)
	}
	limit := int64(math.MaxInt64)
	if n.Filter.Limit > 0 {
		limit = int64(n.Filter.Limit)
	}
	var found []operator.Job
	err = s.repeat(ctx, op, func() error {
		return s.inTx(ctx, func(tx *sql.Tx) (err error) {
			found, err = s.freeze(ctx, op, tx, n, condition, append([]any{limit}, args...))
			return err
		})
	})
	if err != nil {
		return job, err
	}
	return found[0], nil
}

// freeze stores a job, with the events that the condition selects as its set, and returns it. args are the highest number of
// events and those of the condition.
func (s *Store) freeze(ctx context.Context, op string, tx *sql.Tx, n operator.NewJob, condition string, args []any) (found []operator.Job, err error) {
	var made []int64
	err = s.runIn(ctx, op, tx, "job_new", into(&made, scanValue[int64]),
		string(n.Kind), text.Clean(n.Action.Who), text.Clean(n.Action.Reason), text.Clean(n.Filter.String()), n.Rate)
	if err != nil {
		return nil, err
	}
	if err := s.runFilteredIn(ctx, op, tx, "job_freeze", condition, nil, append([]any{made[0]}, args...)...); err != nil {
		return nil, err
	}
	if err := s.runIn(ctx, op, tx, "job_begin", nil, made[0]); err != nil {
		return nil, err
	}
	return s.jobIn(ctx, op, tx, made[0])
}

// Jobs implements operator.JobStore.
func (s *Store) Jobs(ctx context.Context, limit int) (list []operator.Job, err error) {
	err = s.runFiltered(ctx, "list jobs", "jobs", "true", into(&list, scanJob), limit)
	return list, err
}

// Job implements operator.JobStore.
func (s *Store) Job(ctx context.Context, id string) (operator.Job, error) {
	number, err := s.jobNumber(id)
	if err != nil {
		return operator.Job{}, err
	}
	var found []operator.Job
	if err := s.runFiltered(ctx, "show a job", "jobs", jobHas(number), into(&found, scanJob), 1); err != nil {
		return operator.Job{}, err
	}
	if len(found) == 0 {
		return operator.Job{}, s.noJob(id)
	}
	return found[0], nil
}

// SteerJob implements operator.JobStore.
func (s *Store) SteerJob(ctx context.Context, id string, to operator.JobState, a operator.Action) (job operator.Job, err error) {
	const op = "steer a job"
	steered, err := jobs.Steered(to, a)
	if err != nil {
		return job, s.fail(op, err)
	}
	number, err := s.jobNumber(id)
	if err != nil {
		return job, err
	}
	var found []operator.Job
	ended := false
	err = s.repeat(ctx, op, func() error {
		return s.inTx(ctx, func(tx *sql.Tx) (err error) {
			found, ended, err = s.steer(ctx, op, tx, number, to, text.Clean(steered))
			return err
		})
	})
	switch {
	case err != nil:
		return job, err
	case len(found) == 0:
		return job, s.noJob(id)
	case ended:
		return job, &operator.JobStateError{ID: id, State: found[0].State, To: to}
	}
	return found[0], nil
}

// steer finds a job as it stands afterwards; ended says that it had ended before.
func (s *Store) steer(ctx context.Context, op string, tx *sql.Tx, number int64, to operator.JobState, steered string) (found []operator.Job, ended bool, err error) {
	var locked []int64
	if err := s.runIn(ctx, op, tx, "job_lock", into(&locked, scanValue[int64]), number); err != nil || len(locked) == 0 {
		return nil, false, err
	}
	if found, err = s.jobIn(ctx, op, tx, number); err != nil {
		return nil, false, err
	}
	if ended = found[0].FinishedAt != nil; ended || found[0].State == to {
		return found, ended, nil
	}
	if err := s.runIn(ctx, op, tx, "job_steer", nil, number, string(to), steered); err != nil {
		return nil, false, err
	}
	found, err = s.jobIn(ctx, op, tx, number)
	return found, false, err
}

// jobIn finds a job within a transaction.
func (s *Store) jobIn(ctx context.Context, op string, tx *sql.Tx, number int64) (found []operator.Job, err error) {
	err = s.runFilteredIn(ctx, op, tx, "jobs", jobHas(number), into(&found, scanJob), 1)
	return found, err
}

func jobHas(number int64) string { return "j.id = " + strconv.FormatInt(number, 10) }

func (s *Store) jobNumber(id string) (int64, error) {
	if !isNumber(id) {
		return 0, s.noJob(id)
	}
	return strconv.ParseInt(id, 10, 64)
}

func (s *Store) noJob(id string) error {
	return fmt.Errorf("%w: %q of outbox %s", operator.ErrNoJob, id, s.config.Table)
}

func scanJob(rows *sql.Rows) (j operator.Job, err error) {
	var finished sql.Null[moment]
	err = rows.Scan(&j.ID, &j.Kind, &j.State, &j.Who, &j.Reason, &j.Filter, &j.Rate, &j.Total, &j.Looked, &j.Changed,
		(*moment)(&j.CreatedAt), &j.Steered, &finished)
	if finished.Valid {
		at := time.Time(finished.V)
		j.FinishedAt = &at
	}
	return j, err
}

// tidyJobs deletes the sets of jobs that have ended, chunk by chunk, and then the jobs that ended long ago.
func (s *Store) tidyJobs(ctx context.Context, op string) error {
	for {
		var left []leftover
		if err := s.run(ctx, op, "job_leftover", into(&left, scanLeftover)); err != nil {
			return err
		}
		if len(left) == 0 {
			return s.run(ctx, op, "jobs_old", nil, int64(operator.JobRetention.Seconds()))
		}
		for n := int64(forgetChunk); n < left[0].events+forgetChunk; n += forgetChunk {
			if err := s.run(ctx, op, "job_forget", nil, left[0].job, n); err != nil {
				return err
			}
		}
	}
}

// leftover is a job that has ended and still has a set.
type leftover struct{ job, events int64 }

func scanLeftover(rows *sql.Rows) (l leftover, err error) {
	err = rows.Scan(&l.job, &l.events)
	return l, err
}
