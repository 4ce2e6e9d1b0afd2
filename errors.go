package postrider

import (
	"fmt"
	"strings"
)

// EventError is one thing wrong with one event.
type EventError struct {
	Index   int    // which of the events given to Add, counted from 0
	Field   string // the column that the value was meant for
	Problem string // what is wrong, and what is allowed; it never contains payload, unless an error of Config.Validate does
}

func (e *EventError) Error() string {
	return fmt.Sprintf("event %d: %s %s", e.Index, e.Field, e.Problem)
}

// EventErrors is every thing wrong with the events given to Add, in their order. Nothing was written.
type EventErrors []*EventError

// errorsShown bounds the text of EventErrors; the list itself is complete.
const errorsShown = 10

func (e EventErrors) Error() string {
	var text strings.Builder
	for i, problem := range e {
		if i == errorsShown {
			fmt.Fprintf(&text, "; and %d more", len(e)-i)
			break
		}
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(problem.Error())
	}
	return text.String()
}

// Unwrap lets errors.As find a single EventError.
func (e EventErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, problem := range e {
		errs[i] = problem
	}
	return errs
}
