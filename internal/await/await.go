// Package await lets tests wait for what they cannot be told of.
package await

import (
	"testing"
	"time"
)

const pause = 20 * time.Millisecond

// True waits until condition holds, and fails the test when it does not within limit. what says what is awaited.
func True(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
