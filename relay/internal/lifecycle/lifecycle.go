// Package lifecycle is the state machine of an event: which transitions exist, and what an outcome means for the
// event that had it. It is pure: no clock, no context, no database. The SQL of the stores guards the same
// transitions; docs/state-machine.md draws them and is tested against Transitions.
package lifecycle

import (
	"math"
	"slices"
	"time"

	"github.com/postrider/postrider"
)

// Cause is why an event changes its state.
type Cause string

// The causes of transitions.
const (
	Acknowledged Cause = "acknowledged" // the sink acknowledged the event durably
	Failed       Cause = "failed"       // an attempt failed and another one follows
	Deferred     Cause = "deferred"     // the sink asked for a later time; no attempt is spent
	Held         Cause = "held"         // a version of its aggregate must leave first; nothing was tried
	Exhausted    Cause = "exhausted"    // the last attempt failed
	Refused      Cause = "refused"      // the event can never be sent
	Claimed      Cause = "claimed"      // a relay claimed the row (row claims only)
	GivenBack    Cause = "given back"   // the relay will not send it, or stops
	ClaimExpired Cause = "claim expired"
	Redriven     Cause = "redriven"  // an operator sends a dead letter again
	Discarded    Cause = "discarded" // an operator gives a dead letter up
)

// Transition is one edge of the state machine.
type Transition struct {
	From, To postrider.State
	Cause    Cause
}

// Transitions lists every transition that exists. There is no other.
func Transitions() []Transition { return slices.Clone(transitions) }

var transitions = func() []Transition {
	const (
		pending    = postrider.StatePending
		processing = postrider.StateProcessing
		published  = postrider.StatePublished
		dead       = postrider.StateDead
		discarded  = postrider.StateDiscarded
	)
	return []Transition{
		{pending, published, Acknowledged},
		{pending, pending, Failed},
		{pending, pending, Deferred},
		{pending, pending, Held},
		{pending, dead, Exhausted},
		{pending, dead, Refused},
		{pending, processing, Claimed},
		{processing, published, Acknowledged},
		{processing, pending, Failed},
		{processing, pending, Deferred},
		{processing, dead, Exhausted},
		{processing, dead, Refused},
		{processing, pending, GivenBack},
		{processing, pending, ClaimExpired},
		{dead, pending, Redriven},
		{dead, discarded, Discarded},
	}
}()

// Next returns the state that follows from for the cause, and whether such a transition exists.
func Next(from postrider.State, cause Cause) (postrider.State, bool) {
	for _, t := range transitions {
		if t.From == from && t.Cause == cause {
			return t.To, true
		}
	}
	return "", false
}

// Result is what happened to an event at its sink.
type Result struct {
	Published bool          // acknowledged; the other fields do not count
	Permanent bool          // can never be sent
	After     time.Duration // the sink asked to wait this long; above 0 the failure spends no attempt
}

// Change is what an outcome does to an event.
type Change struct {
	State      postrider.State
	Cause      Cause
	RetryCount int
	RetryAfter time.Duration // with StatePending: due this long from now
}

// Apply decides what a result does to a PENDING event that has failed retryCount times before. chance is a random
// number in [0, 1) for the jitter.
func Apply(p RetryPolicy, retryCount int, r Result, chance float64) Change {
	cause, count, after := Acknowledged, retryCount, time.Duration(0)
	switch {
	case r.Published:
	case r.Permanent:
		cause, count = Refused, oneMore(retryCount)
	case r.After > 0:
		cause, after = Deferred, p.atLeast(r.After, chance)
	default:
		count = oneMore(retryCount)
		delay, ok := p.Delay(count)
		if !ok {
			cause = Exhausted
			break
		}
		cause, after = Failed, p.around(delay, chance)
	}
	to, _ := Next(postrider.StatePending, cause)
	return Change{State: to, Cause: cause, RetryCount: count, RetryAfter: after}
}

// oneMore counts an attempt. It stays within what the column holds: a row may come with any count.
func oneMore(retryCount int) int { return min(retryCount, math.MaxInt32-1) + 1 }
