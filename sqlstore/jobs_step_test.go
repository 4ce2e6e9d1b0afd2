package sqlstore

import (
	"testing"
	"time"
)

func TestThePartsOfASecondAreNoMoreThanTheRate(t *testing.T) {
	for _, rate := range []int64{1, 2, 3, 5, 7, 11, 12, 99, 499, 2500, 2501, 12345, 1_000_000} {
		job := takenJob{rate: rate, total: 3*rate + 1}
		var ends []int64 // how far each step has come
		var pause time.Duration
		for job.looked < job.total {
			var to int64
			if to, pause = job.pace(); to <= job.looked || to > job.looked+maxPart || to > job.total {
				t.Fatalf("rate %d: a step from %d to %d of %d", rate, job.looked, to, job.total)
			}
			job.looked = to
			ends = append(ends, to)
		}
		inASecond := int((time.Second + pause - 1) / pause)
		for i := inASecond; i < len(ends); i++ {
			if events := ends[i] - ends[i-inASecond]; events > rate {
				t.Fatalf("rate %d: %d steps in a second look at %d events", rate, inASecond, events)
			}
		}
		if n := int64(len(ends)); n > 3*max(stepsPerSecond, rate/maxPart+1)+1 {
			t.Errorf("rate %d: %d steps in three seconds", rate, n)
		}
	}
}

func TestAJobWithoutARateTakesWholeParts(t *testing.T) {
	job := takenJob{total: maxPart + 1}
	if to, pause := job.pace(); to != maxPart || pause != 0 {
		t.Errorf("the first part ends at %d, and the next is due in %v", to, pause)
	}
	job.looked = maxPart
	if to, _ := job.pace(); to != job.total {
		t.Errorf("the last part ends at %d", to)
	}
}
