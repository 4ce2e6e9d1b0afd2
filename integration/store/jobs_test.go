package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
	"github.com/postrider/postrider/storetest"
)

func TestJobs(t *testing.T) {
	t.Parallel()
	opens := map[string]func(t *testing.T) storetest.Harness{
		"sqlite": func(t *testing.T) storetest.Harness { return newHarness(t, newSQLite(t)) },
	}
	for name, server := range map[string]string{"postgres": "POSTRIDER_TEST_POSTGRES", "postgres18": "POSTRIDER_TEST_POSTGRES18"} {
		opens[name] = func(t *testing.T) storetest.Harness { return newHarness(t, newPostgres(t, server)) }
		opens[name+" full"] = func(t *testing.T) storetest.Harness { return full(t, server).harness(t) }
		opens[name+" minimal"] = func(t *testing.T) storetest.Harness { return minimal(t, server).harness(t) }
	}
	for name, server := range mysqlServers {
		opens[name] = func(t *testing.T) storetest.Harness { return newHarness(t, newMySQL(t, server)) }
		opens[name+" full"] = func(t *testing.T) storetest.Harness { return fullMySQL(t, server).harness(t) }
		opens[name+" minimal"] = func(t *testing.T) storetest.Harness { return minimalMySQL(t, server).harness(t) }
	}
	for name, open := range opens {
		t.Run(name, func(t *testing.T) { storetest.RunJobs(t, open) })
	}
}

// deadJob makes events that are DEAD, and a job over them. It returns their ids.
func deadJob(t *testing.T, d database, s *sqlstore.Store, events int, n operator.NewJob) (ids []string, job operator.Job) {
	t.Helper()
	m := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	leases := ownAll(t, s, m)
	d.addMany(t, events)
	req := everything(events)
	req.PerShard = events
	var settlements []relay.Settlement
	for _, e := range readSome(t, s, req) {
		ids = append(ids, e.ID)
		settlements = append(settlements, relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StateDead, RetryCount: 1, Error: "refused", Sink: "main"})
	}
	if settled, err := s.Settle(t.Context(), m, settlements); err != nil || len(settled) != events {
		t.Fatalf("%d of %d events became DEAD, %v", len(settled), events, err)
	}
	job, err := s.CreateJob(t.Context(), n)
	if err != nil || job.Total != events {
		t.Fatalf("job %+v, %v", job, err)
	}
	return ids, job
}

func lookedAt(t *testing.T, s *sqlstore.Store, id string) int {
	t.Helper()
	job, err := s.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job.Looked
}

func stepOnce(t *testing.T, s *sqlstore.Store) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	next, err := s.StepJobs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// TestAJobThatIsLockedIsLeftToOthers because they carry it out, perhaps for long.
func TestAJobThatIsLockedIsLeftToOthers(t *testing.T) {
	everyServer(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		_, locked := deadJob(t, d, s, 3, operator.NewJob{Kind: operator.JobRedrive})
		free, err := s.CreateJob(t.Context(), operator.NewJob{Kind: operator.JobRedrive})
		if err != nil {
			t.Fatal(err)
		}
		tx, err := d.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "UPDATE outbox_jobs SET steered = 'locked' WHERE id = "+locked.ID); err != nil {
			t.Fatal(err)
		}
		if next := stepOnce(t, s); next <= 0 || next > time.Second {
			t.Errorf("the locked job is due in %v", next)
		}
		if looked := lookedAt(t, s, locked.ID); looked != 0 {
			t.Errorf("the locked job has come to %d", looked)
		}
		if looked := lookedAt(t, s, free.ID); looked != 3 {
			t.Errorf("the other job has come to %d", looked)
		}
	})
}

// TestAStepStartsFromTheJobAsItIs and not as it was seen before the transaction of the step began.
func TestAStepStartsFromTheJobAsItIs(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		_, job := deadJob(t, d, s, 3, operator.NewJob{Kind: operator.JobRedrive, Rate: 1})
		var h hooks
		late := d.openHooked(t, &h).open(t, sqlstore.Config{})
		h.begin = func() { stepOnce(t, s) }
		stepOnce(t, late)
		if looked := lookedAt(t, s, job.ID); looked != 1 {
			t.Errorf("one event each second, and the job has come to %d", looked)
		}
		job, err := s.SteerJob(t.Context(), job.ID, operator.JobCancelled, operator.Action{Who: "me"})
		if err != nil {
			t.Fatal(err)
		}
		fast, err := s.CreateJob(t.Context(), operator.NewJob{Kind: operator.JobRedrive})
		if err != nil {
			t.Fatal(err)
		}
		h.begin = func() {
			if _, err := s.SteerJob(t.Context(), fast.ID, operator.JobPaused, operator.Action{Who: "me"}); err != nil {
				t.Error(err)
			}
		}
		stepOnce(t, late)
		if fast, err = s.Job(t.Context(), fast.ID); err != nil || fast.State != operator.JobPaused || fast.Looked != 0 {
			t.Errorf("the job that was paused: %+v, %v", fast, err)
		}
	})
}

