package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/operator"
)

var jobStepTests = map[string]func(*fixture){
	"StepJobs redrives, and keeps who and why": func(f *fixture) {
		ids := f.addDead("refused", 2)
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive, Action: operator.Action{Who: "me", Reason: "fixed"}})
		f.runJobs()
		f.equal("events", f.readIDs(), ids)
		if row := f.row(ids[0]); row.RetryCount != 0 || row.LastError != "" {
			f.Errorf("row is %+v", row)
		}
		f.wantLast(ids, operator.Attempt{Outcome: "redriven", By: "me", Error: "fixed"})
		if job = f.job(job.ID); job.Changed != 2 {
			f.Errorf("job is %+v", job)
		}
	},

	"StepJobs discards, and keeps who and why": func(f *fixture) {
		ids := f.addDead("refused", 2)
		f.createJob(operator.NewJob{Kind: operator.JobDiscard, Action: operator.Action{Who: "me", Reason: "of no use"}})
		f.runJobs()
		f.wantState(ids[0], postrider.StateDiscarded)
		f.wantLast(ids, operator.Attempt{Outcome: "discarded", By: "me", Error: "of no use"})
	},

	"StepJobs leaves an event alone that has moved on": func(f *fixture) {
		ids := f.addDead("x", 3)
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		if n, err := f.Operator.Discard(f.ctx, operator.Filter{IDs: ids[1:2]}, operator.Action{Who: "other", Reason: "r"}); n != 1 || err != nil {
			f.Fatalf("discarded %d, %v", n, err)
		}
		f.runJobs()
		f.wantState(ids[1], postrider.StateDiscarded)
		f.wantLast(ids[1:2], operator.Attempt{Outcome: "discarded", By: "other", Error: "r"})
		if job = f.job(job.ID); job.Looked != 3 || job.Changed != 2 {
			f.Errorf("job is %+v", job)
		}
	},

	"StepJobs leaves an event alone that it redrove and that became DEAD again": func(f *fixture) {
		ids := f.addDead("x", 2)
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive, Rate: 2})
		f.awaitLooked(job.ID, 1)
		f.kill(ids[0])
		f.runJobs()
		f.wantState(ids[0], postrider.StateDead)
		f.wantState(ids[1], postrider.StatePending)
	},

	"StepJobs goes through the set in outbox order": func(f *fixture) {
		ids := f.addDead("x", 5)
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive, Rate: 20, Filter: operator.Filter{IDs: []string{ids[4], ids[0], ids[2], ids[3], ids[1]}}})
		for f.job(job.ID).State == operator.JobRunning {
			f.step()
			looked := f.job(job.ID).Looked
			for i, id := range ids {
				if state := f.row(id).Status; (state == postrider.StatePending) != (i < looked) {
					f.Fatalf("event %d of the set is %s after %d", i+1, state, looked)
				}
			}
		}
	},

	"A job does not outrun its rate, however many step": func(f *fixture) {
		const rate = 12
		ids := f.addDead("x", 2*rate+1)
		f.createJob(operator.NewJob{Kind: operator.JobRedrive, Rate: rate})
		f.stepAtOnce(3)
		var at []time.Time
		for _, id := range ids {
			attempts := f.attempts(id)
			at = append(at, attempts[len(attempts)-1].At)
		}
		for i := rate; i < len(at); i++ {
			if second := at[i].Sub(at[i-rate]); second < time.Second {
				f.Errorf("%d events in %v, from the %dth on", rate+1, second, i-rate+1)
			}
		}
	},

	"A job without a rate is due at once, until it is done": func(f *fixture) {
		f.addDead("x", 700)
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		if next := f.step(); next != 0 {
			f.Errorf("after the first step the job is due in %v", next)
		}
		if looked := f.job(job.ID).Looked; looked == 0 || looked == 700 {
			f.Errorf("the first step looked at %d events", looked)
		}
		if next := f.step(); next >= 0 {
			f.Errorf("a job is due in %v after the last step", next)
		}
		if job = f.job(job.ID); job.State != operator.JobDone || job.Changed != 700 {
			f.Errorf("job is %+v", job)
		}
	},

	"Two jobs over the same set change every event once": func(f *fixture) {
		ids := f.addDead("x", 10)
		first, second := f.createJob(operator.NewJob{Kind: operator.JobRedrive}), f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		f.runJobs()
		if changed := f.job(first.ID).Changed + f.job(second.ID).Changed; changed != len(ids) {
			f.Errorf("changed %d of %d events", changed, len(ids))
		}
		f.wantRedrivenOnce(ids)
	},

	// The events become DEAD again while others step, so that a part that is done twice shows.
	"Several who step at once do every event once": func(f *fixture) {
		ids := f.addDead("x", 1500)
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		var killing sync.WaitGroup
		killing.Go(func() { f.kill(ids...) })
		f.stepAtOnce(4)
		killing.Wait()
		if job = f.job(job.ID); job.Looked != len(ids) || job.Changed != len(ids) {
			f.Errorf("job is %+v", job)
		}
		f.wantRedrivenOnce(ids)
	},

	"A step that is cut short leaves all or nothing": func(f *fixture) {
		ids := f.addDead("x", 300)
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		cut := 0
		for limit := 100 * time.Microsecond; f.job(job.ID).State == operator.JobRunning; limit += limit / 20 {
			ctx, cancel := context.WithTimeout(f.ctx, limit)
			_, err := f.Jobs.StepJobs(ctx)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				cut++
			}
			var redriven []operator.Row
			await.True(f, time.Minute, "that as many events are redriven as the job has come to", func() bool { // what was cut short may commit still
				redriven = f.rows(operator.Filter{State: postrider.StatePending})
				return len(redriven) == f.job(job.ID).Looked
			})
			for i, row := range redriven {
				if row.ID != ids[i] {
					f.Fatalf("event %s was redriven before %s", row.ID, ids[i])
				}
			}
		}
		if cut == 0 {
			f.Error("no step was cut short")
		}
		f.wantRedrivenOnce(ids)
	},
}

