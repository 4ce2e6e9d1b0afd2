package mongo

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/internal/jobs"
	"github.com/postrider/postrider/operator"
)

const (
	// stepWithin bounds a step. What has taken a job for longer has ended, or will find that its time is over.
	stepWithin = 15 * time.Second

	// jobTaken is how long somebody who finds that others carry out a job leaves it to them.
	jobTaken = time.Second

	noJobRuns = time.Duration(-1)
)

// StepJobs implements operator.JobStore and relay.JobStepper.
//
// A part is one transaction, which begins by writing to the job, so that no two can commit the same one. On a server without
// transactions the same commands are safe in their order. The job is taken until a time, so that one step is at work. The part
// changes only those events that became DEAD before the set was complete: one that it redrove, and that has failed again
// since, is another death. A step that ends halfway leaves the job taken at the same place, and the next one completes the part:
// it changes what is left, and adds to the history what is missing there.
func (s *Store) StepJobs(ctx context.Context) (next time.Duration, err error) {
	const op = "carry out jobs"
	if _, err := s.fits(ctx, op); err != nil {
		return noJobRuns, err
	}
	running, err := find[job](ctx, s.jobs, bson.M{"state": operator.JobRunning}, options.Find().SetSort(ascending("due_at", "_id")))
	if err != nil || len(running) == 0 {
		return noJobRuns, s.fail(op, err)
	}
	now, err := s.now(ctx)
	if err != nil {
		return noJobRuns, s.fail(op, err)
	}
	next = noJobRuns
	for _, j := range running {
		wait := j.DueAt.Sub(now)
		if wait <= 0 {
			var stepErr error
			wait, stepErr = s.stepJob(ctx, j.ID)
			err = errors.Join(err, s.fail(op, stepErr))
		}
		if wait >= 0 && (next == noJobRuns || wait < next) {
			next = wait
		}
	}
	return next, err
}

// stepJob carries out a part of a job, and tells how long it is until the next one is due.
func (s *Store) stepJob(ctx context.Context, id int64) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	token := bson.NewObjectID()
	err = s.atomically(ctx, func(ctx context.Context) error {
		now, err := s.now(ctx)
		if err != nil {
			return err
		}
		j, err := s.takeJob(ctx, id, token, now)
		if errors.Is(err, driver.ErrNoDocuments) {
			wait = jobTaken
			return nil
		}
		if err != nil {
			return err
		}
		to, pause := jobs.Pace(j.Looked, j.Total, j.Rate)
		changed, err := s.changePart(ctx, j, to, now)
		if err != nil {
			return err
		}
		if wait = pause; to == j.Total {
			wait = noJobRuns
		}
		return s.recordPart(ctx, j, token, to, changed, pause)
	})
	if err != nil && !s.known().server.transactions {
		err = errors.Join(err, s.leaveJob(ctx, id, token))
	}
	return wait, err
}

// takeJob takes a job that runs and is due, and returns it as it was before: with TakenUntil when the step before this one
// ended halfway.
func (s *Store) takeJob(ctx context.Context, id int64, token bson.ObjectID, now time.Time) (before job, err error) {
	due := bson.M{"_id": id, "state": operator.JobRunning, "due_at": bson.M{"$lte": now}}
	take := bson.M{"$set": bson.M{"taken": token, "taken_until": now.Add(stepWithin)}}
	err = s.jobs.FindOneAndUpdate(ctx, with(due, isLeft(now)), take,
		options.FindOneAndUpdate().SetReturnDocument(options.Before)).Decode(&before)
	return before, err
}

// recordPart records how far a job has come, unless its time was over and others have taken it: then they record it.
func (s *Store) recordPart(ctx context.Context, j job, token bson.ObjectID, to, changed int, pause time.Duration) error {
	set := bson.M{"looked": to, "changed": j.Changed + changed, "due_at": fromNow(pause)}
	if to == j.Total {
		set["state"], set["finished_at"] = operator.JobDone, "$$NOW"
	}
	_, err := s.jobs.UpdateOne(ctx, bson.M{"_id": j.ID, "taken": token},
		bson.A{bson.M{"$set": set}, bson.M{"$unset": bson.A{"taken", "taken_until"}}})
	return err
}

// leaveJob lets others take over at once what a step has left halfway, also when its context has ended.
func (s *Store) leaveJob(ctx context.Context, id int64, token bson.ObjectID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	_, err := s.jobs.UpdateOne(ctx, bson.M{"_id": id, "taken": token}, bson.M{"$set": bson.M{"taken_until": time.Unix(0, 0)}})
	return err
}

