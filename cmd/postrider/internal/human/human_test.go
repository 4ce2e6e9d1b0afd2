package human

import (
	"testing"
	"time"

	"github.com/postrider/postrider/operator"
)

func TestUTC(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 999, time.FixedZone("", 3600))
	if got := UTC(at); got != "2026-01-02T02:04:05Z" {
		t.Error(got)
	}
	if got := UTC(time.Time{}); got != "" {
		t.Error(got)
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{0: "0s", 0.0014: "1ms", 1.2345: "1.235s", 75.4: "1m15s", 7200: "2h0m0s"} {
		if got := Seconds(s); got != want {
			t.Errorf("%v: got %s, want %s", s, got, want)
		}
	}
}

func TestOldest(t *testing.T) {
	groups := []operator.KeyGroup{{Shard: 1, OldestPendingSeconds: 5}, {Shard: 2, OldestPendingSeconds: 9}, {Shard: 3, OldestPendingSeconds: 7}}
	got := Oldest(groups, 2)
	if len(got) != 2 || got[0].Shard != 2 || got[1].Shard != 3 || groups[0].Shard != 1 {
		t.Errorf("got %v of %v", got, groups)
	}
	if got := Oldest(nil, 2); len(got) != 0 {
		t.Errorf("got %v of none", got)
	}
}
