package operator

import (
	"context"
	"errors"
	"time"
)

// ErrNoJob says that no job has the given id.
var ErrNoJob = errors.New("no such job")

// JobKind is what a job does to the dead letters of its set.
type JobKind string

// The kinds of jobs.
const (
	JobRedrive JobKind = "redrive" // makes them PENDING, with their attempts reset
	JobDiscard JobKind = "discard" // makes them DISCARDED
)

// JobState is where a job is in its life. RUNNING and PAUSED change into each other; both end as CANCELLED, and RUNNING
// as DONE once it has been through its whole set.
type JobState string

// The states of a job.
const (
	JobRunning   JobState = "RUNNING"
	JobPaused    JobState = "PAUSED"
	JobCancelled JobState = "CANCELLED"
	JobDone      JobState = "DONE"
)

// NewJob describes a job that is to be stored.
type NewJob struct {
	Kind   JobKind
	Filter Filter // of DEAD events; State is not looked at. Limit bounds the set
	Action Action // kept with each event that the job changes. A discard needs a reason
	Rate   int    // in no second are more than this many events of the set looked at; 0 for no bound
}

// Job is a redrive or discard of a set of dead letters that was frozen when the job was made. Relays carry it out, in
// outbox order, and look at each event of the set once: one that becomes DEAD again is left alone. A job that has ended is
// kept for JobRetention. Times are UTC.
type Job struct {
	ID         string     `json:"id"`
	Kind       JobKind    `json:"kind"`
	State      JobState   `json:"state"`
	Who        string     `json:"who"`
	Reason     string     `json:"reason"`
	Filter     string     `json:"filter"`    // what it was made of, for people
	Rate       int        `json:"rate"`      // events each second; 0 for no bound
	Total      int        `json:"total"`     // events of the set
	Looked     int        `json:"looked_at"` // of them the job has been through so many, in outbox order
	Changed    int        `json:"changed"`   // of these it changed so many; the others were no longer DEAD
	CreatedAt  time.Time  `json:"created_at"`
	Steered    string     `json:"steered"`     // who paused, continued or cancelled it last, and why, for people; empty if nobody did
	FinishedAt *time.Time `json:"finished_at"` // when it became DONE or CANCELLED

	// Destination is the sink in whose own outbox its events are; empty for the outbox itself.
	Destination string `json:"destination,omitempty"`
}

// JobRetention is how long a job is kept after it has ended.
const JobRetention = 90 * 24 * time.Hour

// JobStore keeps jobs and carries them out. It is safe for concurrent use, by several processes as well.
type JobStore interface {
	// CreateJob freezes the set and stores the job as RUNNING, in one transaction. An empty set gives a job that is DONE.
	// It locks no event. It refuses a kind that is none, a rate below 0, and a discard without a reason.
	CreateJob(ctx context.Context, n NewJob) (Job, error)

	// Jobs lists jobs, the newest first.
	Jobs(ctx context.Context, limit int) ([]Job, error)

	// Job finds one job. It returns ErrNoJob.
	Job(ctx context.Context, id string) (Job, error)

	// SteerJob pauses, continues or cancels a job: to is JobPaused, JobRunning or JobCancelled. It returns the job as it
	// stands afterwards, which tells who did it and why, ErrNoJob, or a *JobStateError when the job has ended. A job that
	// is in the state already stays as it is. A step that is under way comes to its end first.
	SteerJob(ctx context.Context, id string, to JobState, a Action) (Job, error)

	// StepJobs carries out a part of every RUNNING job that is due by its rate: it changes the next events of the set and
	// records how far the job has come in one transaction, which proves that nobody else did. A job that somebody else
	// carries out at the moment is left to them. It returns how long to wait until a job is due again: 0 when one is due
	// now, and a negative time when no job is RUNNING. With an error, the jobs that it does not concern went on.
	StepJobs(ctx context.Context) (next time.Duration, err error)
}

// JobStateError says that a job has ended and can no longer be steered.
type JobStateError struct {
	ID    string
	State JobState // in which the job is
	To    JobState // in which it was to be
}

// Error says in which state the job is.
func (e *JobStateError) Error() string {
	return "job " + e.ID + " is " + string(e.State) + " and cannot become " + string(e.To)
}
