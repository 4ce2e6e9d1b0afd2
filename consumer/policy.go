package consumer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
)

// Retry says how messages are tried again whose failure may pass.
type Retry string

// The ways to try again.
const (
	// RetryInPlace keeps the message in hand and tries it again by the schedule. Its key waits; other keys go on, as far as
	// Config.LaneBuffer reaches: the position of the lane stays before the message. A restart begins to count anew.
	RetryInPlace Retry = "in place"

	// RetryTopics publishes the message to the retry topics, one after the other: {topic}.retry.1s, .retry.30s, .retry.5m. The
	// Source must read them as well. A delay is a floor: the message is tried once it is over and its turn has come. The
	// order of the key is lost: its later messages go on meanwhile.
	RetryTopics Retry = "retry topics"

	// RetryPark stores the message, and all later ones of its key, in the consumer's database. They are tried by the schedule, in
	// order, and again at its last wait for as long as it takes: parked messages are never given up but by people.
	// Other keys go on, and so does the lane. Needs Config.Parking.
	RetryPark Retry = "park"
)

// End is what becomes of a message that is not applied.
type End string

// The ends.
const (
	EndDeadLetter End = "dead letter" // it goes to {topic}.dlt
	EndDrop       End = "drop"        // it is gone, but for Stats.Dropped and Hooks.Dropped
)

// Policy says what becomes of messages that fail. The zero value retries in place and then writes dead letters.
type Policy struct {
	Retry Retry // default RetryInPlace

	// Schedule is for RetryInPlace and RetryPark. Default: 1s, 5s, 30s, 2m, with 20 % jitter.
	Schedule relay.RetryPolicy

	// Delays are those of the retry topics, which are named after them. Default: 1s, 30s, 5m; each at least 1s, in whole seconds.
	Delays []time.Duration

	Permanent End // of what can never be applied; default EndDeadLetter
	Malformed End // of what cannot be read: no event id, a broken one, an unknown type, a payload that does not decode; default EndDeadLetter
	Exhausted End // of what failed after its last retry, or was given up by people while it was parked; default EndDeadLetter
}

const (
	retrySuffix      = ".retry."
	deadLetterSuffix = ".dlt"
)

// DeadLetterTopic returns the dead-letter topic of a topic.
func DeadLetterTopic(topic string) string { return topic + deadLetterSuffix }

// RetryTopic returns the retry topic of a topic for a delay, such as orders.retry.30s.
func RetryTopic(topic string, delay time.Duration) string {
	name := delay.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(name, zero) {
			name = name[:len(name)-2]
		}
	}
	return topic + retrySuffix + name
}

// RetryDelay returns the delay of a retry topic, as its name says; 0 for every other topic.
func RetryDelay(topic string) time.Duration {
	at := strings.LastIndex(topic, retrySuffix)
	if at < 0 {
		return 0
	}
	delay, err := time.ParseDuration(topic[at+len(retrySuffix):])
	if err != nil || !isDelay(delay) {
		return 0
	}
	return delay
}

func isDelay(d time.Duration) bool { return d >= time.Second && d%time.Second == 0 }

func (p Policy) withDefaults() Policy {
	setDefault(&p.Retry, RetryInPlace)
	setDefault(&p.Permanent, EndDeadLetter)
	setDefault(&p.Malformed, EndDeadLetter)
	setDefault(&p.Exhausted, EndDeadLetter)
	if len(p.Schedule.Schedule) == 0 && p.Schedule.Attempts == 0 {
		p.Schedule = relay.DefaultRetry()
	}
	if p.Delays == nil {
		p.Delays = []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute}
	}
	return p
}

func (p Policy) validate(place string) error {
	var problems []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("%s."+format, append([]any{place}, args...)...))
		}
	}
	retries, ends := []Retry{RetryInPlace, RetryTopics, RetryPark}, []End{EndDeadLetter, EndDrop}
	require(slices.Contains(retries, p.Retry), "Retry is %q, must be one of %q", p.Retry, retries)
	for name, end := range map[string]End{"Permanent": p.Permanent, "Malformed": p.Malformed, "Exhausted": p.Exhausted} {
		require(slices.Contains(ends, end), "%s is %q, must be one of %q", name, end, ends)
	}
	for i, d := range p.Delays {
		require(isDelay(d), "Delays[%d] is %v, must be at least 1s, in whole seconds", i, d)
	}
	s := p.Schedule
	for i, d := range s.Schedule {
		require(d >= 0, "Schedule.Schedule[%d] is %v, must not be negative", i, d)
	}
	require(s.Jitter >= 0 && s.Jitter <= 1, "Schedule.Jitter is %v, must be between 0 and 1", s.Jitter)
	require(len(s.Schedule) > 0 || s.Attempts >= 1 && s.Initial > 0 && s.Ceiling >= s.Initial,
		"Schedule needs a Schedule, or Initial, Ceiling (not below Initial) and Attempts")
	return errors.Join(problems...)
}

// writes says whether the policy can write to topics.
func (p Policy) writes() bool {
	return p.Retry == RetryTopics || p.Permanent == EndDeadLetter || p.Malformed == EndDeadLetter || p.Exhausted == EndDeadLetter
}

func longest(delays []time.Duration) (d time.Duration) {
	for _, delay := range delays {
		d = max(d, delay)
	}
	return d
}

// step is what is done next with a message that failed.
type step string

const (
	stepRetry      step = "retry"       // in place, after a wait
	stepRetryTopic step = "retry topic" // to the retry topic of the delay after
	stepPark       step = "park"        // to the database, where it is tried after a wait
	stepDeadLetter step = "dead letter"
	stepDrop       step = "drop"
	stepPause      step = "pause" // everything: the database takes nothing
	stepAgain      step = "again" // it was not tried
)

// decide says what is done after the failures-th failure of a message. chance is a random number in [0, 1) for the jitter.
func (p Policy) decide(class inbox.Class, failures int, chance float64) (step, time.Duration) {
	end := p.Exhausted
	switch class {
	case inbox.ClassUnavailable:
		return stepPause, 0
	case inbox.ClassSkipped:
		return stepAgain, 0
	case inbox.ClassPermanent:
		end = p.Permanent
	case inbox.ClassMalformed:
		end = p.Malformed
	default:
		if next, after, ok := p.retry(failures, chance); ok {
			return next, after
		}
	}
	return end.step(), 0
}

func (e End) step() step {
	if e == EndDrop {
		return stepDrop
	}
	return stepDeadLetter
}

func (p Policy) retry(failures int, chance float64) (next step, after time.Duration, ok bool) {
	switch p.Retry {
	case RetryTopics:
		if failures > len(p.Delays) {
			return "", 0, false
		}
		return stepRetryTopic, p.Delays[failures-1], true
	case RetryPark:
		return stepPark, p.parkedWait(failures, chance), true
	default:
		delay, ok := p.Schedule.Delay(failures)
		return stepRetry, p.around(delay, chance), ok
	}
}

// parkedWait is the wait of a parked message after its failures-th failure: that of the schedule, and then its last one.
func (p Policy) parkedWait(failures int, chance float64) time.Duration {
	last := max(len(p.Schedule.Schedule), p.Schedule.Attempts-1, 1)
	delay, ok := p.Schedule.Delay(min(failures, last))
	if !ok { // a policy of one attempt
		delay = p.Schedule.Initial
	}
	return p.around(delay, chance)
}

func (p Policy) around(d time.Duration, chance float64) time.Duration {
	return d + time.Duration((2*chance-1)*p.Schedule.Jitter*float64(d))
}
