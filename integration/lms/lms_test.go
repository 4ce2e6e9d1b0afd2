// Package lms tests the example examples/lms as a whole: its services and relays are processes, the servers are real, and what may
// happen on the way does.
package lms_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/internal/await"
)

const (
	learners = 60
	lessons  = 5 // that each completes, of two missions; they are worth 100 points
	missions = 2 // each is worth 50 coins
	awards   = learners / 4
)

var postrider, lms string // the commands

func TestMain(m *testing.M) {
	daemon.Main(m, map[*string]string{&postrider: "../../cmd/postrider", &lms: "../../examples/lms"})
}

// TestEachStepFromLessonToRewardHappensOnce has each event delivered twice, and now and then a third time much later, while every
// process is killed once: the consumers in the middle of an effect, the relays as it happens.
func TestEachStepFromLessonToRewardHappensOnce(t *testing.T) {
	s := newStage(t)
	lessonCopies, missionCopies := s.repeat(t, "lesson.completed"), s.repeat(t, "mission.completed")
	relay := func(service string) *process { return s.start(t, service, postrider, "run", "-c", config(service)) }
	relays := []*process{relay("lessons"), relay("progress"), relay("rewards")}
	progress := []*process{s.start(t, "one", lms, "progress"), s.start(t, "two", lms, "progress")}
	rewards := []*process{s.start(t, "one", lms, "rewards"), s.start(t, "two", lms, "rewards")}

	var learning sync.WaitGroup
	learning.Go(func() { learn(t) })
	killInEffect(t, progress, s.progress, "LOCK TABLE outbox_events IN EXCLUSIVE MODE", `SELECT count(*) FROM pg_locks
		JOIN pg_stat_activity USING (pid) WHERE NOT granted AND relation = 'outbox_events'::regclass AND query LIKE '%INSERT INTO%'`)
	killInEffect(t, rewards, s.rewards, "SELECT id FROM outbox_events FOR UPDATE", `SELECT count(*) FROM information_schema.processlist
		WHERE db = database() AND info LIKE '%INSERT INTO%outbox_events%' AND time_ms > 50`)
	for i, p := range relays {
		await.True(t, patience, "more steps are made", func() bool {
			return number(t, s.progress.DB, "SELECT coalesce(sum(steps), 0) FROM mission_steps") >= learners*lessons*(i+1)/5
		})
		p.kill(t)
	}
	learning.Wait()

	const events, completed = learners * lessons, learners*missions + awards
	arrive := func() {
		awaitPublished(t, s.lessons.DB, events)
		await.True(t, patience, "every lesson has a copy", func() bool { return lessonCopies.copies.Load() >= events })
		s.awaitHandled(t, "lesson.completed", 2)
		awaitPublished(t, s.progress.DB, completed)
		await.True(t, patience, "every mission has a copy", func() bool { return missionCopies.copies.Load() >= completed })
		s.awaitHandled(t, "mission.completed", 1)
		awaitPublished(t, s.rewards.DB, learners*missions)
	}
	arrive()
	lessonCopies.addLate(t)
	missionCopies.addLate(t)
	arrive()
	consumers := slices.Concat(progress, rewards)
	for _, p := range slices.Concat(consumers, relays) {
		if err := p.end(t, syscall.SIGTERM); err != nil {
			t.Errorf("an orderly stop of %v ends with %v", p.arguments, err)
		}
	}

	s.checkEffects(t, int(lessonCopies.copies.Load()), int(missionCopies.copies.Load()))
	s.checkChains(t)
	if n := elsewhere(consumers); n == 0 {
		t.Error("no copy came to another process than the first delivery: this shows too little")
	} else {
		t.Logf("%d copies of lessons, %d of missions; %d events met a receipt of another process",
			lessonCopies.copies.Load(), missionCopies.copies.Load(), n)
	}
}

