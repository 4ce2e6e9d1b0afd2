// Package storetest is the conformance suite of relay.Store and operator.Store. Every store of Postrider passes it;
// run it on your own:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness { ... })
//	}
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// Harness is one fresh, empty outbox that nobody else uses, and the ways in which the suite touches it.
type Harness struct {
	Store    relay.Store
	Operator operator.Store

	// Shards is the number of shards that the outbox was set up with, at least 2 and at most 16.
	Shards int

	// Init creates the outbox's tables, as it was done for this Harness already.
	Init func(ctx context.Context) error

	// Begin starts a producer's transaction.
	Begin func(t *testing.T) Tx

	// SerialWriters says that an open producer's transaction keeps all other writers waiting, as in SQLite: then
	// events commit in the order of their ids, and the suite opens no second transaction meanwhile.
	SerialWriters bool
}

// Tx is a producer's transaction, by the SQL that the documentation gives to producers. Its methods end the test when
// they fail.
type Tx interface {
	// Add inserts an event and returns its outbox id, or "" when its deduplication key was there already.
	Add(t *testing.T, e Event) string
	Commit(t *testing.T)
	Rollback(t *testing.T)
}

// Event is what a producer inserts. Zero fields are left out of the INSERT, unless the table requires them; then the
// suite has filled them.
type Event struct {
	EventID       string
	AggregateType string
	Key           string // the aggregate id
	EventType     string
	Version       *int64
	Topic         string
	Payload       []byte // JSON
	ContentType   string
	Headers       string // as text, a JSON object
	DedupKey      string
	DueIn         time.Duration // next_attempt_at, from the database's now
}

// Run runs the suite. open returns a new Harness for each test; what it opens it closes by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, group := range []map[string]func(*fixture){leaseTests, readTests, settleTests, cleanTests, operatorTests} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				test(&fixture{T: t, Harness: open(t), ctx: ctx})
			})
		}
	}
}
