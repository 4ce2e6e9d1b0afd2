package contract

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

// Check looks at the payload of one event and says what is wrong with it. Each of joined errors (errors.Join) is told on
// its own. The text goes on after the word payload, such as "/amount is missing", and must not tell values of the payload: it
// ends in logs. A Check may be called concurrently, and must not change the payload.
type Check func(payload []byte) error

// Config says what is looked at. An event type may have both fields and a check.
type Config struct {
	Fields map[string][]Field // by event type: what must be in a payload, which then must be JSON
	Checks map[string]Check   // by event type

	// Strict refuses events of a type that has neither. Otherwise they pass, whatever their payload.
	Strict bool
}

// Contract is the contracts of all event types. It is safe for concurrent use.
type Contract struct {
	checks map[string][]Check
	strict bool
}

// New returns the Contract that cfg describes, or an error with every mistake in cfg.
func New(cfg Config) (*Contract, error) {
	c := &Contract{checks: make(map[string][]Check), strict: cfg.Strict}
	var mistakes []error
	for _, eventType := range slices.Sorted(maps.Keys(cfg.Fields)) {
		check, err := compile(cfg.Fields[eventType])
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("Fields[%q]: %w", eventType, err))
		}
		c.checks[eventType] = append(c.checks[eventType], check)
	}
	for _, eventType := range slices.Sorted(maps.Keys(cfg.Checks)) {
		if cfg.Checks[eventType] == nil {
			mistakes = append(mistakes, fmt.Errorf("Checks[%q] is nil", eventType))
		}
		c.checks[eventType] = append(c.checks[eventType], cfg.Checks[eventType])
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("contract: %w", errors.Join(mistakes...))
	}
	return c, nil
}

// Event is for postrider.Config.Validate. Its errors are *postrider.EventError, joined, of the fields payload and, for a
// type that a strict contract does not know, event_type.
func (c *Contract) Event(e postrider.Event) error {
	return errors.Join(c.problems(e.Type, e.Payload)...)
}

// Message is for a consumer, which calls it before it applies the message. Its error is of inbox.ClassMalformed: no retry
// cures it. The event type is that of the message's headers.
func (c *Contract) Message(m inbox.Message) error {
	problems := c.problems(m.EventType(), m.Payload)
	if len(problems) == 0 {
		return nil
	}
	text := ""
	for i, err := range problems {
		if i > 0 {
			text += "; "
		}
		problem := err.(*postrider.EventError) //nolint:errorlint // made by problems, for an event and not for one of several
		text += problem.Field + " " + problem.Problem
	}
	return inbox.Malformed(fmt.Errorf("%s of type %.80q breaks its contract: %s", m, m.EventType(), text))
}

// problems returns a *postrider.EventError for each thing that is wrong.
func (c *Contract) problems(eventType string, payload []byte) (problems []error) {
	checks, known := c.checks[eventType]
	if !known && c.strict {
		return []error{&postrider.EventError{Field: "event_type", Problem: "has no contract: give it one, or allow others (contract.Config.Strict)"}}
	}
	for _, check := range checks {
		for _, err := range parts(check(payload)) {
			problems = append(problems, &postrider.EventError{Field: "payload", Problem: err.Error()})
		}
	}
	return problems
}

// parts takes joined errors apart.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
