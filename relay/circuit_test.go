package relay

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestCircuitProbesOneAtATimeWithGrowingPauses(t *testing.T) {
	now := time.Unix(0, 0)
	var states []string
	c := newCircuit(now, func(state string) { states = append(states, state) })
	if n, _ := c.permit(now, 500); n != 500 {
		t.Fatalf("a closed circuit permits %d of 500", n)
	}
	down := errors.New("refused")
	var waits []time.Duration
	for range 9 {
		c.failed(now, down)
		n, wait := c.permit(now, 500)
		if n != 0 {
			t.Fatalf("an open circuit permits %d", n)
		}
		waits = append(waits, wait)
		now = now.Add(wait)
		if n, _ := c.permit(now, 500); n != 1 {
			t.Fatalf("%d events for a probe", n)
		}
		if n, _ := c.permit(now, 500); n != 0 {
			t.Fatal("a second probe beside the first")
		}
	}
	const ms = time.Millisecond
	want := []time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 15 * time.Second, 15 * time.Second}
	if !slices.Equal(waits, want) {
		t.Errorf("pauses %v, want %v", waits, want)
	}
	if _, since, lastErr := c.snapshot(); !since.Equal(time.Unix(0, 0)) || lastErr != "refused" {
		t.Errorf("the outage began at %v with %q", since, lastErr)
	}
	c.succeeded(now)
	if n, _ := c.permit(now, 500); n != 500 {
		t.Errorf("after an answer the circuit permits %d", n)
	}
	if states[0] != CircuitOpen || states[1] != CircuitHalfOpen || states[len(states)-1] != CircuitClosed {
		t.Errorf("states %v", states)
	}
}

func TestAbandonedProbeCanBeTakenAgain(t *testing.T) {
	now := time.Unix(0, 0)
	c := newCircuit(now, func(string) {})
	c.failed(now, errors.New("refused"))
	now = now.Add(time.Minute)
	c.permit(now, 500)
	c.abandon()
	if n, _ := c.permit(now, 500); n != 1 {
		t.Errorf("%d events after an abandoned probe", n)
	}
}
