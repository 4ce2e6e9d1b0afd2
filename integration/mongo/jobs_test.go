package mongo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// cutter ends contexts after a number of commands.
type cutter struct {
	left   atomic.Int64
	cancel atomic.Value // context.CancelFunc
}

func (c *cutter) monitor() *options.ClientOptions {
	return options.Client().SetMonitor(&event.CommandMonitor{Succeeded: func(context.Context, *event.CommandSucceededEvent) {
		if cancel, ok := c.cancel.Load().(context.CancelFunc); ok && c.left.Add(-1) == 0 {
			cancel()
		}
	}})
}

// after runs do with a context that ends when so many commands have been answered.
func (c *cutter) after(commands int, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.left.Store(int64(commands))
	c.cancel.Store(cancel)
	return do(ctx)
}

// cutStage is an outbox whose calls can be cut.
type cutStage struct {
	*mapped
	*cutter
	event func(key string) bson.M
}

func newCutStage(t *testing.T, mapping *mongo.Mapping) *cutStage {
	t.Helper()
	c := &cutter{}
	return c.stage(t, connect(t, c.monitor()), mapping)
}

func (c *cutter) stage(t *testing.T, client *driver.Client, mapping *mongo.Mapping) *cutStage {
	t.Helper()
	s := &cutStage{cutter: c, event: ourEvent}
	name := "outbox_events"
	db := newDatabase(t, client)
	if mapping != nil {
		name, s.event = "outbox", theirEvent
		if err := db.CreateCollection(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	s.mapped = &mapped{t: t, events: db.Collection(name)}
	var err error
	if s.store, err = mongo.Open(s.events, mongo.StoreConfig{Shards: shards, Mapping: mapping}); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.own()
	return s
}

// dead adds events and makes them DEAD.
func (s *cutStage) dead(holding bool, keys ...string) (ids []string) {
	s.t.Helper()
	for _, key := range keys {
		s.insert(s.event(key))
	}
	for _, e := range s.read() {
		ids = append(ids, e.ID)
		if holding {
			s.die(e)
		} else {
			s.settle(e, postrider.StateDead, 0)
		}
	}
	slices.Sort(ids)
	return ids
}

func (s *cutStage) create() operator.Job {
	s.t.Helper()
	job, err := s.store.CreateJob(s.t.Context(), operator.NewJob{Kind: operator.JobRedrive, Action: operator.Action{Who: "me", Reason: "fixed"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return job
}

func (s *cutStage) step(ctx context.Context) error {
	_, err := s.store.StepJobs(ctx)
	return err
}

// runJobs carries out all jobs.
func (s *cutStage) runJobs() {
	s.t.Helper()
	await.True(s.t, time.Minute, "no job runs", func() bool {
		next, err := s.store.StepJobs(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		return next < 0
	})
}

func (s *cutStage) wantJob(when, id string, looked, changed int) {
	s.t.Helper()
	job, err := s.store.Job(s.t.Context(), id)
	if err != nil || job.State != operator.JobDone || job.Looked != looked || job.Changed != changed {
		s.t.Errorf("%s: the job is %+v, %v; want %d events looked at and %d changed", when, job, err, looked, changed)
	}
}

func (s *cutStage) wantRedrivenOnce(when string, ids []string) {
	s.t.Helper()
	for _, id := range ids {
		attempts, err := s.store.Attempts(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		n := 0
		for _, a := range attempts {
			if a.Outcome == "redriven" && a.By == "me" && a.Error == "fixed" {
				n++
			}
		}
		if n != 1 {
			s.t.Errorf("%s: event %s was redriven %d times: %+v", when, id, n, attempts)
		}
	}
}

// eachCut runs a test for calls that are cut after one command, after two, and so on, until one is not cut.
func eachCut(t *testing.T, test func(s *cutStage, commands int) (cut bool)) {
	t.Helper()
	mapping := preset(t)
	for what, mapping := range map[string]*mongo.Mapping{"ours": nil, "theirs": &mapping} {
		t.Run(what, func(t *testing.T) {
			c := &cutter{}
			client := connect(t, c.monitor())
			commands := 1
			for test(c.stage(t, client, mapping), commands) {
				commands++
			}
			if commands < 5 {
				t.Errorf("%d commands were enough", commands)
			}
		})
	}
}

func TestAStepThatEndsAnywhereRedrivesEachEventOnce(t *testing.T) {
	t.Parallel()
	eachCut(t, func(s *cutStage, commands int) bool {
		when := fmt.Sprintf("cut after %d commands", commands)
		ids := s.dead(true, "a", "b", "c")
		job := s.create()
		err := s.after(commands, s.step)
		if next, stepErr := s.store.StepJobs(s.t.Context()); next >= 0 || stepErr != nil {
			s.t.Errorf("%s: the job is due in %v, %v; want that the next step completes it", when, next, stepErr)
		}
		s.wantJob(when, job.ID, 3, 3)
		s.wantRedrivenOnce(when, ids)
		s.wantRead(when, ids...)
		s.wantHeldKeys(0)
		return err != nil
	})
}

func TestAnEventThatDiedAgainIsNotRedrivenByTheNextStep(t *testing.T) {
	t.Parallel()
	eachCut(t, func(s *cutStage, commands int) bool {
		when := fmt.Sprintf("cut after %d commands", commands)
		ids := s.dead(false, "a", "b", "c")
		job := s.create()
		err := s.after(commands, s.step)
		again := s.read()
		for _, e := range again {
			s.settle(e, postrider.StateDead, 0)
		}
		s.runJobs()
		s.wantJob(when, job.ID, 3, 3)
		s.wantRedrivenOnce(when, ids)
		if got := len(s.read()); got != len(ids)-len(again) {
			s.t.Errorf("%s: %d events of %d are to be sent, and %d died again", when, got, len(ids), len(again))
		}
		return err != nil
	})
}

func TestAnActionOfOthersIsNotTakenForThatOfACutStep(t *testing.T) {
	t.Parallel()
	eachCut(t, func(s *cutStage, commands int) bool {
		when := fmt.Sprintf("cut after %d commands", commands)
		ids := s.dead(false, "a", "b", "c")
		job := s.create()
		n, err := s.store.Discard(s.t.Context(), operator.Filter{IDs: ids[:1]}, operator.Action{Who: "other", Reason: "r"})
		if err != nil || n != 1 {
			s.t.Fatalf("discarded %d, %v", n, err)
		}
		err = s.after(commands, s.step)
		s.runJobs()
		s.wantJob(when, job.ID, 3, 2)
		s.wantRedrivenOnce(when, ids[1:])
		s.wantRead(when, ids[1:]...)
		return err != nil
	})
}

func TestAJobThatIsMadeHalfIsNone(t *testing.T) {
	t.Parallel()
	eachCut(t, func(s *cutStage, commands int) bool {
		ids := s.dead(false, "a", "b", "c")
		err := s.after(commands, func(ctx context.Context) error {
			_, err := s.store.CreateJob(ctx, operator.NewJob{Kind: operator.JobRedrive})
			return err
		})
		jobs, listErr := s.store.Jobs(s.t.Context(), 10)
		if listErr != nil || err == nil && len(jobs) != 1 || len(jobs) > 0 && jobs[0].Total != len(ids) {
			s.t.Errorf("cut after %d commands: jobs %+v, %v", commands, jobs, listErr)
		}
		if _, missing := s.store.Job(s.t.Context(), "1"); (missing == nil) != (len(jobs) == 1) {
			s.t.Errorf("cut after %d commands: the job is seen: %v", commands, missing)
		}
		s.runJobs()
		if len(jobs) == 0 {
			s.wantRead("without a job")
		}
		return err != nil
	})
}

func (s *cutStage) jobs() *driver.Collection { return s.events.Database().Collection("outbox_jobs") }

// takeFor lets a job seem taken by a step for some time.
func (s *cutStage) takeFor(d time.Duration) {
	s.t.Helper()
	until := sayHello(s.t, s.events.Database().Client()).LocalTime.Add(d)
	if _, err := s.jobs().UpdateMany(s.t.Context(), bson.M{}, bson.M{"$set": bson.M{"taken_until": until}}); err != nil {
		s.t.Fatal(err)
	}
}

func TestAJobThatIsTakenIsLeftToWhoTookIt(t *testing.T) {
	t.Parallel()
	s := newCutStage(t, nil)
	s.dead(false, "a")
	job := s.create()
	s.takeFor(time.Hour)
	if next, err := s.store.StepJobs(t.Context()); err != nil || next <= 0 {
		t.Errorf("due in %v, %v", next, err)
	}
	s.wantRead("while the job is taken")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, err := s.store.SteerJob(ctx, job.ID, operator.JobPaused, operator.Action{Who: "me"}); err == nil {
		t.Errorf("steered to %+v", got)
	}
	s.takeFor(50 * time.Millisecond)
	if got, err := s.store.SteerJob(t.Context(), job.ID, operator.JobPaused, operator.Action{Who: "me"}); err != nil || got.State != operator.JobPaused {
		t.Errorf("steered to %+v, %v", got, err)
	}
}

func TestJobsAreTidied(t *testing.T) {
	t.Parallel()
	s := newCutStage(t, nil)
	s.dead(false, "a", "b")
	for range 3 {
		s.create()
	}
	change := func(id int, set bson.M) {
		t.Helper()
		if n, err := s.jobs().UpdateByID(t.Context(), id, bson.M{"$set": set}); err != nil || n.MatchedCount != 1 {
			t.Fatal(n, err)
		}
	}
	tidy := func() (jobs, sets []string) {
		t.Helper()
		if err := s.store.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.texts("outbox_jobs", "_id"), s.texts("outbox_job_events", "job")
	}
	long := time.Now().Add(-operator.JobRetention - time.Hour)
	change(1, bson.M{"state": "FREEZING", "created_at": time.Now()})
	change(2, bson.M{"state": "CANCELLED", "finished_at": time.Now()})
	if jobs, sets := tidy(); !slices.Equal(jobs, []string{"1", "2", "3"}) || !slices.Equal(sets, []string{"1", "3"}) {
		t.Errorf("jobs %v with the sets of %v are left, want the set of the job that ended deleted", jobs, sets)
	}
	change(1, bson.M{"created_at": time.Now().Add(-48 * time.Hour)})
	change(2, bson.M{"finished_at": long})
	change(3, bson.M{"state": "DONE", "finished_at": long})
	if jobs, sets := tidy(); !slices.Equal(jobs, []string{"3"}) || len(sets) > 0 {
		t.Errorf("jobs %v with the sets of %v are left, want the newest job alone", jobs, sets)
	}
	if next := s.create(); next.ID != "4" {
		t.Errorf("the next job is %s", next.ID)
	}
}

// texts are the numbers that a field has in a collection.
func (s *cutStage) texts(collection, field string) (list []string) {
	s.t.Helper()
	cursor, err := s.events.Database().Collection(collection).Find(s.t.Context(), bson.M{}, options.Find().SetSort(bson.M{field: 1}))
	if err != nil {
		s.t.Fatal(err)
	}
	for cursor.Next(s.t.Context()) {
		number, _ := cursor.Current.Lookup(field).AsInt64OK()
		list = append(list, strconv.FormatInt(number, 10))
	}
	return list
}

func TestAJobOverMoreThanOneBatchOfItsSet(t *testing.T) {
	t.Parallel()
	const n = 10_501
	for what, open := range map[string]func() *cutStage{
		"ours":   func() *cutStage { return newCutStage(t, nil) },
		"theirs": func() *cutStage { m := preset(t); return newCutStage(t, &m) },
	} {
		s := open()
		word := map[string]string{"ours": "DEAD", "theirs": "FAILED"}[what]
		fill(t, s.events, n, func(key string) bson.M {
			doc := s.event(key)
			doc["status"] = word
			return doc
		})
		if job := s.create(); job.Total != n {
			t.Errorf("%s: the set has %d events, want %d", what, job.Total, n)
		}
		s.runJobs()
		s.wantJob(what, "1", n, n)
		if left, err := s.events.CountDocuments(t.Context(), bson.M{"status": word}); err != nil || left != 0 {
			t.Errorf("%s: %d are left, %v", what, left, err)
		}
	}
}

// TestAJobKeepsOneNoteOfAnEvent is about a step whose last command arrives after the next step has completed its part.
func TestAJobKeepsOneNoteOfAnEvent(t *testing.T) {
	t.Parallel()
	s := newCutStage(t, nil)
	ids := s.dead(false, "a")
	job := s.create()
	s.runJobs()
	s.byHand(ids[0], bson.M{"$set": bson.M{"status": "DEAD"}})
	if _, err := s.jobs().UpdateMany(t.Context(), bson.M{}, bson.M{"$set": bson.M{"state": "RUNNING", "looked": 0, "changed": 0}}); err != nil {
		t.Fatal(err)
	}
	s.runJobs()
	s.wantJob("once more", job.ID, 1, 1)
	s.wantRedrivenOnce("once more", ids)
}

func TestJobsThatAreMadeAtOnceHaveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	const n = 8
	s := newCutStage(t, nil)
	var wait sync.WaitGroup
	for range n {
		wait.Go(func() {
			if _, err := s.store.CreateJob(t.Context(), operator.NewJob{Kind: operator.JobRedrive}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if jobs, err := s.store.Jobs(t.Context(), 2*n); err != nil || len(jobs) != n || jobs[0].ID != strconv.Itoa(n) {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
}

func TestTheSetOfAJobIsInOutboxOrder(t *testing.T) {
	t.Parallel()
	m := preset(t)
	m.Order = "place"
	s := newCutStage(t, &m)
	for place := range 3 {
		doc := theirEvent("a")
		doc["place"], doc["status"] = 3-place, "FAILED"
		s.insert(doc)
	}
	s.create()
	cursor, err := s.events.Find(t.Context(), bson.M{}, options.Find().SetSort(bson.M{"place": 1}))
	var docs []bson.M
	if err == nil {
		err = cursor.All(t.Context(), &docs)
	}
	var set struct {
		Events bson.A `bson:"events"`
	}
	if err == nil {
		err = s.events.Database().Collection("outbox_job_events").FindOne(t.Context(), bson.M{"job": 1}).Decode(&set)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Events) != 3 || set.Events[0] != docs[0]["_id"] || set.Events[2] != docs[2]["_id"] {
		t.Errorf("the set is %v of %v", set.Events, docs)
	}
}

func TestASetIsMadeAnewWhenItsSnapshotIsLost(t *testing.T) {
	s := newStaged(t)
	const n = 10_501
	fill(t, s.db.Collection("outbox_events"), n, func(key string) bson.M {
		doc := ourEvent(key)
		doc["status"] = "DEAD"
		return doc
	})
	s.take()
	s.set.inject("getMore", append(make([]bson.D, 20), refusal(246))...)
	job, err := s.store.CreateJob(t.Context(), operator.NewJob{Kind: operator.JobRedrive})
	if err != nil || job.Total != n {
		t.Errorf("created %+v, %v", job, err)
	}
	inserts := 0
	for _, command := range s.take() {
		if name(t, command) == "insert outbox_job_events" {
			inserts++
		}
	}
	if inserts != 3 {
		t.Errorf("the set was inserted in %d parts, want one before the loss and two after it", inserts)
	}
}

func TestAPartOfAJobIsOneTransaction(t *testing.T) {
	s := newStaged(t)
	s.retry.State, s.retry.HoldsKey = postrider.StateDead, true
	s.settle(t)
	if _, err := s.store.CreateJob(t.Context(), operator.NewJob{Kind: operator.JobRedrive}); err != nil {
		t.Fatal(err)
	}
	s.take()
	if next, err := s.store.StepJobs(t.Context()); err != nil || next >= 0 {
		t.Fatalf("due in %v, %v", next, err)
	}
	s.sent = slices.DeleteFunc(s.sent, func(command bson.Raw) bool { // what looked for jobs
		_, inTransaction := command.Lookup("autocommit").BooleanOK()
		return !inTransaction
	})
	want := []string{"aggregate outbox_schema", "findAndModify outbox_jobs", "find outbox_job_events", "find outbox_events", "update outbox_events",
		"update outbox_attempts", "delete outbox_holds", "update outbox_jobs", "commitTransaction "}
	if got := s.transactions(t); len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

var _ relay.JobStepper = (*mongo.RowClaims)(nil)
