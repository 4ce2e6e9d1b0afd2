package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/postrider/postrider/relay"
)

// Causes of errors, to be asked for with errors.Is. Errors about missing or unfit tables are relay.ErrSchema.
var (
	ErrUnreachable = errors.New("the database cannot be reached")
	ErrDenied      = errors.New("the database refuses access")
	ErrFull        = errors.New("the database's disk is full")

	errBusy = errors.New("other transactions are in the way")
)

// Error is what the methods of Store return when the database fails.
type Error struct {
	Op    string // what was being done, such as "settle"
	Table string // the outbox table
	Cause error  // ErrUnreachable, ErrDenied, ErrFull, relay.ErrSchema, or nil when it is something else
	Err   error  // what exactly is wrong, mostly the driver's error
	Hint  string // what to do about it; may be empty
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s, outbox %s: ", e.Op, e.Table)
	if e.Cause != nil {
		text += e.Cause.Error() + ": "
	}
	text += e.Err.Error()
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns what is wrong and its cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

var hints = map[error]string{
	ErrUnreachable:  "is the database running, and does outbox.dsn lead to it?",
	ErrDenied:       "are user, password and database in outbox.dsn right? `postrider check` lists missing privileges",
	ErrFull:         "free space on its disk; nothing is lost meanwhile",
	relay.ErrSchema: "run `postrider init`",
}

// fail describes an error of the driver.
func (s *Store) fail(op string, err error) error {
	if _, described := errors.AsType[*Error](err); described {
		return err
	}
	cause := s.cause(err)
	hint := hints[cause]
	if errors.Is(cause, relay.ErrSchema) && s.mapping != nil {
		hint = "`postrider init` creates the side tables; `postrider check` compares the mapping with the table"
	}
	return &Error{Op: op, Table: s.config.Table, Cause: cause, Err: err, Hint: hint}
}

// unfit describes tables that this version cannot work with.
func (s *Store) unfit(op, hint, format string, args ...any) error {
	return &Error{Op: op, Table: s.config.Table, Cause: relay.ErrSchema, Err: fmt.Errorf(format, args...), Hint: hint}
}

func (s *Store) cause(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return s.dialect.classify(err)
}

// classifyNetwork knows the errors of a connection that broke or was never made.
func classifyNetwork(err error) error {
	var network net.Error
	switch {
	case errors.As(err, &network),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed):
		return ErrUnreachable
	}
	return nil
}
