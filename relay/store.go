package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// Store is what the relay asks of the database that holds the outbox.
//
// Every comparison with time inside a Store uses the database's clock; durations travel, moments do not. Every
// method returns within its context, and none leaves a transaction open when it returns. A Store is safe for
// concurrent use. storetest holds the conformance suite.
type Store interface {
	// Renew records the heartbeat, prolongs those of the held leases that are still ours (same owner, same
	// epoch) and returns the whole lease table of the relay name as it stands afterwards. Missing shard rows
	// are created. A relay name that already has another number of shards is refused with a *ShardCountError;
	// a table that a live relay of another name works on, with a *NameConflictError; one that a live relay works on
	// which shares the work in another way, with a *ClaimConflictError.
	Renew(ctx context.Context, beat Heartbeat, held []Lease) (LeaseTable, error)

	// Acquire takes shards that are free or whose lease ran out. seen holds each shard with the epoch at which
	// the caller saw it; a shard that has moved on since is left alone. It returns what was taken, at the
	// epochs that now hold (seen epoch + 1).
	Acquire(ctx context.Context, m Member, seen []Lease) ([]Lease, error)

	// Release gives up leases that are still ours; others are left alone.
	Release(ctx context.Context, m Member, held []Lease) error

	// Leave removes the member from the live relays. Its leases are not released by it.
	Leave(ctx context.Context, m Member) error

	// Read returns events that may be sent now, in outbox order within each shard. See ReadRequest.
	Read(ctx context.Context, req ReadRequest) ([]Event, error)

	// Settle writes outcomes back. Each settlement proves its lease (owner and epoch) and the state PENDING in
	// the statement or transaction that writes it; one that proves neither changes nothing. The ids that were
	// written come back; an id that is missing was lost to another owner or had left PENDING. With an error, the
	// ids that were written before it come back, and of the others nothing is known.
	//
	// It records the versions that have left: those of events that are PUBLISHED or DEAD.
	Settle(ctx context.Context, m Member, settlements []Settlement) (settled []string, err error)

	// Clean deletes up to limit old published events. See CleanRequest.
	Clean(ctx context.Context, req CleanRequest) (CleanResult, error)

	// Backlog measures what waits, without scanning the table.
	Backlog(ctx context.Context) (Backlog, error)
}

// Tidier is a Store that keeps records beside its outbox, and can find those whose events are gone.
type Tidier interface {
	// Tidy deletes some of these records, holds of keys among them whose event is no longer DEAD. It is called now and then
	// by one relay that has no retention; with one, Clean does it.
	Tidy(ctx context.Context) error
}

// JobStepper is a Store that keeps jobs over many events, such as a redrive of all dead letters of one cause.
type JobStepper interface {
	// StepJobs carries out a part of each job that is due and returns how long to wait until one is due again: a negative
	// time when there is none. All relays call it, again and again: those that find nothing to do must cost next to nothing.
	StepJobs(ctx context.Context) (next time.Duration, err error)
}

// Member identifies one relay process among those that share the work under one relay name.
type Member struct {
	Name     string        // relay name: members of one name share the shards
	ID       string        // unique for each run of each process
	Host     string        // where it runs, for people
	Version  string        // its build, for people
	Claim    Claim         // how the members of the name share the work
	Shards   int           // how many shards the name has
	LeaseTTL time.Duration // how long a lease lasts after each renewal
}

// Heartbeat is what a relay writes about itself with every renewal.
type Heartbeat struct {
	Member
	Sinks []SinkState // what the relay knows of its sinks, so that status can show it from anywhere
}

// SinkState tells how one relay sees one of its sinks.
type SinkState struct {
	Name      string    `json:"name"`
	Type      string    `json:"type"`
	Circuit   string    `json:"circuit"` // closed, open or half-open
	Since     time.Time `json:"since"`   // when the circuit came into this state, by the relay's clock, for people only
	LastError string    `json:"last_error,omitempty"`
}

// Lease is the ownership of one shard at one epoch.
type Lease struct {
	Shard int
	Epoch int64
}

// ShardLease is one row of the lease table.
type ShardLease struct {
	Lease
	Owner   string // member id; empty when free
	Expired bool   // the lease ran out by the database's clock
}

// LeaseTable is the state of all shards of a relay name at one moment.
type LeaseTable struct {
	Shards []ShardLease
	Live   []string // ids of the members whose heartbeat is fresher than their lease, in ascending order
}

// ReadRequest says which events a read may return: PENDING, due by the database's clock, in one of Shards, not
// in InFlight, of none of the Skip kinds, of none of the SkipKeys, of a key that has no earlier event waiting for a retry
// (other than a higher version of the same aggregate), and of no held key.
//
// A key is held while any of its events is DEAD and was settled with Settlement.HoldsKey. Then none of its events is
// returned at all, whatever its place or version. Once an operator has redriven or discarded the last event that holds it, all
// of them may be returned again, in their order: no event before one of the same key that was redriven and comes earlier in
// the outbox.
//
// A read looks at each shard from its lowest PENDING id in one snapshot. It never continues from the last id that it
// saw: a lower id can commit after a higher one. A store may start higher where it can prove that nothing lower waits
// or can still appear; what operators make PENDING again without its having held its key, or what was given an id
// long before it is committed, may then be seen a few seconds late.
type ReadRequest struct {
	Shards   []int    // in the order in which they should be served; never empty
	InFlight []string // ids that the caller already holds
	Skip     []Kind   // kinds whose sink takes nothing at present
	SkipKeys []string // keys of which the caller can take no more at present
	PerShard int      // at most this many events of one shard; at least 1
	Limit    int      // at most this many events in all; at least 1
	MaxBytes int      // stop after the event with which Event.Size reaches this sum, so at least one event comes
}

