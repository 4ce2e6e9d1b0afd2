package storetest

import (
	"errors"
	"strconv"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

var jobTests = map[string]func(*fixture){
	"CreateJob freezes the set of dead letters that match": func(f *fixture) {
		ids := f.addDead("x", 4)
		later := f.addKeys("later")[0]
		f.createJob(operator.NewJob{Kind: operator.JobRedrive, Filter: operator.Filter{IDs: ids[1:], State: postrider.StatePublished, Limit: 2}})
		f.kill(later)
		f.runJobs()
		for id, want := range map[string]postrider.State{
			ids[0]: postrider.StateDead, ids[1]: postrider.StatePending, ids[2]: postrider.StatePending, ids[3]: postrider.StateDead,
			later: postrider.StateDead,
		} {
			f.wantState(id, want)
		}
	},

	"CreateJob returns the job as it is stored": func(f *fixture) {
		f.addDead("refused", 3)
		n := operator.NewJob{Kind: operator.JobDiscard, Filter: operator.Filter{ErrorContains: "REFUSED"}, Action: operator.Action{Who: "me", Reason: "why"}, Rate: 7}
		job := f.createJob(n)
		if job.ID == "" || job.Kind != n.Kind || job.State != operator.JobRunning || job.Who != "me" || job.Reason != "why" || job.Rate != 7 ||
			job.Filter != n.Filter.String() || job.Total != 3 || job.Looked != 0 || job.Changed != 0 || job.Steered != "" || job.FinishedAt != nil {
			f.Errorf("created %+v", job)
		}
		if job.CreatedAt.Location() != time.UTC || time.Since(job.CreatedAt).Abs() > time.Minute {
			f.Errorf("created at %v", job.CreatedAt)
		}
		if stored := f.job(job.ID); stored != job {
			f.Errorf("stored as %+v, created %+v", stored, job)
		}
	},

	"A job over nothing is done": func(f *fixture) {
		f.addKeys("a")
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		if job.State != operator.JobDone || job.Total != 0 || job.FinishedAt == nil {
			f.Errorf("got %+v", job)
		}
		f.wantNoJobRuns()
	},

	"CreateJob refuses what cannot be carried out": func(f *fixture) {
		f.addDead("x", 1)
		for what, n := range map[string]operator.NewJob{
			"a discard without a reason": {Kind: operator.JobDiscard, Action: operator.Action{Who: "me"}},
			"no kind":                    {Action: operator.Action{Who: "me", Reason: "why"}},
			"a rate below 0":             {Kind: operator.JobRedrive, Rate: -1},
			"an id that is none":         {Kind: operator.JobRedrive, Filter: operator.Filter{After: "1 OR true"}},
		} {
			if job, err := f.Jobs.CreateJob(f.ctx, n); err == nil {
				f.Errorf("%s became %+v", what, job)
			}
		}
		if jobs, err := f.Jobs.Jobs(f.ctx, 10); len(jobs) != 0 || err != nil {
			f.Errorf("stored %+v, %v", jobs, err)
		}
	},

	"Jobs lists the newest first": func(f *fixture) {
		var want []string
		for range 3 {
			want = append([]string{f.createJob(operator.NewJob{Kind: operator.JobRedrive}).ID}, want...)
		}
		jobs, err := f.Jobs.Jobs(f.ctx, 2)
		f.must(err)
		var got []string
		for _, job := range jobs {
			got = append(got, job.ID)
		}
		f.equal("jobs", got, want[:2])
	},

	"A job that is not there is told": func(f *fixture) {
		f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		for _, id := range []string{"999999", "", "x' OR '1'='1", "99999999999999999999999999"} {
			if _, err := f.Jobs.Job(f.ctx, id); !errors.Is(err, operator.ErrNoJob) {
				f.Errorf("Job(%q): %v, want ErrNoJob", id, err)
			}
			if _, err := f.Jobs.SteerJob(f.ctx, id, operator.JobPaused, operator.Action{}); !errors.Is(err, operator.ErrNoJob) {
				f.Errorf("SteerJob(%q): %v, want ErrNoJob", id, err)
			}
		}
	},

	"A job is paused, continued and cancelled": func(f *fixture) {
		ids := f.addDead("x", 3)
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive, Rate: 2})
		f.awaitLooked(job.ID, 1)
		if job = f.steer(job.ID, operator.JobPaused, "wait"); job.State != operator.JobPaused || job.Steered != "paused by me: wait" || job.FinishedAt != nil {
			f.Errorf("paused: %+v", job)
		}
		f.wantNoJobRuns()
		if again := f.steer(job.ID, operator.JobPaused, "again"); again != job {
			f.Errorf("paused again: %+v", again)
		}
		f.wantState(ids[1], postrider.StateDead)
		if job = f.steer(job.ID, operator.JobRunning, ""); job.State != operator.JobRunning || job.Steered != "continued by me" {
			f.Errorf("continued: %+v", job)
		}
		f.awaitLooked(job.ID, 2)
		if job = f.steer(job.ID, operator.JobCancelled, "wrong"); job.State != operator.JobCancelled || job.FinishedAt == nil || job.Looked != 2 {
			f.Errorf("cancelled: %+v", job)
		}
		f.wantNoJobRuns()
		f.wantState(ids[1], postrider.StatePending)
		f.wantState(ids[2], postrider.StateDead)
		f.wantEnded(job)
	},

	"A job that is done stays done": func(f *fixture) {
		f.addDead("x", 1)
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		f.runJobs()
		job = f.job(job.ID)
		if job.State != operator.JobDone || job.Looked != 1 || job.Changed != 1 || job.FinishedAt == nil || job.FinishedAt.Before(job.CreatedAt) {
			f.Errorf("got %+v", job)
		}
		f.wantEnded(job)
	},

	"SteerJob refuses what is no steering": func(f *fixture) {
		job := f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		for _, to := range []operator.JobState{operator.JobDone, "", "x"} {
			if _, err := f.Jobs.SteerJob(f.ctx, job.ID, to, operator.Action{}); err == nil {
				f.Errorf("made %q", to)
			}
		}
	},

	"Cleaning keeps a job that has ended and leaves one that runs alone": func(f *fixture) {
		ids := f.addDead("x", 2)
		first := f.createJob(operator.NewJob{Kind: operator.JobRedrive, Filter: operator.Filter{IDs: ids[:1]}})
		f.runJobs()
		second := f.createJob(operator.NewJob{Kind: operator.JobRedrive})
		f.cleanAll(0, 10)
		if job := f.job(first.ID); job.State != operator.JobDone || job.Total != 1 {
			f.Errorf("the job that has ended: %+v", job)
		}
		f.runJobs()
		if job := f.job(second.ID); job.State != operator.JobDone || job.Changed != 1 {
			f.Errorf("the job that ran: %+v", job)
		}
	},

	"DeadGroups tells the sinks apart, and a filter chooses one": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		ids := f.addKeys("a", "b", "c")
		at := func(id, sink string) relay.Settlement {
			s := dead(f.readAll()[id], leases, "refused")
			s.Sink = sink
			return s
		}
		f.settle(m, at(ids[0], "one"), at(ids[1], "two"), at(ids[2], ""))
		f.redrive(operator.Filter{IDs: ids[1:2]})
		f.settle(m, at(ids[1], "one"))
		groups, err := f.Operator.DeadGroups(f.ctx, 10)
		f.must(err)
		if len(groups) != 2 || groups[0].Sink != "one" || groups[0].Count != 2 || groups[1].Sink != "" || groups[1].Count != 1 {
			f.Errorf("groups are %+v", groups)
		}
		for sink, want := range map[string][]string{"one": ids[:2], "two": nil, "": ids} {
			rows, err := f.Operator.Events(f.ctx, operator.Filter{State: postrider.StateDead, Sink: sink})
			f.must(err)
			var got []string
			for _, row := range rows {
				got = append(got, row.ID)
			}
			f.equal("events of sink "+strconv.Quote(sink), got, want)
		}
		if job := f.createJob(operator.NewJob{Kind: operator.JobRedrive, Filter: operator.Filter{Sink: "one"}}); job.Total != 2 {
			f.Errorf("the job has %d events, want 2", job.Total)
		}
		f.redrive(operator.Filter{Sink: "one"})
		f.wantState(ids[0], postrider.StatePending)
		f.wantState(ids[2], postrider.StateDead)
	},
}

