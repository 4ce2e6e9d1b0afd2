package postrider_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

func TestPrepareCompletesEvents(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 1, time.FixedZone("", 3600))
	cfg := postrider.Config{Trace: func(context.Context) map[string]string { return map[string]string{"traceparent": "t"} }}
	prepared, err := postrider.Prepare(t.Context(), cfg, []postrider.Event{
		{AggregateType: "order", AggregateID: "1", Type: "Placed", Payload: []byte("{}"), At: at},
		{ID: "0192F0C1-9A3B-7C4D-8E5F-0123456789AB", AggregateType: "order", AggregateID: "1", Type: "Placed", Payload: []byte("1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, second := prepared[0], prepared[1]
	if len(first.ID) != 36 || first.ContentType != "application/json" || first.Headers["traceparent"] != "t" ||
		!first.At.Equal(time.Date(2026, 1, 2, 2, 4, 5, 1e6, time.UTC)) {
		t.Errorf("an event became %+v", first)
	}
	if second.ID != "0192f0c1-9a3b-7c4d-8e5f-0123456789ab" || !second.At.IsZero() {
		t.Errorf("an event became %+v", second)
	}
}

func TestPrepareRefusesWhatAddRefuses(t *testing.T) {
	_, err := postrider.Prepare(t.Context(), postrider.Config{}, []postrider.Event{{AggregateType: "order"}})
	if _, told := errors.AsType[postrider.EventErrors](err); !told {
		t.Errorf("got %v", err)
	}
	if _, err := postrider.Prepare(t.Context(), postrider.Config{MaxPayload: -1}, nil); err == nil {
		t.Error("a mistake of the configuration was not told")
	}
}

func TestErrorsOfValidateBecomeEventErrors(t *testing.T) {
	event := postrider.Event{AggregateType: "order", AggregateID: "1", Type: "Placed", Payload: []byte("{}")}
	unfit := event
	unfit.Payload = nil
	seen := 0
	cfg := postrider.Config{Validate: func(e postrider.Event) error {
		seen++
		if len(e.ID) != 36 || e.ContentType == "" {
			t.Errorf("Validate was called with %+v", e)
		}
		return errors.Join(errors.New("is bad"), postrider.EventErrors{{Index: 9, Field: "topic", Problem: "is wrong"}})
	}}
	_, err := postrider.Prepare(t.Context(), cfg, []postrider.Event{unfit, event})
	problems, _ := errors.AsType[postrider.EventErrors](err)
	if len(problems) != 3 || *problems[1] != (postrider.EventError{Index: 1, Field: "payload", Problem: "is bad"}) ||
		*problems[2] != (postrider.EventError{Index: 1, Field: "topic", Problem: "is wrong"}) {
		t.Errorf("got %v", err)
	}
	if seen != 1 {
		t.Errorf("Validate was called %d times, want once: the other event is not fit", seen)
	}
}
