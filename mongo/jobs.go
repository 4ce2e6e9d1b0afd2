package mongo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/jobs"
	"github.com/postrider/postrider/internal/text"
	"github.com/postrider/postrider/operator"
)

// jobFreezing is the state of a job whose set is not complete yet; nobody sees such a job. So a set of any size needs no
// transaction: one update of one document makes the job with its whole set visible, or nothing does.
const jobFreezing operator.JobState = "FREEZING"

const (
	// freezingWithin is longer than it takes to freeze a set. What is older was left by a process that ended.
	freezingWithin = 24 * time.Hour

	// setsAtOnce is how many documents of a set are inserted at a time.
	setsAtOnce = 20

	// steerAgain is how often SteerJob looks whether a step has come to its end, where no transaction makes it wait.
	steerAgain = 20 * time.Millisecond
)

// job is a document of the collection of jobs.
type job struct {
	ID         int64             `bson:"_id"`
	Kind       operator.JobKind  `bson:"kind"`
	State      operator.JobState `bson:"state"`
	Who        string            `bson:"who"`
	Reason     string            `bson:"reason"`
	Filter     string            `bson:"filter"`
	Rate       int               `bson:"rate"`
	Total      int               `bson:"total"`
	Looked     int               `bson:"looked"`
	Changed    int               `bson:"changed"`
	CreatedAt  time.Time         `bson:"created_at"` // when the set was complete
	DueAt      time.Time         `bson:"due_at"`
	Steered    string            `bson:"steered"`
	FinishedAt *time.Time        `bson:"finished_at,omitempty"`
	Taken      *bson.ObjectID    `bson:"taken,omitempty"`       // by the step that carries out a part
	TakenUntil *time.Time        `bson:"taken_until,omitempty"` // then others may take it over
}

func (j job) job() operator.Job {
	shown := operator.Job{ID: strconv.FormatInt(j.ID, 10), Kind: j.Kind, State: j.State, Who: j.Who, Reason: j.Reason, Filter: j.Filter,
		Rate: j.Rate, Total: j.Total, Looked: j.Looked, Changed: j.Changed, CreatedAt: j.CreatedAt.UTC(), Steered: j.Steered}
	if j.FinishedAt != nil {
		at := j.FinishedAt.UTC()
		shown.FinishedAt = &at
	}
	return shown
}

// jobSet is a document of the collection of sets: some events of a job's set, in outbox order.
type jobSet struct {
	Job    int64  `bson:"job"`
	First  int    `bson:"first"` // the place of the first of them in the set, from 1
	Events bson.A `bson:"events"`
}

// CreateJob implements operator.JobStore.
func (s *Store) CreateJob(ctx context.Context, n operator.NewJob) (operator.Job, error) {
	const op = "create a job"
	if err := jobs.Check(n); err != nil {
		return operator.Job{}, s.fail(op, err)
	}
	if _, err := s.fits(ctx, op); err != nil {
		return operator.Job{}, err
	}
	letters, err := s.chosenDead(n.Filter)
	if err != nil {
		return operator.Job{}, s.fail(op, err)
	}
	id, err := s.insertJob(ctx, n)
	if err != nil {
		return operator.Job{}, s.fail(op, err)
	}
	total := 0
	err = s.inSnapshot(ctx, func(reading context.Context) (err error) {
		total, err = s.freeze(ctx, reading, id, letters)
		return err
	})
	if err != nil {
		return operator.Job{}, s.fail(op, err)
	}
	made, err := s.beginJob(ctx, id, total)
	return made.job(), s.fail(op, err)
}

// insertJob stores a job without a set, and returns its id. The newest job is never deleted, so that no number comes again.
func (s *Store) insertJob(ctx context.Context, n operator.NewJob) (int64, error) {
	now, err := s.now(ctx)
	if err != nil {
		return 0, err
	}
	j := job{Kind: n.Kind, State: jobFreezing, Who: text.Clean(n.Action.Who), Reason: text.Clean(n.Action.Reason),
		Filter: text.Clean(n.Filter.String()), Rate: n.Rate, CreatedAt: now, DueAt: now}
	for {
		newest, err := s.newestJob(ctx)
		if err != nil {
			return 0, err
		}
		j.ID = newest + 1
		if _, err = s.jobs.InsertOne(ctx, j); !driver.IsDuplicateKeyError(err) {
			return j.ID, err
		}
	}
}

