package relay

import (
	"context"
	"time"
)

const (
	stepTimeout = 30 * time.Second
	stepPoll    = time.Second // how soon a new job is seen
)

// stepJobs carries out operators' jobs until ctx ends. Every relay does: the store lets one at a time take a part.
func (e *engine) stepJobs(ctx context.Context) {
	stepper, steps := e.cfg.Store.(JobStepper)
	if !steps {
		return
	}
	failures := 0
	for wait := stepPoll; sleep(ctx, wait); {
		next, err := stepOnce(ctx, stepper)
		if ctx.Err() != nil {
			return
		}
		e.health.note(loopJobs, err)
		switch {
		case err != nil:
			failures++
			wait = pause(failures, loopFirstPause, loopMaxPause)
		case next < 0:
			failures, wait = 0, stepPoll
		default:
			failures, wait = 0, min(next, stepPoll)
		}
	}
}

func stepOnce(ctx context.Context, stepper JobStepper) (next time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return stepper.StepJobs(ctx)
}