// jobActions are what the kinds of jobs do.
var jobActions = map[operator.JobKind]action{operator.JobRedrive: redrive, operator.JobDiscard: discard}

// changePart changes those events of a job's next part that are DEAD, and counts them.
func (s *Store) changePart(ctx context.Context, j job, to int, now time.Time) (int, error) {
	part, err := s.partOf(ctx, j, to)
	if err != nil || len(part) == 0 {
		return 0, err
	}
	do := jobActions[j.Kind]
	do.job = j.ID
	a := operator.Action{Who: j.Who, Reason: j.Reason}
	changed, err := s.changeAmong(ctx, do, a, part, j.CreatedAt, now)
	if err != nil || j.TakenUntil == nil {
		return len(changed), err
	}
	before, err := s.completePart(ctx, do, a, without(part, changed), j.CreatedAt, now)
	return len(changed) + before, err
}

// partOf returns the events of a job's set from behind the place to which it has come.
func (s *Store) partOf(ctx context.Context, j job, to int) (part bson.A, err error) {
	sets, err := find[jobSet](ctx, s.jobEvents, bson.M{"job": j.ID, "first": bson.M{"$gt": j.Looked - jobs.MaxPart, "$lte": to}},
		options.Find().SetSort(ascending("first")))
	for _, set := range sets {
		for i, event := range set.Events {
			if n := set.First + i; n > j.Looked && n <= to {
				part = append(part, event)
			}
		}
	}
	return part, err
}

// changeAmong changes those of the events that are DEAD, and returns them. Where a step may have changed some before, they must
// have died by a time.
func (s *Store) changeAmong(ctx context.Context, do action, a operator.Action, events bson.A, diedBy, now time.Time) (bson.A, error) {
	if s.theirs != nil {
		return s.changeAmongTheirs(ctx, do, a, events, diedBy, now)
	}
	if !s.known().server.transactions {
		do.from = with(do.from, bson.M{"next_attempt_at": bson.M{"$lte": diedBy}})
	}
	found, err := find[waitingDoc](ctx, s.events, with(do.from, bson.M{"_id": bson.M{"$in": events}}),
		options.Find().SetSort(ascending("_id")).SetProjection(bson.M{"_id": 1}))
	if err != nil {
		return nil, err
	}
	changed := idsOf(found)
	_, err = s.changeOurs(ctx, do, a, changed, now)
	return changed, err
}

func (s *Store) changeAmongTheirs(ctx context.Context, do action, a operator.Action, events bson.A, diedBy, now time.Time) (bson.A, error) {
	rows, err := s.fetchTheirs(ctx, events, s.theirs.has(do.state))
	if err != nil {
		return nil, err
	}
	var dead []theirRow
	changed := bson.A{}
	for _, r := range rows {
		if r.Status == do.state && (s.known().server.transactions || !r.diedAt.After(diedBy)) {
			dead = append(dead, r)
			changed = append(changed, r.ref)
		}
	}
	return changed, s.changeTheirs(ctx, do, a, dead, now)
}

// completePart looks at events that a step which ended halfway may have changed. It counts those that it did change, and completes
// what is kept of them: an event that is no longer as it was when the set was complete, and of which nobody's action has been
// kept since, was changed by that step.
func (s *Store) completePart(ctx context.Context, do action, a operator.Action, events bson.A, since, now time.Time) (int, error) {
	if len(events) == 0 {
		return 0, nil
	}
	type note struct {
		Event any   `bson:"event"`
		Job   int64 `bson:"job"`
	}
	kept, err := find[note](ctx, s.attempts, bson.M{"event": bson.M{"$in": events}, "at": bson.M{"$gte": since},
		"outcome": bson.M{"$in": bson.A{redrive.outcome, retry.outcome, discard.outcome}}})
	if err != nil {
		return 0, err
	}
	var known, ours bson.A
	for _, n := range kept {
		known = append(known, n.Event)
		if n.Job == do.job {
			ours = append(ours, n.Event)
		}
	}
	there, err := find[waitingDoc](ctx, s.events, bson.M{"_id": bson.M{"$in": append(bson.A{}, without(events, known)...)}},
		options.Find().SetProjection(bson.M{"_id": 1}))
	if err != nil {
		return 0, err
	}
	missing := idsOf(there)
	if err := s.keepNotes(ctx, do, a, missing, now); err != nil {
		return 0, err
	}
	ours = append(ours, missing...)
	_, err = s.holds.DeleteMany(ctx, bson.M{"_id": bson.M{"$in": append(bson.A{}, ours...)}, "held_at": bson.M{"$lte": since}})
	return len(ours), err
}