// newestJob returns the number of the newest job, 0 when there is none.
func (s *Store) newestJob(ctx context.Context) (id int64, err error) {
	found, err := find[job](ctx, s.jobs, bson.M{}, options.Find().SetSort(bson.M{"_id": -1}).SetLimit(1).SetProjection(bson.M{"_id": 1}))
	if len(found) > 0 {
		id = found[0].ID
	}
	return id, err
}

// freeze stores what a pipeline selects as the set of a job, and counts it. A snapshot is only for reading: the writes have
// a context of their own.
func (s *Store) freeze(ctx, reading context.Context, id int64, letters bson.A) (total int, err error) {
	cursor, err := s.events.Aggregate(reading, letters, options.Aggregate().SetBatchSize(jobs.MaxPart))
	if err != nil {
		return 0, err
	}
	defer closeCursor(reading, cursor)
	if _, err := s.jobEvents.DeleteMany(ctx, bson.M{"job": id}); err != nil {
		return 0, err // of a snapshot that was not to be had
	}
	for {
		var sets []jobSet
		for len(sets) < setsAtOnce {
			some, err := nextSome(reading, cursor, jobs.MaxPart)
			if err != nil {
				return 0, err
			}
			if len(some) == 0 {
				break
			}
			sets = append(sets, jobSet{Job: id, First: total + 1, Events: idsOf(some)})
			total += len(some)
		}
		if len(sets) == 0 {
			return total, nil
		}
		if _, err := s.jobEvents.InsertMany(ctx, sets); err != nil {
			return 0, err
		}
	}
}

// beginJob makes a job visible whose set is complete.
func (s *Store) beginJob(ctx context.Context, id int64, total int) (made job, err error) {
	set := bson.M{"state": operator.JobRunning, "total": total, "created_at": "$$NOW", "due_at": "$$NOW"}
	if total == 0 {
		set["state"], set["finished_at"] = operator.JobDone, "$$NOW"
	}
	err = s.jobs.FindOneAndUpdate(ctx, bson.M{"_id": id, "state": jobFreezing}, bson.A{bson.M{"$set": set}},
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&made)
	if errors.Is(err, driver.ErrNoDocuments) {
		err = fmt.Errorf("job %d was deleted while its set was being made", id)
	}
	return made, err
}

// chosenDead is a pipeline that yields the _id of each DEAD event that a filter selects, in outbox order.
func (s *Store) chosenDead(f operator.Filter) (bson.A, error) {
	f.State = postrider.StateDead
	if s.theirs != nil {
		pipeline, err := s.selectTheirs(f, s.theirs.order(), f.Limit)
		return append(pipeline, bson.M{"$project": bson.M{"_id": "$ref"}}), err
	}
	filter, err := filterOf(f)
	return append(s.selectOurs(filter, f.Sink, f.Limit), bson.M{"$project": bson.M{"_id": 1}}), err
}

// isVisible selects jobs whose sets are complete.
var isVisible = bson.M{"state": bson.M{"$ne": jobFreezing}}

// Jobs implements operator.JobStore.
func (s *Store) Jobs(ctx context.Context, limit int) ([]operator.Job, error) {
	const op = "list jobs"
	if _, err := s.fits(ctx, op); err != nil {
		return nil, err
	}
	found, err := find[job](ctx, s.jobs, isVisible, options.Find().SetSort(bson.M{"_id": -1}).SetLimit(int64(limit)))
	list := make([]operator.Job, len(found))
	for i, j := range found {
		list[i] = j.job()
	}
	return list, s.fail(op, err)
}

