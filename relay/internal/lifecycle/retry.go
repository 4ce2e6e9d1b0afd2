package lifecycle

import (
	"math"
	"time"
)

// MaxDelay bounds every wait, so that no multiplication overflows and no event waits out of sight.
const MaxDelay = 24 * time.Hour

// RetryPolicy says when a failed event is tried again, and when it is given up. Either Schedule is used or, when
// it is empty, the exponential fields.
type RetryPolicy struct {
	Schedule []time.Duration // wait before the 1st, 2nd, ... retry; after the last one the event is DEAD

	Initial  time.Duration // exponential: wait before the first retry; each further one doubles it
	Ceiling  time.Duration // exponential: no wait is longer
	Attempts int           // exponential: attempts in all, the first one included

	Jitter float64 // every wait varies by this share in both directions, 0 to 1
}

// Delay returns the wait after the failures-th failure (1 for the first) before jitter; ok is false when no
// further attempt follows.
func (p RetryPolicy) Delay(failures int) (delay time.Duration, ok bool) {
	if len(p.Schedule) > 0 {
		if failures > len(p.Schedule) {
			return 0, false
		}
		return min(p.Schedule[failures-1], MaxDelay), true
	}
	if failures >= p.Attempts {
		return 0, false
	}
	ceiling := min(p.Ceiling, MaxDelay)
	doubled := float64(p.Initial) * math.Pow(2, float64(failures-1))
	if doubled >= float64(ceiling) {
		return ceiling, true
	}
	return time.Duration(doubled), true
}

// Longest returns the longest wait of the policy, jitter included.
func (p RetryPolicy) Longest() time.Duration {
	longest := min(p.Ceiling, MaxDelay)
	if len(p.Schedule) > 0 {
		longest = 0
		for _, d := range p.Schedule {
			longest = max(longest, min(d, MaxDelay))
		}
	}
	return longest + time.Duration(p.Jitter*float64(longest))
}

// around spreads d by the jitter in both directions.
func (p RetryPolicy) around(d time.Duration, chance float64) time.Duration {
	return d + time.Duration((2*chance-1)*p.Jitter*float64(d))
}

// atLeast spreads d by the jitter upwards only: a destination that names a time is never undercut.
func (p RetryPolicy) atLeast(d time.Duration, chance float64) time.Duration {
	d = min(d, MaxDelay)
	return d + time.Duration(chance*p.Jitter*float64(d))
}
