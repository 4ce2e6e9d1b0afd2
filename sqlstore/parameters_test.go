package sqlstore

import (
	"testing"
	"time"
)

func TestIDsOfOurTables(t *testing.T) {
	if got, err := (ids{}).json([]string{"1", "0", "999999999999999999"}); err != nil || got != "[1,0,999999999999999999]" {
		t.Errorf("%q, %v", got, err)
	}
	for _, id := range []string{"", "x", "-1", "01", "1.0", "1]", "9999999999999999999"} {
		if got, err := (ids{}).json([]string{id}); err == nil {
			t.Errorf("%q was taken for a number: %s", id, got)
		}
	}
}

func TestClampDelay(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{-1: 0, 5: 5, 1<<63 - 1: maxRetryAfter} {
		if got := clampDelay(d); got != want {
			t.Errorf("clampDelay(%v) = %v, want %v", d, got, want)
		}
	}
}