// addDead commits events and settles them as DEAD. It returns their ids.
func (f *fixture) addDead(reason string, n int) []string {
	f.Helper()
	events := make([]Event, n)
	for i := range events {
		events[i].Key = strconv.Itoa(i)
	}
	ids := f.add(events...)
	f.killFor(reason, ids...)
	return ids
}

// kill settles events that may be sent as DEAD.
func (f *fixture) kill(ids ...string) {
	f.Helper()
	f.killFor("x", ids...)
}

func (f *fixture) killFor(reason string, ids ...string) {
	f.Helper()
	m := f.member("killer")
	if f.killerLeases == nil {
		f.killerLeases = f.takeAll(m)
	}
	req := f.request()
	req.PerShard, req.Limit = 10_000, 10_000
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	f.await("the events can be read", func() bool {
		var settlements []relay.Settlement
		for _, e := range f.read(req) {
			if wanted[e.ID] {
				settlements = append(settlements, dead(e, f.killerLeases, reason))
			}
		}
		for _, id := range f.settle(m, settlements...) {
			delete(wanted, id)
		}
		return len(wanted) == 0
	})
}

// createJob creates a job of mine, who has a reason unless the job has one.
func (f *fixture) createJob(n operator.NewJob) operator.Job {
	f.Helper()
	if n.Action == (operator.Action{}) {
		n.Action = operator.Action{Who: "me", Reason: "test"}
	}
	job, err := f.Jobs.CreateJob(f.ctx, n)
	f.must(err)
	return job
}

