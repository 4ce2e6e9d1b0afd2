package relay_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/relay"
)

// stepping answers StepJobs by what step says, with the number of the call from 1.
type stepping struct {
	*memory
	calls int
	step  func(call int) (time.Duration, error)
}

func (s *stepping) StepJobs(context.Context) (time.Duration, error) {
	s.calls++
	return s.step(s.calls)
}

// stepFor runs a relay for d and returns how often it called StepJobs, and its health then.
func stepFor(t *testing.T, d time.Duration, step func(call int) (time.Duration, error)) (calls int, health relay.Health) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stepping{memory: newMemory(), step: step}
		cfg := setup(s.memory, &recorder{})
		cfg.Store = s
		r, stop := start(t, cfg)
		time.Sleep(d + time.Millisecond)
		synctest.Wait()
		health = r.Health()
		if err := stop(); err != nil {
			t.Error(err)
		}
		calls = s.calls
	})
	return calls, health
}

func TestARelayLooksForJobsOnceASecond(t *testing.T) {
	calls, _ := stepFor(t, 10*time.Second, func(int) (time.Duration, error) { return -1, nil })
	if calls != 10 {
		t.Errorf("%d looks in ten seconds, want 10", calls)
	}
}

func TestARelayStepsJobsWhenTheyAreDue(t *testing.T) {
	calls, _ := stepFor(t, 10*time.Second, func(call int) (time.Duration, error) {
		switch {
		case call <= 100:
			return 0, nil
		case call <= 110:
			return 200 * time.Millisecond, nil
		}
		return time.Minute, nil // a new job may come meanwhile
	})
	const afterThreeSeconds = 8 // one each second
	if want := 110 + afterThreeSeconds; calls != want {
		t.Errorf("%d steps in ten seconds, want %d", calls, want)
	}
}

func TestJobsThatFailShowInHealth(t *testing.T) {
	failing := func(int) (time.Duration, error) { return -1, errors.New("no table") }
	calls, health := stepFor(t, 30*time.Second, failing)
	if health.Ready || len(health.Reasons) != 1 {
		t.Errorf("health %+v", health)
	}
	if calls < 5 || calls > 15 {
		t.Errorf("%d tries in half a minute", calls)
	}
	mended := func(call int) (time.Duration, error) {
		if call > 1 {
			return -1, nil
		}
		return failing(call)
	}
	if _, health = stepFor(t, 30*time.Second, mended); !health.Ready {
		t.Errorf("health after the error went: %+v", health)
	}
}
