package jobs_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/internal/jobs"
)

func TestPaceKeepsTheRateInEverySecond(t *testing.T) {
	for _, rate := range []int{1, 2, 3, 7, 12, 500, 2501, 9999, 1_000_000_000} {
		type part struct {
			at     time.Duration
			events int
		}
		var parts []part
		total := min(3*rate+1, 100_000)
		at := time.Duration(0)
		for looked := 0; looked < total; {
			to, pause := jobs.Pace(looked, total, rate)
			if to <= looked || to > total || to-looked > jobs.MaxPart || pause <= 0 || pause > time.Second {
				t.Fatalf("rate %d: from %d to %d, then after %v", rate, looked, to, pause)
			}
			parts = append(parts, part{at, to - looked})
			looked, at = to, at+pause
		}
		for i := range parts {
			events := 0
			for j := i; j < len(parts) && parts[j].at < parts[i].at+time.Second; j++ {
				events += parts[j].events
			}
			if events > rate {
				t.Fatalf("rate %d: %d events in the second from %v on", rate, events, parts[i].at)
			}
		}
	}
}

func TestPaceWithoutARate(t *testing.T) {
	if to, pause := jobs.Pace(500, 700, 0); to != 700 || pause != 0 {
		t.Errorf("to %d, then after %v", to, pause)
	}
	if to, _ := jobs.Pace(0, 700, 0); to != jobs.MaxPart {
		t.Errorf("to %d", to)
	}
}
