// Package storetest is the conformance suite of relay.Store and operator.Store. Every store of Postrider passes it;
// run it on your own:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness { ... })
//	}
package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// Harness is one fresh, empty outbox that nobody else uses, and the ways in which the suite touches it.
type Harness struct {
	Store    relay.Store
	Operator operator.Store
	Jobs     operator.JobStore // only RunJobs asks for it

	// Shards is the number of shards that the outbox was set up with, at least 2 and at most 16.
	Shards int

	// Init creates the outbox's tables, as it was done for this Harness already.
	Init func(ctx context.Context) error

	// Begin starts a producer's transaction.
	Begin func(t *testing.T) Tx

	// Claims returns a store for one more relay that claims rows of the outbox (relay.ClaimRow). Only RunClaims asks for it.
	Claims func() relay.Store

	// SerialWriters says that an open producer's transaction keeps all other writers waiting, as in SQLite: then
	// events commit in the order of their ids, and the suite opens no second transaction meanwhile.
	SerialWriters bool

	// Lacks are what the outbox cannot do because of its table, such as one that somebody else designed, or because of its
	// server. The tests of it are left out.
	Lacks []Feature
}

// Feature is something that some outbox tables cannot do.
type Feature string

// The features that an outbox may lack.
const (
	Columns  Feature = "columns"  // columns for all that an Event has
	Schedule Feature = "schedule" // events that are not due at once
	History  Feature = "history"  // what was published stays, with the time
	Age      Feature = "age"      // when events were added
	Strict   Feature = "strict"   // headers that are not strings make an event malformed
	Atomic   Feature = "atomic"   // what one call writes is written as a whole or not at all
)

// needs are the features that tests need, by their names.
var needs = map[string][]Feature{
	"Read returns every column as it was written":                                     {Columns},
	"Read returns the defaults":                                                       {Columns},
	"Read gives an event with malformed headers its reason":                           {Columns, Strict},
	"A second add with a deduplication key is dropped":                                {Columns},
	"Event shows every column":                                                        {Columns, Schedule},
	"Events applies every part of the filter":                                         {Columns},
	"Read leaves out kinds that take nothing, and counts limits without them":         {Columns},
	"Read holds a scheduled event back, and its key does not wait":                    {Schedule},
	"Backlog counts what waits and how old it is":                                     {Schedule, Age},
	"Redrive, Discard and Retry leave other states alone":                             {Schedule, History},
	"Settle writes published events":                                                  {History},
	"Settle writes retries and deaths, and keeps them as attempts":                    {Age},
	"Settle clears the error of an event that was published after all":                {History},
	"Settle clamps the delay of a retry":                                              {Age},
	"Read returns nothing that left PENDING":                                          {History},
	"Clean deletes only what was published before the retention":                      {History},
	"Clean walks on over chunks in which nothing is old enough":                       {History},
	"Clean looks at no more rows than the limit":                                      {History},
	"Clean is done at the first chunk that is younger than the retention":             {Age},
	"Read tells no version to wait for when versions follow one another":              {Columns},
	"Read tells which version is missing":                                             {Columns},
	"Read tells the lowest version that waits to go first":                            {Columns},
	"Read keeps the versions of aggregates with one key apart":                        {Columns},
	"Settle lets an event wait without an attempt":                                    {Columns},
	"A missing version passes the events that wait for it":                            {Columns},
	"A version has left also when its event is DEAD, but not while it is tried again": {Columns},
	"A stale settle lets no version leave":                                            {Columns},
	"A held event is the oldest that waits":                                           {Columns},
	"Status describes the outbox and its relays":                                      {Age},
	"Read claims what it returns":                                                     {Columns},
	"Read leaves a scheduled event until it is due":                                   {Schedule},
	"Settle writes each outcome under its claim":                                      {Columns},
	"Settle records the versions that left":                                           {Columns},
	"A held key keeps lower versions of its aggregate as well":                        {Columns},
	"A step that is cut short leaves all or nothing":                                  {Atomic},
	"What waits behind a held key is the oldest":                                      {Age},
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
	for _, group := range []map[string]func(*fixture){leaseTests, readTests, settleTests, versionTests, cleanTests, operatorTests, holdTests} {
		runGroup(t, group, open)
	}
}

// RunClaims runs the suite of row claims, like Run.
func RunClaims(t *testing.T, open func(t *testing.T) Harness) {
	runGroup(t, claimTests, open)
	runGroup(t, claimEndTests, open)
}

// RunJobs runs the suite of stored jobs, like Run.
func RunJobs(t *testing.T, open func(t *testing.T) Harness) {
	runGroup(t, jobTests, open)
	runGroup(t, jobStepTests, open)
}

func runGroup(t *testing.T, group map[string]func(*fixture), open func(t *testing.T) Harness) {
	for name, test := range group {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			f := &fixture{T: t, Harness: open(t), ctx: ctx}
			if slices.ContainsFunc(needs[name], func(n Feature) bool { return slices.Contains(f.Lacks, n) }) {
				return
			}
			test(f)
		})
	}
}