// Job implements operator.JobStore.
func (s *Store) Job(ctx context.Context, id string) (operator.Job, error) {
	const op = "show a job"
	if _, err := s.fits(ctx, op); err != nil {
		return operator.Job{}, err
	}
	found, err := s.findJob(ctx, id)
	return found.job(), s.fail(op, err)
}

func (s *Store) findJob(ctx context.Context, id string) (j job, err error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		err = s.jobs.FindOne(ctx, with(isVisible, bson.M{"_id": number})).Decode(&j)
	}
	if errors.Is(err, driver.ErrNoDocuments) || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
		err = fmt.Errorf("%w: %q of outbox %s", operator.ErrNoJob, id, s.events.Name())
	}
	return j, err
}

// SteerJob implements operator.JobStore. A step in a transaction makes the update wait; where there are none, it is tried until
// the step has come to its end.
func (s *Store) SteerJob(ctx context.Context, id string, to operator.JobState, a operator.Action) (operator.Job, error) {
	const op = "steer a job"
	steered, err := jobs.Steered(to, a)
	if err != nil {
		return operator.Job{}, s.fail(op, err)
	}
	if _, err := s.fits(ctx, op); err != nil {
		return operator.Job{}, err
	}
	for {
		seen, err := s.findJob(ctx, id)
		switch {
		case err != nil:
			return operator.Job{}, s.fail(op, err)
		case seen.FinishedAt != nil:
			return operator.Job{}, &operator.JobStateError{ID: id, State: seen.State, To: to}
		case seen.State == to:
			return seen.job(), nil
		}
		switch now, err := s.steer(ctx, seen, to, text.Clean(steered)); {
		case err == nil:
			return now.job(), nil
		case !errors.Is(err, driver.ErrNoDocuments):
			return operator.Job{}, s.fail(op, err)
		case !pause(ctx, steerAgain):
			return operator.Job{}, s.fail(op, ctx.Err())
		}
	}
}

// steer brings a job that nobody carries out from the state in which it was seen to another one.
func (s *Store) steer(ctx context.Context, seen job, to operator.JobState, steered string) (after job, err error) {
	now, err := s.now(ctx)
	if err != nil {
		return after, err
	}
	set := bson.M{"state": to, "steered": steered}
	if to == operator.JobCancelled {
		set["finished_at"] = now
	}
	err = s.jobs.FindOneAndUpdate(ctx, with(isLeft(now), bson.M{"_id": seen.ID, "state": seen.State}), bson.M{"$set": set},
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&after)
	return after, err
}

// isLeft selects jobs that no step carries out at a time.
func isLeft(now time.Time) bson.M { return bson.M{"taken_until": bson.M{"$not": bson.M{"$gt": now}}} }

// tidyJobs deletes the sets of jobs that have ended, and jobs that ended long ago or were never completed.
func (s *Store) tidyJobs(ctx context.Context) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	ended := bson.M{"$or": bson.A{
		bson.M{"state": bson.M{"$in": bson.A{operator.JobDone, operator.JobCancelled}}},
		bson.M{"state": jobFreezing, "created_at": bson.M{"$lte": now.Add(-freezingWithin)}},
	}}
	over, err := find[job](ctx, s.jobs, ended, options.Find().SetSort(bson.M{"_id": 1}).SetProjection(bson.M{"finished_at": 1}))
	if err != nil || len(over) == 0 {
		return err
	}
	all, old := bson.A{}, bson.A{}
	for _, j := range over {
		all = append(all, j.ID)
		if j.FinishedAt == nil || j.FinishedAt.Before(now.Add(-operator.JobRetention)) {
			old = append(old, j.ID)
		}
	}
	if _, err := s.jobEvents.DeleteMany(ctx, bson.M{"job": bson.M{"$in": all}}); err != nil || len(old) == 0 {
		return err
	}
	newest, err := s.newestJob(ctx)
	if err != nil {
		return err
	}
	_, err = s.jobs.DeleteMany(ctx, bson.M{"$and": bson.A{ended, bson.M{"_id": bson.M{"$in": old, "$ne": newest}}}})
	return err
}