// stepAtOnce carries all jobs out by several who step at once.
func (f *fixture) stepAtOnce(many int) {
	var wait sync.WaitGroup
	for range many {
		wait.Go(func() {
			for {
				next, err := f.Jobs.StepJobs(f.ctx)
				switch {
				case err != nil:
					f.Error(err)
					return
				case next < 0:
					return
				case next > time.Second:
					f.Errorf("a job is due in %v", next)
				}
			}
		})
	}
	wait.Wait()
}

func (f *fixture) rows(filter operator.Filter) []operator.Row {
	f.Helper()
	filter.Limit = 10_000
	rows, err := f.Operator.Events(f.ctx, filter)
	f.must(err)
	return rows
}

func (f *fixture) attempts(id string) []operator.Attempt {
	f.Helper()
	attempts, err := f.Operator.Attempts(f.ctx, id)
	f.must(err)
	return attempts
}

// wantLast fails unless this is the last that happened to each of the events.
func (f *fixture) wantLast(ids []string, want operator.Attempt) {
	f.Helper()
	for _, id := range ids {
		attempts := f.attempts(id)
		got := attempts[len(attempts)-1]
		if got.At.IsZero() {
			f.Errorf("event %s: no time in %+v", id, got)
		}
		if got.At = want.At; got != want {
			f.Errorf("event %s: the last is %+v, want %+v", id, got, want)
		}
	}
}

func (f *fixture) wantRedrivenOnce(ids []string) {
	f.Helper()
	for _, id := range ids {
		redriven := 0
		for _, a := range f.attempts(id) {
			if a.Outcome == "redriven" {
				redriven++
			}
		}
		if redriven != 1 {
			f.Errorf("event %s was redriven %d times", id, redriven)
		}
	}
}