func (f *fixture) job(id string) operator.Job {
	f.Helper()
	job, err := f.Jobs.Job(f.ctx, id)
	f.must(err)
	return job
}

func (f *fixture) steer(id string, to operator.JobState, reason string) operator.Job {
	f.Helper()
	job, err := f.Jobs.SteerJob(f.ctx, id, to, operator.Action{Who: "me", Reason: reason})
	f.must(err)
	return job
}

func (f *fixture) step() time.Duration {
	f.Helper()
	next, err := f.Jobs.StepJobs(f.ctx)
	f.must(err)
	return next
}

// runJobs carries all jobs out.
func (f *fixture) runJobs() {
	f.Helper()
	f.await("no job runs", func() bool { return f.step() < 0 })
}

// awaitLooked carries jobs out until one has come so far.
func (f *fixture) awaitLooked(id string, looked int) {
	f.Helper()
	f.await("the job has come to event "+strconv.Itoa(looked), func() bool {
		f.step()
		return f.job(id).Looked >= looked
	})
}

func (f *fixture) wantNoJobRuns() {
	f.Helper()
	if next := f.step(); next >= 0 {
		f.Fatalf("a job is due in %v", next)
	}
}

// wantEnded fails unless the job can no longer be steered.
func (f *fixture) wantEnded(job operator.Job) {
	f.Helper()
	for _, to := range []operator.JobState{operator.JobPaused, operator.JobRunning, operator.JobCancelled} {
		_, err := f.Jobs.SteerJob(f.ctx, job.ID, to, operator.Action{Who: "other"})
		refused, ok := errors.AsType[*operator.JobStateError](err)
		if !ok || *refused != (operator.JobStateError{ID: job.ID, State: job.State, To: to}) {
			f.Errorf("%s: %v, want a JobStateError", to, err)
		}
	}
	if after := f.job(job.ID); after.State != job.State || after.Steered != job.Steered || !after.FinishedAt.Equal(*job.FinishedAt) {
		f.Errorf("became %+v", after)
	}
}
