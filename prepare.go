package postrider

import (
	"context"
	"fmt"
	"time"

	"github.com/postrider/postrider/internal/uuid"
)

// rules are what a Config says of the events that are added.
type rules struct {
	binary     bool
	maxPayload int
	trace      func(ctx context.Context) map[string]string
	validate   func(Event) error
}

func (c Config) rules() (rules, error) {
	if c.MaxPayload < 0 {
		return rules{}, fmt.Errorf("MaxPayload is %d bytes: it must be positive", c.MaxPayload)
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = DefaultMaxPayload
	}
	return rules{binary: c.Binary, maxPayload: c.MaxPayload, trace: c.Trace, validate: c.Validate}, nil
}

// Prepare returns events as Add writes them: checked, with an id, a content type and the headers of cfg.Trace, and with At
// rounded up to a millisecond. It is for those who add events to a database that has no Dialect; Dialect and Table of cfg
// do not matter. Events that are not fit to be added are told by EventErrors.
func Prepare(ctx context.Context, cfg Config, events []Event) ([]Event, error) {
	r, err := cfg.rules()
	if err != nil {
		return nil, fmt.Errorf("outbox configuration: %w", err)
	}
	return r.prepare(ctx, events)
}

func (r rules) prepare(ctx context.Context, events []Event) ([]Event, error) {
	var traced map[string]string
	if r.trace != nil {
		traced = r.trace(ctx)
	}
	var problems EventErrors
	prepared := make([]Event, len(events))
	for i, e := range events {
		e.Headers = withTrace(e.Headers, traced)
		wrong := r.check(i, &e)
		prepared[i] = complete(e)
		if wrong == nil && r.validate != nil {
			wrong = problemsOf(i, r.validate(prepared[i]))
		}
		problems = append(problems, wrong...)
	}
	if problems != nil {
		return nil, problems
	}
	return prepared, nil
}

// problemsOf makes the problems of the event at index out of an error of Config.Validate.
func problemsOf(index int, err error) EventErrors {
	switch err := err.(type) { //nolint:errorlint // what is wrapped is taken apart here
	case nil:
		return nil
	case *EventError:
		return EventErrors{{Index: index, Field: err.Field, Problem: err.Problem}}
	case interface{ Unwrap() []error }:
		var problems EventErrors
		for _, one := range err.Unwrap() {
			problems = append(problems, problemsOf(index, one)...)
		}
		return problems
	default:
		return EventErrors{{Index: index, Field: "payload", Problem: err.Error()}}
	}
}

// complete fills in what an event may leave open. At is rounded up, so that no event is published before its time.
func complete(e Event) Event {
	if e.ID, _ = uuid.Canonical(e.ID); e.ID == "" {
		e.ID = uuid.NewV7()
	}
	if e.ContentType == "" {
		e.ContentType = "application/json"
	}
	if !e.At.IsZero() {
		e.At = e.At.Add(time.Millisecond - 1).UTC().Truncate(time.Millisecond)
	}
	return e
}
