package mongo

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// Labels that the server and the driver give to errors of transactions.
const (
	labelTransient     = "TransientTransactionError"      // nothing was written: run the transaction again
	labelUnknownCommit = "UnknownTransactionCommitResult" // it may have committed: ask for the commit again
)

// abortTimeout bounds the abort of a transaction whose context has ended.
const abortTimeout = 5 * time.Second

// atomically runs fn in a transaction, again and again until ctx ends while others are in the way. fn starts from
// scratch each time and passes its context on. Unlike the driver's WithTransaction it ends with ctx, also in the commit.
//
// On a server without transactions fn runs once, and its commands are written one by one.
func (s *Store) atomically(ctx context.Context, fn func(ctx context.Context) error) error {
	if !s.known().server.transactions {
		return fn(ctx)
	}
	session, err := s.events.Database().Client().StartSession()
	if err != nil {
		return err
	}
	defer endSession(ctx, session)
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := attempt(ctx, session, fn)
		if !hasLabel(err, labelTransient) || !pause(ctx, rand.N(wait)) {
			return err
		}
	}
}

func attempt(ctx context.Context, session *driver.Session, fn func(ctx context.Context) error) error {
	if err := session.StartTransaction(inOneMoment()); err != nil {
		return err
	}
	if err := fn(driver.NewSessionContext(ctx, session)); err != nil {
		return errors.Join(err, abort(ctx, session))
	}
	for {
		err := session.CommitTransaction(ctx)
		if !hasLabel(err, labelUnknownCommit) || ctx.Err() != nil {
			return err
		}
	}
}

// inOneMoment are the options of a transaction that sees one moment, and whose commit a majority of the members has.
func inOneMoment() *options.TransactionOptionsBuilder {
	return options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority()).
		SetReadPreference(readpref.Primary())
}

// abort leaves no transaction open, also when ctx has ended. The server ends by itself what it is not told about.
func abort(ctx context.Context, session *driver.Session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	return session.AbortTransaction(ctx)
}

func endSession(ctx context.Context, session *driver.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	session.EndSession(ctx)
}

// inSnapshot runs fn with a context in which all reads see the outbox at one moment, and only what a majority of the
// members has. On a server without transactions each read sees its own moment.
func (s *Store) inSnapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	if !s.known().server.transactions {
		return fn(ctx)
	}
	for {
		err := s.snapshot(ctx, fn)
		if server, ok := errors.AsType[driver.ServerError](err); !ok || !server.HasErrorCode(codeSnapshotUnavailable) || !pause(ctx, snapshotWait) {
			return err
		}
	}
}

// snapshotWait is a pause after which a moment that follows the last change of an index is there to be read.
const snapshotWait = 20 * time.Millisecond

func (s *Store) snapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	session, err := s.events.Database().Client().StartSession(options.Session().SetSnapshot(true))
	if err != nil {
		return err
	}
	defer endSession(ctx, session)
	return fn(driver.NewSessionContext(ctx, session))
}

// pause waits, and tells whether ctx goes on.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func hasLabel(err error, label string) bool {
	labeled, ok := errors.AsType[driver.LabeledError](err)
	return ok && labeled.HasErrorLabel(label)
}