// killInEffect kills the processes of a service while an effect waits for a lock of the outbox, with its receipt and all but its event
// written.
func killInEffect(t *testing.T, service []*process, db testdb.Database, lock, waiting string) {
	t.Helper()
	await.True(t, patience, "the service has receipts", func() bool {
		n := 0
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM inbox_receipts").Scan(&n) // the service creates the table
		return err == nil && n > 0
	})
	tx := db.Begin(t)
	if _, err := tx.ExecContext(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	await.True(t, patience, "an effect waits", func() bool { return number(t, db.DB, waiting) > 0 })
	for _, p := range service {
		p.kill(t)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// learn has all learners complete all lessons, one of them twice, and a teacher award missions that are completed as well.
func learn(t *testing.T) {
	for i := range learners {
		name := fmt.Sprint("learner-", i)
		commands := [][]string{{"complete", name, "go-1", "sql-1", "go-2", "go-1", "go-3", "sql-2"}}
		if i%4 == 0 {
			commands = append(commands, []string{"award", name, "gopher"})
		}
		for _, arguments := range commands {
			command := exec.Command(lms, arguments...)
			command.Env = append(command.Environ(), "TRACEPARENT="+traceOf(name))
			if output, err := command.CombinedOutput(); err != nil {
				t.Errorf("lms %v: %v\n%s", arguments, err, output)
			}
		}
	}
}

func traceOf(learner string) string { return fmt.Sprintf("00-%032x-00f067aa0ba902b7-01", learner) }

// checkEffects wants one step and the exact points for each lesson, one reward for each learner and mission, and every copy absorbed.
func (s *stage) checkEffects(t *testing.T, lessonCopies, missionCopies int) {
	t.Helper()
	for _, fact := range []struct {
		db    testdb.Database
		query string
		want  int
	}{
		{s.lessons, "SELECT count(*) FROM completions", learners * lessons},
		{s.lessons, "SELECT count(*) FROM outbox_events", learners * lessons},
		{s.progress, "SELECT count(*) FROM mission_steps", learners * missions},
		{s.progress, "SELECT count(*) FROM mission_steps JOIN missions ON mission = id WHERE steps <> goal", 0},
		{s.progress, "SELECT count(*) FROM experience WHERE points = 100", learners},
		{s.progress, "SELECT count(*) FROM outbox_events", learners*missions + awards},
		{s.progress, "SELECT count(DISTINCT (aggregate_id, payload ->> 'mission')) FROM outbox_events", learners * missions},
		{s.rewards, "SELECT count(*) FROM quests", learners * missions},
		{s.rewards, "SELECT count(*) FROM purses WHERE coins = 100", learners},
		{s.rewards, "SELECT count(*) FROM outbox_events", learners * missions},
		{s.rewards, "SELECT count(DISTINCT aggregate_id, json_value(payload, '$.quest')) FROM outbox_events", learners * missions},
		{s.progress, "SELECT count(*) FROM inbox_receipts", 2 * learners * lessons},
		{s.progress, fmt.Sprintf("SELECT least(sum(duplicates), %d) FROM inbox_receipts", 2*lessonCopies), 2 * lessonCopies},
		{s.rewards, "SELECT count(*) FROM inbox_receipts", learners * missions},
		{s.rewards, fmt.Sprintf("SELECT least(sum(duplicates), %d) FROM inbox_receipts", missionCopies+awards), missionCopies + awards},
	} {
		if got := number(t, fact.db.DB, fact.query); got != fact.want {
			t.Errorf("%s: %d, want %d", fact.query, got, fact.want)
		}
	}
	if dead := s.redis.Keys(t.Context(), s.prefix+"*.dlt").Val(); len(dead) > 0 {
		t.Errorf("there are dead letters: %q", dead)
	}
}

// event is one that was added, and where its headers say that it came from.
type event struct {
	learner, eventType string
	headers            struct {
		Causation   string `json:"X-Causation-Id"`
		Correlation string `json:"X-Correlation-Id"`
		Trace       string `json:"traceparent"`
	}
}

// checkChains follows each reward to the mission that caused it, and to the lesson, or the award, that it began with.
func (s *stage) checkChains(t *testing.T) {
	t.Helper()
	events := make(map[string]event)
	for _, db := range []testdb.Database{s.lessons, s.progress, s.rewards} {
		readEvents(t, db.DB, events)
	}
	lesson := ""
	for id, reward := range events {
		if reward.eventType != "reward.granted" {
			continue
		}
		mission, first, trace := events[reward.headers.Causation], events[reward.headers.Correlation], ""
		if first.eventType == "lesson.completed" { // an award has no trace
			lesson, trace = mission.headers.Causation, traceOf(reward.learner)
		}
		if mission.eventType != "mission.completed" || mission.learner != reward.learner || first.learner != reward.learner ||
			mission.headers.Correlation != reward.headers.Correlation && first != mission || reward.headers.Trace != trace {
			t.Errorf("reward %s: %+v, by %+v, which began with %+v", id, reward, mission, first)
		}
	}
	var traced struct {
		Receipts []struct {
			Consumer string `json:"consumer"`
		} `json:"receipts"`
	}
	if err := json.Unmarshal([]byte(command(t, postrider, "trace", lesson, "--json", "-c", config("lessons"))), &traced); err != nil {
		t.Fatal(err)
	}
	if r := traced.Receipts; len(r) != 2 || r[0].Consumer == r[1].Consumer {
		t.Errorf("trace of lesson %s: receipts %+v, want those of both branches", lesson, r)
	}
}

func readEvents(t *testing.T, db *sql.DB, events map[string]event) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT event_id, aggregate_id, event_type, coalesce(headers, '{}') FROM outbox_events")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, headers string
		var e event
		if err := rows.Scan(&id, &e.learner, &e.eventType, &headers); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(headers), &e.headers); err != nil {
			t.Fatal(err)
		}
		events[id] = e
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

var logged = regexp.MustCompile(`consumer=\S+ outcome=(applied|duplicate) event=\S+`)

// elsewhere counts, by what the processes have logged, events that met the receipt of another process.
func elsewhere(consumers []*process) (n int) {
	met := make(map[string][]*process) // by consumer, outcome and event
	for _, p := range consumers {
		for _, line := range logged.FindAllString(p.output.String(), -1) {
			met[line] = append(met[line], p)
		}
	}
	for line, processes := range met {
		if consumer, event, isDuplicate := strings.Cut(line, "duplicate"); isDuplicate {
			if by := met[consumer+"applied"+event]; len(by) == 1 && slices.ContainsFunc(processes, func(p *process) bool { return p != by[0] }) {
				n++
			}
		}
	}
	return n
}

// repeat starts a repeater of a stream.
func (s *stage) repeat(t *testing.T, stream string) *repeater {
	ctx, cancel := context.WithCancel(t.Context())
	r := &repeater{redis: s.redis, stream: s.prefix + stream}
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx, t) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

// addLate adds one more copy of some events. All have come by now.
func (r *repeater) addLate(t *testing.T) {
	t.Helper()
	for _, values := range r.late {
		r.add(t, values)
	}
}
