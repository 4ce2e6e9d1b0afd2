// Package human writes values for people.
package human

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/postrider/postrider/operator"
)

// UTC writes a time in RFC 3339, and the zero time as nothing.
func UTC(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Seconds writes a duration with a sensible precision.
func Seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

// Oldest returns up to n of the key groups, the one that has waited longest first.
func Oldest(groups []operator.KeyGroup, n int) []operator.KeyGroup {
	sorted := slices.SortedStableFunc(slices.Values(groups), func(a, b operator.KeyGroup) int {
		return cmp.Compare(b.OldestPendingSeconds, a.OldestPendingSeconds)
	})
	return sorted[:min(n, len(sorted))]
}

// Events counts events.
func Events(n int) string {
	if n == 1 {
		return "1 event"
	}
	return strconv.Itoa(n) + " events"
}

// Letters counts dead letters.
func Letters(n int) string {
	if n == 1 {
		return "1 letter"
	}
	return strconv.Itoa(n) + " letters"
}

// Progress tells how far a job is in its set.
func Progress(j operator.Job) string {
	return strconv.Itoa(j.Looked) + " of " + Events(j.Total)
}

// Rate writes the rate of a job, and no bound as nothing.
func Rate(perSecond int) string {
	if perSecond == 0 {
		return ""
	}
	return strconv.Itoa(perSecond) + "/s"
}

// Job tells in a few words what a job does and how far it is.
func Job(j operator.Job) string {
	text := string(j.Kind) + " " + string(j.State) + ", " + Progress(j)
	if j.Rate > 0 {
		text += " at " + Rate(j.Rate)
	}
	return text
}
