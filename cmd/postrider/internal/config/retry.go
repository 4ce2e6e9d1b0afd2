package config

import "time"

// Retry says when a failed event is tried again, and when it becomes DEAD.
// Exactly one of Schedule and Backoff is set.
type Retry struct {
	// Schedule has the pause before each further try; after the last one
	// the event is DEAD. The default is 1s, 5s, 30s, 2m.
	Schedule []time.Duration
	// Backoff doubles the pause with each try; nil when there is a Schedule.
	Backoff *Backoff
	// Jitter is the share, 0 to 1, by which a pause is varied at random. The
	// default is 0.2.
	Jitter float64
}

// Backoff is an exponential retry policy.
type Backoff struct {
	// Initial is the pause after the first failure. The default is 1s.
	Initial time.Duration
	// Max is the longest pause; it is not shorter than Initial. The default
	// is 5m.
	Max time.Duration
	// Attempts is how often an event is tried in all before it is DEAD. The
	// default is 10.
	Attempts int
}

const maxAttempts = 1000

func defaultRetry() Retry {
	return Retry{
		Schedule: []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute},
		Jitter:   0.2,
	}
}

// readRetry takes what v leaves open from the inherited policy.
func readRetry(v value, inherited Retry) Retry {
	retry := inherited
	v.object(func(o *object) {
		o.exclude("schedule", "backoff", "keep one of both")
		if schedule := o.field("schedule"); schedule.present() {
			retry.Schedule, retry.Backoff = readSchedule(schedule), nil
		}
		if backoff := o.field("backoff"); backoff.present() {
			retry.Schedule, retry.Backoff = nil, readBackoff(backoff)
		}
		percent(o, "jitter", &retry.Jitter)
	})
	return retry
}

func readSchedule(v value) []time.Duration {
	var schedule []time.Duration
	isList := v.items(func(item value) {
		var pause time.Duration
		readValue(item, &pause, func(text string) (time.Duration, *mistake) {
			return parseDuration(text, time.Millisecond)
		})
		schedule = append(schedule, pause)
	})
	if isList && len(schedule) == 0 {
		v.problem("is empty", "write at least one pause; to try once only, write backoff: {attempts: 1}")
	}
	return schedule
}

func readBackoff(v value) *Backoff {
	backoff := &Backoff{Initial: time.Second, Max: 5 * time.Minute, Attempts: 10}
	v.object(func(o *object) {
		duration(o, "initial", &backoff.Initial, time.Millisecond)
		duration(o, "max", &backoff.Max, time.Millisecond)
		integer(o, "attempts", &backoff.Attempts, 1, maxAttempts)
		if backoff.Max < backoff.Initial {
			o.problem(o.firstOf("max", "initial"), "max must not be shorter than initial", "raise max, or set initial lower")
		}
	})
	return backoff
}