// Kind is what routing depends on.
type Kind struct {
	AggregateType string
	EventType     string
}

// Event is one row of the outbox as the relay reads it.
//
// The versions of one aggregate leave in order and without a gap: After is the version before the event's own, unless
// that or a higher one has left (it was published, or is DEAD), or it waits earlier in the outbox. Of an aggregate of
// which nothing has left yet, the lowest version that waits needs none before it.
type Event struct {
	ID               string // the row's identity in its table, opaque to the relay
	EventID          string // the identity that sinks and consumers see
	Shard            int
	AggregateType    string
	AggregateID      string
	PartitionKey     string // the key, where that is not the aggregate id; else empty
	EventType        string
	AggregateVersion *int64 // nil when not set
	After            *int64 // the version that must leave first, and has not; nil when the event may leave now
	Topic            string // empty when the route decides
	Payload          []byte
	ContentType      string
	Headers          map[string]string
	RetryCount       int
	Age              time.Duration // since created_at, by the database's clock at the read

	// Malformed is set when the row could not be decoded (for example headers that are no JSON object of
	// strings). Such an event is never sent; it becomes DEAD with this reason.
	Malformed error
}

// Kind returns what routing looks at.
func (e *Event) Kind() Kind { return Kind{e.AggregateType, e.EventType} }

// Key returns what the event's order and partition go by.
func (e *Event) Key() string { return cmp.Or(e.PartitionKey, e.AggregateID) }

// Size is an estimate in bytes of the memory that the event holds.
func (e *Event) Size() int {
	n := len(e.Payload) + len(e.AggregateType) + len(e.AggregateID) + len(e.PartitionKey) + len(e.EventType) + len(e.Topic) + eventOverhead
	for k, v := range e.Headers {
		n += len(k) + len(v)
	}
	return n
}

// eventOverhead stands for the struct, its strings' headers and its place in queues and indexes.
const eventOverhead = 512

// Settlement is the outcome of one event, to be written to its row.
type Settlement struct {
	ID    string
	Lease Lease           // the lease under which the event was read
	State postrider.State // StatePublished, StateDead, or StatePending for a retry

	PublishedTo string        // StatePublished: broker coordinates
	RetryCount  int           // StatePending and StateDead: the new count
	RetryAfter  time.Duration // StatePending: due this long after the database's now
	Held        bool          // StatePending: nothing was tried, the event waits for another one; not kept as an attempt
	HoldsKey    bool          // StateDead: the events of the key wait until an operator has redriven or discarded this one; row claims ignore it
	Error       string        // StatePending and StateDead: what went wrong; the store cuts and cleans it to fit
	Sink        string        // StatePending and StateDead: the name of the sink at which it did; empty when none was asked
}

// holdsBack says that the store keeps the later events of the key back once this is written.
func (s *Settlement) holdsBack() bool { return s.State == postrider.StatePending || s.HoldsKey }

// CleanRequest asks for one chunk of cleaning.
type CleanRequest struct {
	After     string        // walk on behind this id; empty starts at the lowest
	Retention time.Duration // delete what was published longer ago than this
	Limit     int           // look at no more than this many rows
}

// CleanResult says what one chunk of cleaning did.
type CleanResult struct {
	Deleted int
	Last    string // the highest id looked at, for the next CleanRequest.After
	Done    bool   // nothing old enough lies behind Last
}

// Backlog is what waits in an outbox.
type Backlog struct {
	Pending       int64         // events PENDING, no more than PendingCap
	Capped        bool          // there are more than Pending
	Dead          int64         // events DEAD, no more than PendingCap
	OldestPending time.Duration // age of the oldest event that is due or has failed; 0 when there is none
}

// PendingCap bounds what Backlog counts, so that measuring a large backlog stays cheap.
const PendingCap = 100_000

// ShardCountError says that the relay name is set up with another number of shards than the member has.
type ShardCountError struct {
	Relay string // relay name
	Have  int    // shards that the tables have
	Want  int    // shards that the member was configured with
}

func (e *ShardCountError) Error() string {
	return fmt.Sprintf("relay %q works with %d shards, but relay.shards is %d here: all relays of one name must have the same number; set relay.shards to %d",
		e.Relay, e.Have, e.Want, e.Have)
}

// NameConflictError says that a live relay of another name works on the same outbox table. Two names do not share
// the work: each would publish every event.
type NameConflictError struct {
	Name  string // the name that was refused
	Other string // the name that is at work
	Table string
}

func (e *NameConflictError) Error() string {
	return fmt.Sprintf("outbox table %s is served by live relays named %q; relay %q would publish every event again: give all relays of a table one relay.name",
		e.Table, e.Other, e.Name)
}

// ClaimConflictError says that a relay would share the work in another way than what is at work on the outbox table.
// They do not respect each other's leases and claims: both would publish every event.
type ClaimConflictError struct {
	Name  string // the relay name that was refused
	Claim Claim  // how it would share the work
	Other Claim  // how the table's live relays, or the store that it was given, share it
	Table string
}

func (e *ClaimConflictError) Error() string {
	return fmt.Sprintf("relay %q has claim: %s, but outbox table %s is served with claim: %s, and events would be published twice: set relay.claim to %s, or stop all relays of the table before you change it",
		e.Name, e.Claim, e.Table, e.Other, e.Other)
}

// ErrSchema says that the tables are missing, older or newer than this version, or shaped differently. Errors of
// stores wrap it with what is wrong and which command mends it.
var ErrSchema = errors.New("the outbox tables do not fit this version")
