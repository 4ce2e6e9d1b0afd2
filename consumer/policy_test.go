package consumer

import (
	"testing"
	"time"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
)

func TestDecide(t *testing.T) {
	const half = 0.5 // no jitter
	schedule := relay.RetryPolicy{Schedule: []time.Duration{time.Second, time.Minute}, Jitter: 0.2}
	inPlace, topics, park := Policy{Schedule: schedule}, Policy{Retry: RetryTopics, Permanent: EndDrop}, Policy{Retry: RetryPark, Schedule: schedule}
	for _, c := range []struct {
		name     string
		policy   Policy
		class    inbox.Class
		failures int
		next     step
		after    time.Duration
	}{
		{"first in place", inPlace, inbox.ClassRetry, 1, stepRetry, time.Second},
		{"second in place", inPlace, inbox.ClassRetry, 2, stepRetry, time.Minute},
		{"last in place", inPlace, inbox.ClassRetry, 3, stepDeadLetter, 0},
		{"first topic", topics, inbox.ClassRetry, 1, stepRetryTopic, time.Second},
		{"last topic", topics, inbox.ClassRetry, 3, stepRetryTopic, 5 * time.Minute},
		{"after the last topic", topics, inbox.ClassRetry, 4, stepDeadLetter, 0},
		{"parked", park, inbox.ClassRetry, 1, stepPark, time.Second},
		{"parked for long", park, inbox.ClassRetry, 99, stepPark, time.Minute},
		{"permanent", park, inbox.ClassPermanent, 1, stepDeadLetter, 0},
		{"permanent and dropped", topics, inbox.ClassPermanent, 1, stepDrop, 0},
		{"malformed", topics, inbox.ClassMalformed, 1, stepDeadLetter, 0},
		{"unavailable", inPlace, inbox.ClassUnavailable, 9, stepPause, 0},
		{"skipped", inPlace, inbox.ClassSkipped, 9, stepAgain, 0},
	} {
		if next, after := c.policy.withDefaults().decide(c.class, c.failures, half); next != c.next || after != c.after {
			t.Errorf("%s: %s after %v, want %s after %v", c.name, next, after, c.next, c.after)
		}
	}
	if _, after := inPlace.withDefaults().decide(inbox.ClassRetry, 1, 0); after != 800*time.Millisecond {
		t.Errorf("with the most jitter: %v", after)
	}
}

func TestNamesOfRetryTopics(t *testing.T) {
	for want, delay := range map[string]time.Duration{
		"t.retry.1s": time.Second, "t.retry.30s": 30 * time.Second, "t.retry.5m": 5 * time.Minute, "t.retry.1h": time.Hour, "t.retry.1m30s": 90 * time.Second,
		"t.retry.1h10m": 70 * time.Minute,
	} {
		if got := RetryTopic("t", delay); got != want {
			t.Errorf("%v: %s, want %s", delay, got, want)
		}
		if got := RetryDelay("a." + want); got != delay {
			t.Errorf("%s: %v, want %v", want, got, delay)
		}
	}
	for _, topic := range []string{"t", "t.retry", "t.retry.", "t.retry.soon", "t.retry.0s", "t.retry.-1s", "t.retry.1ms", "t.retry.1s.dlt", "t.retry.*"} {
		if got := RetryDelay(topic); got != 0 {
			t.Errorf("%s is a retry topic of %v", topic, got)
		}
	}
}
