// Package jobs holds what all stores decide alike about stored jobs.
package jobs

import (
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/operator"
)

const (
	// MaxPart is how many events a step looks at, so that it is in the way briefly.
	MaxPart = 500

	// stepsPerSecond is how often a job with a rate takes a part, unless its parts would be too large or smaller than one event.
	stepsPerSecond = 5
)

// Check says why a job cannot be carried out; nil when it can.
func Check(n operator.NewJob) error {
	switch {
	case n.Kind != operator.JobRedrive && n.Kind != operator.JobDiscard:
		return fmt.Errorf("%q is no kind of a job", n.Kind)
	case n.Kind == operator.JobDiscard && n.Action.Reason == "":
		return errors.New("discarding needs a reason")
	case n.Rate < 0:
		return fmt.Errorf("the rate is %d events each second; it must be 0 or more", n.Rate)
	}
	return nil
}

// Pace says to which event of the set a step is to come that begins behind the event looked, and how long it is from its end
// until the next step is due. With a rate the parts differ, so that the steps of any second look at no more events than that.
func Pace(looked, total, rate int) (to int, pause time.Duration) {
	if rate == 0 {
		return min(looked+MaxPart, total), 0
	}
	steps := min(rate, max(stepsPerSecond, (rate+MaxPart-1)/MaxPart))
	step := ((looked+1)*steps + rate - 1) / rate // the first that comes behind looked
	milliseconds := (1000 + steps - 1) / steps   // whole ones: some databases know no less
	return min(step*rate/steps, total), time.Duration(milliseconds) * time.Millisecond
}

// Steered says what was done to a job that is brought into a state, by whom and why, for people.
func Steered(to operator.JobState, a operator.Action) (string, error) {
	verb := map[operator.JobState]string{
		operator.JobPaused: "paused", operator.JobRunning: "continued", operator.JobCancelled: "cancelled",
	}[to]
	if verb == "" {
		return "", fmt.Errorf("a job cannot be made %q", to)
	}
	if a.Reason == "" {
		return verb + " by " + a.Who, nil
	}
	return verb + " by " + a.Who + ": " + a.Reason, nil
}
