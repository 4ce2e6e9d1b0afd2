package demo

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// The audit must see what bypasses the outbox: else it would only repeat what the relay believes.
func TestAuditReadsTheStreamItself(t *testing.T) {
	s, err := build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	app, err := s.application()
	if err != nil {
		t.Fatal(err)
	}
	if err := app.work(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	l, err := audit(t.Context(), s.outbox.DB, s.stream)
	if want := (Ledger{Committed: 1, Missing: 1}); err != nil || l != want {
		t.Errorf("nothing was published: got %+v, %v", l, err)
	}
	js, err := jetstream.New(s.conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "events.order", nil); err != nil { // returns once the stream has it
		t.Fatal(err)
	}
	l, err = audit(t.Context(), s.outbox.DB, s.stream)
	if want := (Ledger{Committed: 1, Published: 1, Missing: 1, Ghosts: 1}); err != nil || l != want {
		t.Errorf("something else was published: got %+v, %v", l, err)
	}
}

func TestApplicationCommitsEveryChangeInOrder(t *testing.T) {
	app := &application{run: "r"}
	versions := make(map[string]int)
	for n := range 3 * openOrders * len(steps) {
		c := app.nth(n)
		if c.version != versions[c.order]+1 {
			t.Fatalf("change %d: version %d of %s follows %d", n, c.version, c.order, versions[c.order])
		}
		versions[c.order] = c.version
	}
	if len(versions) != 3*openOrders {
		t.Errorf("%d orders", len(versions))
	}
}

// cancelWriter ends the demo when it begins to tell.
type cancelWriter struct{ cancel context.CancelFunc }

func (w cancelWriter) Write(p []byte) (int, error) {
	w.cancel()
	return len(p), nil
}

func TestInterruptedDemoLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, Options{
		Events: 1000, Exit: true, Listen: "127.0.0.1:0", Version: "v1.2.3",
		Out: cancelWriter{cancel}, Logger: slog.New(slog.DiscardHandler),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
