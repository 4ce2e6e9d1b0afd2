package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a configuration file.
type Problem struct {
	// File is the name under which the file was read.
	File string
	// Line and Column count from 1. A key that is missing is reported where
	// the mapping that lacks it begins.
	Line, Column int
	// Path names the key, such as relay.poll.min or routes[0].topic. It is
	// empty for a mistake of the file as a whole.
	Path string
	// Message says what is wrong. It quotes what the file says, never the
	// value of an environment variable and never a secret.
	Message string
	// Hint says what to do; it may be empty.
	Hint string
}

// String gives the problem as one line: file:line:col: path: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Error is what [Load] and [Parse] return for a file with mistakes: all of
// them, in the order of the file. There is at least one.
type Error struct {
	Problems []Problem
}

// Error gives one problem per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// asError gives nil when there is no problem, else all of them by position.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Problems: problems}
}
