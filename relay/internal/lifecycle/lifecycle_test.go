package lifecycle

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/postrider/postrider"
)

func TestDiagramShowsTheTransitions(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/state-machine.md")
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for _, m := range regexp.MustCompile(`(?m)^    ([A-Z]+) --> ([A-Z]+) : (.+)$`).FindAllStringSubmatch(string(doc), -1) {
		drawn = append(drawn, fmt.Sprintf("%s %s %s", m[1], m[2], m[3]))
	}
	var known []string
	for _, tr := range Transitions() {
		known = append(known, fmt.Sprintf("%s %s %s", tr.From, tr.To, tr.Cause))
	}
	if !slices.Equal(drawn, known) {
		t.Errorf("docs/state-machine.md draws\n%q\nthe table has\n%q", drawn, known)
	}
}

func TestNext(t *testing.T) {
	if to, ok := Next(postrider.StateDead, Redriven); !ok || to != postrider.StatePending {
		t.Errorf("a redrive leads to %q, %v", to, ok)
	}
	for _, final := range []postrider.State{postrider.StatePublished, postrider.StateDiscarded} {
		for _, tr := range Transitions() {
			if to, ok := Next(final, tr.Cause); ok {
				t.Errorf("%s is final, but %q leads to %s", final, tr.Cause, to)
			}
		}
	}
}

var schedule = RetryPolicy{Schedule: []time.Duration{time.Second, time.Minute}, Jitter: 0.2}

func TestApply(t *testing.T) {
	const half = 0.5 // no jitter
	for _, c := range []struct {
		name   string
		count  int
		result Result
		want   Change
	}{
		{"published", 1, Result{Published: true}, Change{postrider.StatePublished, Acknowledged, 1, 0}},
		{"first failure", 0, Result{}, Change{postrider.StatePending, Failed, 1, time.Second}},
		{"second failure", 1, Result{}, Change{postrider.StatePending, Failed, 2, time.Minute}},
		{"last failure", 2, Result{}, Change{postrider.StateDead, Exhausted, 3, 0}},
		{"refused", 0, Result{Permanent: true}, Change{postrider.StateDead, Refused, 1, 0}},
		{"a count at its end", math.MaxInt32, Result{}, Change{postrider.StateDead, Exhausted, math.MaxInt32, 0}},
		{"deferred", 2, Result{After: 10 * time.Second}, Change{postrider.StatePending, Deferred, 2, 11 * time.Second}},
	} {
		if got := Apply(schedule, c.count, c.result, half); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestJitterStaysInItsBounds(t *testing.T) {
	for _, chance := range []float64{0, 0.25, 0.5, 0.75, 0.999} {
		if d := Apply(schedule, 0, Result{}, chance).RetryAfter; d < 800*time.Millisecond || d > 1200*time.Millisecond {
			t.Errorf("chance %v: %v for 1s with 20 %% jitter", chance, d)
		}
		if d := Apply(schedule, 0, Result{After: time.Second}, chance).RetryAfter; d < time.Second {
			t.Errorf("chance %v: %v undercuts the destination's 1s", chance, d)
		}
	}
}

func TestExponentialDelays(t *testing.T) {
	p := RetryPolicy{Initial: time.Second, Ceiling: 10 * time.Second, Attempts: 7}
	var got []time.Duration
	for n := 1; ; n++ {
		d, ok := p.Delay(n)
		if !ok {
			break
		}
		got = append(got, d)
	}
	want := []time.Duration{1e9, 2e9, 4e9, 8e9, 10e9, 10e9}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDelaysNeverOverflow(t *testing.T) {
	sane := func(initial, ceiling, asked int64, failures uint16, jitter float64, chance float64) bool {
		p := RetryPolicy{
			Initial: time.Duration(max(initial, 1)), Ceiling: time.Duration(max(ceiling, initial, 1)),
			Attempts: 1 << 20, Jitter: jitter - float64(int(jitter)),
		}
		change := Apply(p, int(failures), Result{After: time.Duration(asked)}, chance-float64(int(chance)))
		return change.RetryAfter >= 0 && change.RetryAfter <= 2*MaxDelay
	}
	if err := quick.Check(func(initial, ceiling, asked int64, failures uint16, j, c uint8) bool {
		return sane(initial, ceiling, asked, failures, float64(j)/256, float64(c)/256)
	}, nil); err != nil {
		t.Error(err)
	}
}
