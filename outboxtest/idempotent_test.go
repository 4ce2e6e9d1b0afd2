package outboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/outboxtest"
)

// account is a consumer in memory: every message adds to a balance.
type account struct {
	mu      sync.Mutex
	applied map[string]bool
	last    string
	log     []string
	extra   func() string // of the snapshot
}

func (a *account) snapshot(context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := strings.Join(a.log, "\n")
	if a.extra != nil {
		text += a.extra()
	}
	return text, nil
}

// once applies a message unless it was applied.
func (a *account) once(_ context.Context, m inbox.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.applied[m.EventID()] {
		a.apply(m)
	}
	return nil
}

func (a *account) apply(m inbox.Message) {
	a.applied[m.EventID()] = true
	a.last = m.EventID()
	a.log = append(a.log, "applied "+m.EventID())
}

func subject(deliver func(*account) func(context.Context, inbox.Message) error) func(testing.TB) outboxtest.Consumer {
	return func(testing.TB) outboxtest.Consumer {
		a := &account{applied: make(map[string]bool)}
		return outboxtest.Consumer{Deliver: deliver(a), Snapshot: a.snapshot}
	}
}

func messages(n int) []inbox.Message {
	all := make([]inbox.Message, n)
	for i := range all {
		all[i] = inbox.Message{
			Coordinates: fmt.Sprintf("memory:orders/0@%d", i), Key: "k",
			Headers: []inbox.Header{{Name: "X-Event-Id", Value: fmt.Sprint("e", i+1)}},
		}
	}
	return all
}

type deliver = func(context.Context, inbox.Message) error

func TestIdempotent(t *testing.T) {
	for _, test := range []struct {
		name    string
		deliver func(a *account) deliver
		want    string // part of the failure
	}{
		{"idempotent", func(a *account) deliver { return a.once }, ""},
		{"applies always", func(a *account) deliver {
			return func(_ context.Context, m inbox.Message) error {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.apply(m)
				return nil
			}
		}, "each twice in a row left another state"},
		{"remembers the last message only", func(a *account) deliver {
			return func(_ context.Context, m inbox.Message) error {
				a.mu.Lock()
				defer a.mu.Unlock()
				if a.last != m.EventID() {
					a.apply(m)
				}
				return nil
			}
		}, "all of them, and then all again left another state"},
		{"remembers until the next but one", func(a *account) deliver {
			return func(_ context.Context, m inbox.Message) error {
				a.mu.Lock()
				defer a.mu.Unlock()
				if a.applied[m.EventID()] {
					return nil
				}
				if len(a.applied) == 2 && len(a.log) == 2 { // the third message makes it forget, once
					clear(a.applied)
				}
				a.apply(m)
				return nil
			}
		}, "each followed by all before it left another state"},
		{"looks before it acts", func(a *account) deliver {
			return func(_ context.Context, m inbox.Message) error {
				a.mu.Lock()
				seen := a.applied[m.EventID()]
				a.mu.Unlock()
				for range 100 {
					runtime.Gosched()
				}
				a.mu.Lock()
				defer a.mu.Unlock()
				if !seen {
					a.apply(m)
				}
				return nil
			}
		}, "at the same time left another state"},
		{"losers fail, and succeed later", func(a *account) deliver {
			return func(ctx context.Context, m inbox.Message) error {
				if !a.mu.TryLock() {
					return errors.New("locked")
				}
				a.mu.Unlock()
				return a.once(ctx, m)
			}
		}, ""},
		{"duplicates are refused", func(a *account) deliver {
			return func(ctx context.Context, m inbox.Message) error {
				if _, err := a.snapshot(ctx); err != nil || strings.Contains(strings.Join(a.log, " "), m.EventID()) {
					return errors.New("duplicate key")
				}
				return a.once(ctx, m)
			}
		}, "delivery 2 of 6, of event \"e1\" at memory:orders/0@0, failed"},
		{"no effect", func(*account) deliver { return func(context.Context, inbox.Message) error { return nil } }, "changed nothing"},
		{"differs by itself", func(a *account) deliver {
			a.extra = func() string { return fmt.Sprintf("%p", a) }
			return a.once
		}, "differs between two runs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := failure(t, func(t testing.TB) { outboxtest.Idempotent(t, subject(test.deliver), messages(3)...) })
			if test.want == "" && text != "" || !strings.Contains(text, test.want) {
				t.Errorf("it fails with %q, want %q", text, test.want)
			}
		})
	}
}

func TestIdempotentShowsWhatIsTooMuch(t *testing.T) {
	always := func(a *account) deliver {
		return func(_ context.Context, m inbox.Message) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.apply(m)
			return nil
		}
	}
	text := failure(t, func(t testing.TB) { outboxtest.Idempotent(t, subject(always), messages(1)...) })
	if !strings.Contains(text, "(- is missing, + is too much):\n+ applied e1") {
		t.Errorf("it fails with %q", text)
	}
}

// A copy that never succeeds after a race is a failure, though the state is right.
func TestIdempotentFailsForCopiesThatNeverSucceed(t *testing.T) {
	var stuck sync.Map
	inFlight := make(chan struct{}, 100)
	text := failure(t, func(t testing.TB) {
		outboxtest.Idempotent(t, subject(func(a *account) deliver {
			return func(ctx context.Context, m inbox.Message) error {
				inFlight <- struct{}{}
				defer func() { <-inFlight }()
				for range 100 {
					runtime.Gosched()
				}
				if len(inFlight) > 1 {
					stuck.Store(a, true)
				}
				if _, is := stuck.Load(a); is {
					_ = a.once(ctx, m)
					return errors.New("stuck")
				}
				return a.once(ctx, m)
			}
		}), messages(1)...)
	})
	if !strings.Contains(text, "one of which failed 10 times afterwards: stuck") {
		t.Errorf("it fails with %q", text)
	}
}
