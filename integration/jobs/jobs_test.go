package jobs_test

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/operator"
)

const (
	events = 10_000
	keys   = 300
	rate   = "2000" // five seconds for all
)

// A relay that dies while it carries a job out leaves it to the next one. What it was sending may leave twice.
func TestAJobGoesOnAfterItsRelayWasKilled(t *testing.T) {
	s := newStage(t, "POSTRIDER_TEST_POSTGRES")
	s.addDead(t, events, keys)
	relay := s.relay(t)
	s.command(t, "dead", "redrive", "--all", "--detach", "--rate", rate)
	s.awaitHalfway(t, events, byPosition)
	relay.Signal(t, syscall.SIGKILL)
	relay.Wait(t, soon)
	if job := s.job(t); job.State != operator.JobRunning || job.Looked == events {
		t.Fatalf("the relay was killed too late: the job is %s at %d", job.State, job.Looked)
	}

	s.relay(t)
	s.awaitDone(t, events)
	s.checkRedrivenOnce(t, events)
	if n := s.checkArrived(t, events); n > maxInFlight {
		t.Errorf("%d duplicates, and no more than %d events can have been in flight", n, maxInFlight)
	}
}

// A command that dies while it carries a job out, without a relay, leaves it to the relay that comes; each event leaves
// once.
func TestAJobGoesOnAfterItsCommandWasKilled(t *testing.T) {
	for _, variable := range []string{"POSTRIDER_TEST_POSTGRES", "POSTRIDER_TEST_MARIADB"} {
		t.Run(variable, func(t *testing.T) {
			s := newStage(t, variable)
			s.addDead(t, events, keys)
			following := exec.CommandContext(t.Context(), binary, "dead", "redrive", "--all", "--rate", rate, "-c", s.config)
			if err := following.Start(); err != nil {
				t.Fatal(err)
			}
			s.awaitHalfway(t, events, byEvents)
			if err := following.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = following.Wait() // tells that it was killed
			await.True(t, soon, "the job stands where its events do", func() bool {
				return s.job(t).Changed == s.pending(t) // its last transaction may still have been under way
			})
			job := s.job(t)
			if job.State != operator.JobRunning || job.Looked == events || job.Looked != job.Changed {
				t.Fatalf("the command was killed too late: the job is %s at %d and has changed %d", job.State, job.Looked, job.Changed)
			}
			s.checkRedrivenOnce(t, job.Looked)

			s.relay(t)
			s.awaitDone(t, events)
			s.checkRedrivenOnce(t, events)
			if n := s.checkArrived(t, events); n != 0 {
				t.Errorf("%d duplicates although no relay died", n)
			}
		})
	}
}

// Dead letters of one key that are redriven at once leave in outbox order.
func TestDeadLettersOfOneKeyLeaveInOrder(t *testing.T) {
	const letters = 100
	s := newStage(t, "POSTRIDER_TEST_POSTGRES")
	s.addDead(t, letters, 1)
	s.relay(t)
	printed := s.command(t, "dead", "redrive", "--key", "order-0")
	if want := fmt.Sprintf("%d events redriven\n", letters); printed != want {
		t.Errorf("the command printed %q, want %q", printed, want)
	}
	s.awaitDone(t, letters)
	if n := s.checkArrived(t, letters); n != 0 {
		t.Errorf("%d duplicates", n)
	}
}