func TestAStepThatBreaksOffAnywhereLeavesNothing(t *testing.T) {
	test := func(t *testing.T, s *sqlstore.Store, late func(*hooks) *sqlstore.Store, ids []string, job operator.Job) {
		errBroken := errors.New("broken off")
		executed, breakAt := 0, 0
		broken := late(&hooks{statement: func(string) error {
			if executed++; executed == breakAt {
				return errBroken
			}
			return nil
		}})
		for breakAt = 1; ; breakAt++ {
			executed = 0
			_, err := broken.StepJobs(t.Context())
			if err == nil {
				break
			}
			if !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			if dead, err := s.Events(t.Context(), operator.Filter{State: postrider.StateDead}); err != nil || len(dead) != len(ids) || lookedAt(t, s, job.ID) != 0 {
				t.Fatalf("broken off at statement %d: %d of %d events are DEAD, %v", breakAt, len(dead), len(ids), err)
			}
		}
		if breakAt < 5 {
			t.Errorf("a step has %d statements", breakAt-1)
		}
		for _, id := range ids {
			if attempts, err := s.Attempts(t.Context(), id); err != nil || len(attempts) != 2 {
				t.Errorf("event %s: %+v, %v", id, attempts, err)
			}
		}
	}
	for _, kind := range []operator.JobKind{operator.JobRedrive, operator.JobDiscard} {
		n := operator.NewJob{Kind: kind, Action: operator.Action{Who: "me", Reason: "test"}}
		t.Run(string(kind), func(t *testing.T) {
			everyDatabase(t, func(t *testing.T, d database) {
				s := d.store(t, sqlstore.Config{})
				ids, job := deadJob(t, d, s, 3, n)
				test(t, s, func(h *hooks) *sqlstore.Store { return d.openHooked(t, h).open(t, sqlstore.Config{}) }, ids, job)
			})
		})
	}
}

// TestARelayThatHaltsInAStepDoesNotKeepTheJob for longer than its server lets it.
func TestARelayThatHaltsInAStepDoesNotKeepTheJob(t *testing.T) {
	t.Parallel()
	d := newPostgres(t, "POSTRIDER_TEST_POSTGRES")
	s := d.store(t, sqlstore.Config{})
	_, job := deadJob(t, d, s, 3, operator.NewJob{Kind: operator.JobRedrive})
	halted, goOn := make(chan struct{}), make(chan struct{})
	var h hooks
	h.statement = func(statement string) error {
		if strings.HasPrefix(statement, "SELECT event FROM") {
			close(halted)
			<-goOn
		}
		return nil
	}
	late := d.openHooked(t, &h).open(t, sqlstore.Config{})
	ended := make(chan error, 1)
	go func() {
		_, err := late.StepJobs(context.Background())
		ended <- err
	}()
	<-halted
	await.True(t, 30*time.Second, "the job is no longer kept by a relay that has halted", func() bool {
		stepOnce(t, s)
		return lookedAt(t, s, job.ID) > 0
	})
	close(goOn)
	if err := <-ended; err == nil {
		t.Error("the step that halted went on")
	}
}

func TestCreateJobWaitsForNoEvent(t *testing.T) {
	everyServer(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		deadJob(t, d, s, 3, operator.NewJob{Kind: operator.JobRedrive})
		tx, err := d.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "UPDATE "+d.table+" SET last_error = 'locked' WHERE status = 'DEAD'"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if job, err := s.CreateJob(ctx, operator.NewJob{Kind: operator.JobRedrive}); err != nil || job.Total != 3 {
			t.Errorf("job %+v, %v", job, err)
		}
	})
}

func TestTidyDeletesWhatIsLeftOfJobs(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		_, running := deadJob(t, d, s, 3, operator.NewJob{Kind: operator.JobRedrive})
		var ended []operator.Job
		for range 2 {
			job, err := s.CreateJob(t.Context(), operator.NewJob{Kind: operator.JobRedrive})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.SteerJob(t.Context(), job.ID, operator.JobCancelled, operator.Action{Who: "me"}); err != nil {
				t.Fatal(err)
			}
			ended = append(ended, job)
		}
		old, recent := ended[0], ended[1]
		execute(t, d.db, "UPDATE outbox_jobs SET finished_at = '2000-01-01 00:00:00.000' WHERE id = "+old.ID)
		if err := s.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Job(t.Context(), old.ID); !errors.Is(err, operator.ErrNoJob) {
			t.Errorf("the job that ended long ago: %v", err)
		}
		for _, job := range []operator.Job{running, recent} {
			if _, err := s.Job(t.Context(), job.ID); err != nil {
				t.Error(err)
			}
		}
		sets := values(t, d.db, "SELECT job FROM outbox_job_events GROUP BY job")
		if len(sets) != 1 || sets[0] != running.ID {
			t.Errorf("sets are left of jobs %v, want %s", sets, running.ID)
		}
	})
}
