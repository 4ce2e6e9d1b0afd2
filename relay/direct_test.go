package relay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// newDirect closes it at the end of the test.
func newDirect(t *testing.T, s relay.Sink, change func(*relay.DirectConfig)) *relay.Direct {
	t.Helper()
	c := relay.DirectConfig{
		Sinks:  []relay.NamedSink{{Name: "main", Sink: s}},
		Routes: []relay.Route{{AggregateType: "order", Sink: "main", Topic: "orders"}},
	}
	if change != nil {
		change(&c)
	}
	d, err := relay.NewDirect(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func placed(key string, n int) postrider.Event {
	return postrider.Event{AggregateType: "order", AggregateID: key, Type: "placed", Payload: fmt.Append(nil, n)}
}

func TestGuaranteedTellsWhatWasNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, open := &recorder{}, make(chan struct{})
		d := newDirect(t, s, nil)
		if err := d.Guaranteed(t.Context(), placed("a", 1), placed("b", 2)); err != nil {
			t.Fatal(err)
		}
		wantIDs(t, s.ids("a"), "1")
		wantIDs(t, s.ids("b"), "2")
		s.set(func(m relay.Message) relay.Outcome {
			switch m.Key {
			case "first":
				<-open
			case "a":
				return relay.Retry(errTest)
			}
			return relay.Published("x")
		})
		d.BestEffort(t.Context(), placed("first", 0))
		synctest.Wait() // it is being sent, so that all that follows is sent at once
		told := make(chan error)
		go func() { told <- d.Guaranteed(t.Context(), placed("a", 3), placed("b", 4), placed("a", 5)) }()
		synctest.Wait()
		close(open)
		err := <-told
		for _, want := range []string{`of key "a": refused by the test`, `of key "a": not sent: an earlier event of its key was not acknowledged`} {
			if !errors.Is(err, errTest) || strings.Count(err.Error(), want) != 1 || strings.Contains(err.Error(), `"b"`) {
				t.Errorf("got %v, want %q once in it", err, want)
			}
		}
		wantIDs(t, s.ids("b"), "2", "4")
		wantIDs(t, s.ids("a"), "1")
	})
}

func TestDirectEventsKeepTheOrderOfTheirKeyAndShareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{}
		s.set(func(relay.Message) relay.Outcome { time.Sleep(time.Millisecond); return relay.Published("x") })
		d := newDirect(t, s, nil)
		var want []string
		for n := range 1000 {
			want = append(want, fmt.Sprint(n))
			d.BestEffort(t.Context(), placed("a", n))
		}
		d.Close()
		wantIDs(t, s.ids("a"), want...)
		if n := d.Dropped(); n != 0 {
			t.Errorf("%d dropped", n)
		}
	})
}

func TestBestEffortNeverBlocksAndCountsWhatItDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, open := &recorder{}, make(chan struct{})
		s.set(func(m relay.Message) relay.Outcome {
			<-open
			if m.Key == "refused" {
				return relay.Unavailable(errTest)
			}
			return relay.Published("x")
		})
		d := newDirect(t, s, func(c *relay.DirectConfig) { c.Queue = 2 })
		d.BestEffort(t.Context(), placed("a", 1))
		synctest.Wait() // it is being sent, and the queue is empty
		gone, cancel := context.WithCancel(t.Context())
		d.BestEffort(gone, placed("refused", 2), placed("b", 3), placed("c", 4), placed("d", 5))
		cancel()
		d.BestEffort(t.Context(), postrider.Event{AggregateType: "order"}, postrider.Event{AggregateType: "user", AggregateID: "1", Type: "x", Payload: []byte("1")})
		if n := d.Dropped(); n != 4 {
			t.Errorf("%d dropped, want 2 without room and 2 that are not fit", n)
		}
		close(open)
		d.Close()
		if n := d.Dropped(); n != 5 {
			t.Errorf("%d dropped, want one more that was refused", n)
		}
		wantIDs(t, s.ids("b"), "3")
		d.BestEffort(t.Context(), placed("e", 6))
		if n := d.Dropped(); n != 6 {
			t.Errorf("%d dropped, want one more after Close", n)
		}
	})
}

func TestGuaranteedEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, open := &recorder{}, make(chan struct{})
		s.set(func(relay.Message) relay.Outcome { <-open; return relay.Published("x") })
		d := newDirect(t, s, func(c *relay.DirectConfig) { c.Queue = 1 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d.BestEffort(t.Context(), placed("a", 1))
		synctest.Wait() // it is being sent, and the queue is empty
		err := d.Guaranteed(ctx, placed("b", 2), placed("c", 3))
		for _, want := range []string{"not known whether it was published", "not sent"} {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		close(open)
		d.Close()
		if ids := s.ids("b"); len(ids) > 0 {
			t.Errorf("%v was sent after its caller had gone", ids)
		}
		if err := d.Guaranteed(t.Context(), placed("d", 4)); !errors.Is(err, relay.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestDirectRefusesWhatNeedsAnOutbox(t *testing.T) {
	d := newDirect(t, &recorder{}, nil)
	late, dedup, broken := placed("a", 1), placed("a", 2), placed("", 3)
	late.At = time.Now().Add(time.Hour)
	dedup.DedupKey = "k"
	for _, e := range []postrider.Event{late, dedup} {
		if err := d.Guaranteed(t.Context(), e); err == nil || !strings.Contains(err.Error(), "need an outbox") {
			t.Errorf("got %v", err)
		}
	}
	var wrong postrider.EventErrors
	if err := d.Guaranteed(t.Context(), broken); !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
	_, err := relay.NewDirect(relay.DirectConfig{Routes: []relay.Route{{Sink: "absent"}}, Queue: -1})
	for _, want := range []string{"Sinks is empty", `unknown sink "absent"`, "Queue (-1)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
