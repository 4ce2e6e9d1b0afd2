package mongo

import (
	"context"
	"errors"
	"fmt"

	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/postrider/postrider/relay"
)

// Causes of errors, to be asked for with errors.Is. Errors about missing or unfit collections are relay.ErrSchema.
var (
	ErrUnreachable = errors.New("the database cannot be reached")
	ErrDenied      = errors.New("the database refuses access")
	ErrFull        = errors.New("the database's disk is full")

	// ErrNoTransactions says that the server is neither part of a replica set nor of a sharded cluster.
	ErrNoTransactions = errors.New("the server has no transactions")
)

// Error is what the methods of Store return when the database fails.
type Error struct {
	Op         string // what was being done, such as "settle"
	Collection string // the outbox
	Cause      error  // one of the errors above, relay.ErrSchema, or nil when it is something else
	Err        error  // what exactly is wrong, mostly the driver's error
	Hint       string // what to do about it; may be empty
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s, outbox %s: ", e.Op, e.Collection)
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
	ErrUnreachable:    "is the database running, and does outbox.dsn lead to it?",
	ErrDenied:         "are user, password and database in outbox.dsn right? `postrider check` lists missing privileges",
	ErrFull:           "free space on its disk; nothing is lost meanwhile",
	ErrNoTransactions: "make it a replica set, of one member at least: start mongod with --replSet and run rs.initiate()",
	relay.ErrSchema:   "run `postrider init`",
}

// fail describes an error of the driver.
func (s *Store) fail(op string, err error) error {
	if _, described := errors.AsType[*Error](err); described || err == nil {
		return err
	}
	cause := classify(err)
	return &Error{Op: op, Collection: s.events.Name(), Cause: cause, Err: err, Hint: hints[cause]}
}

// unfit describes collections that this version cannot work with.
func (s *Store) unfit(op, hint, format string, args ...any) error {
	return &Error{Op: op, Collection: s.events.Name(), Cause: relay.ErrSchema, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Codes of the server's errors.
const (
	codeUnauthorized         = 13
	codeAuthenticationFailed = 18
	codeNamespaceExists      = 48
	codeWriteConflict        = 112
	codeSnapshotUnavailable  = 246
	codeNoSuchTransaction    = 251
	codeTransactionTooLarge  = 257
	codeTransactionTooLong   = 290
	codeOutOfDiskSpace       = 14031
)

// classify finds the cause of an error of the driver.
func classify(err error) error {
	server, isServer := errors.AsType[driver.ServerError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return nil
	case isSelection(err):
		return ErrUnreachable
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	case isServer && (server.HasErrorCode(codeUnauthorized) || server.HasErrorCode(codeAuthenticationFailed)):
		return ErrDenied
	case isServer && server.HasErrorCode(codeOutOfDiskSpace):
		return ErrFull
	case driver.IsNetworkError(err), driver.IsTimeout(err), isServer && server.HasErrorLabel("RetryableWriteError"):
		return ErrUnreachable
	}
	return nil
}

// isSelection tells whether the driver found no server to send a command to.
func isSelection(err error) bool {
	_, ok := errors.AsType[topology.ServerSelectionError](err)
	return ok
}
