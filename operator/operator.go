// Package operator is what people on call can ask of an outbox and do to it: status, single events, dead letters.
//
// Every write proves at write time the state that it starts from; an event that has moved on is left alone and is
// not counted. Nothing here publishes: a redrive makes events PENDING, and the relay sends them.
package operator

import (
	"context"
	"errors"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// ErrNotFound says that no event has the given id.
var ErrNotFound = errors.New("no such event")

// Store is what the command line and the dashboard ask of the database that holds the outbox.
type Store interface {
	// Status describes the outbox and its relays without scanning the table. relayName may be empty: then the
	// shards and relays of all names are counted.
	Status(ctx context.Context, relayName string) (Status, error)

	// Events lists events that match the filter, lowest id first.
	Events(ctx context.Context, f Filter) ([]Row, error)

	// Event finds one event by its event id or, when ref is a number, by its outbox id. It returns ErrNotFound.
	Event(ctx context.Context, ref string) (Row, error)

	// Attempts lists the failed attempts and operators' actions kept for an event, oldest first.
	Attempts(ctx context.Context, id string) ([]Attempt, error)

	// Retry makes PENDING events that wait for a retry due at once, keeping their count of attempts, and
	// DEAD ones PENDING with their attempts reset. It returns how many changed.
	Retry(ctx context.Context, f Filter, a Action) (int, error)

	// Redrive makes DEAD events PENDING with their attempts reset. Those that held their keys leave in outbox order, and before
	// the later events of their keys. It returns how many changed.
	Redrive(ctx context.Context, f Filter, a Action) (int, error)

	// Discard makes DEAD events DISCARDED. It returns how many changed. Action.Reason must not be empty.
	Discard(ctx context.Context, f Filter, a Action) (int, error)

	// DeadGroups groups the dead letters by cause, largest group first.
	DeadGroups(ctx context.Context, limit int) ([]DeadGroup, error)
}

// Filter selects events. The fields that are set must all match; the zero Filter matches every event.
type Filter struct {
	IDs           []string // outbox ids or event ids
	State         postrider.State
	AggregateType string
	AggregateID   string
	EventType     string
	Sink          string // at which the event became DEAD the last time
	ErrorContains string
	Limit         int    // at most this many events; 0 means no limit for writes and 100 for lists
	After         string // outbox id: only events behind it
}

// Action says who does something and why. It is kept with the event.
type Action struct {
	Who    string
	Reason string
}

// Row is one event with all its columns. Times are UTC.
type Row struct {
	ID               string            `json:"id"`
	EventID          string            `json:"event_id"`
	AggregateType    string            `json:"aggregate_type"`
	AggregateID      string            `json:"aggregate_id"`
	EventType        string            `json:"event_type"`
	AggregateVersion *int64            `json:"aggregate_version"`
	Topic            string            `json:"topic"`
	Payload          []byte            `json:"-"`
	ContentType      string            `json:"content_type"`
	Headers          map[string]string `json:"headers"`
	DedupKey         string            `json:"dedup_key"`
	Status           postrider.State   `json:"status"`
	RetryCount       int               `json:"retry_count"`
	NextAttemptAt    time.Time         `json:"next_attempt_at"`
	LastError        string            `json:"last_error"`
	Shard            *int              `json:"shard"`
	PublishedTo      string            `json:"published_to"`
	CreatedAt        time.Time         `json:"created_at"`
	PublishedAt      *time.Time        `json:"published_at"`
	Holds            bool              `json:"holds"` // the event is DEAD, and the others of its key wait for an operator
}

// Attempt is one entry of an event's history: a failed attempt, or something an operator did.
type Attempt struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"` // retry, dead, redriven, retried, discarded
	Error   string    `json:"error,omitempty"`
	By      string    `json:"by,omitempty"` // the relay's member id, or who acted
}

// DeadGroup is a set of dead letters with one cause.
type DeadGroup struct {
	Sink          string    `json:"sink"` // at which they became DEAD; empty when no sink was asked, as without a route, or when it is not known
	AggregateType string    `json:"aggregate_type"`
	EventType     string    `json:"event_type"`
	Error         string    `json:"error"` // the error with its variable parts (numbers, ids) replaced
	Count         int64     `json:"count"`
	Holding       int64     `json:"holding"` // how many of them hold their keys
	Oldest        time.Time `json:"oldest"`  // created_at of the oldest
	Sample        string    `json:"sample"`  // event id of one of them

	// Destination is the sink in whose own outbox they are; empty for those of the outbox itself.
	Destination string `json:"destination,omitempty"`
}

// Status describes an outbox and the relays that serve it.
type Status struct {
	States               map[postrider.State]int64 `json:"states"`
	Estimated            bool                      `json:"estimated"` // States is an estimate
	OldestPendingSeconds float64                   `json:"oldest_pending_seconds"`
	HeldKeys             int64                     `json:"held_keys"` // keys that wait because of a DEAD event
	Shards               Shards                    `json:"shards"`
	Relays               []Relay                   `json:"relays"`
	Sinks                []relay.SinkState         `json:"sinks"` // one entry per sink: the worst that a live relay reports
	KeyGroups            []KeyGroup                `json:"key_groups"`
	Destinations         []Destination             `json:"destinations"` // none unless events go to several sinks
}

// Destination is the outbox of one of several sinks that an event goes to.
type Destination struct {
	Sink                 string                    `json:"sink"`
	Table                string                    `json:"table"`
	States               map[postrider.State]int64 `json:"states"`
	Estimated            bool                      `json:"estimated"` // States is an estimate
	OldestPendingSeconds float64                   `json:"oldest_pending_seconds"`
	HeldKeys             int64                     `json:"held_keys"`
	KeyGroups            []KeyGroup                `json:"key_groups"`
}

// Shards counts the shards of a lease table.
type Shards struct {
	Total   int `json:"total"`
	Owned   int `json:"owned"`
	Free    int `json:"free"`
	Expired int `json:"expired"`
}

// Relay is one relay process as its heartbeat shows it.
type Relay struct {
	ID               string      `json:"id"`
	Name             string      `json:"name"`
	Host             string      `json:"host"`
	Version          string      `json:"version"`
	Claim            relay.Claim `json:"claim"`             // how it shares the work
	HeartbeatSeconds float64     `json:"heartbeat_seconds"` // age of the last heartbeat
	Shards           int         `json:"shards"`            // leases held
}

// KeyGroup is the backlog of one shard, for the shards in which something waits.
type KeyGroup struct {
	Shard                int     `json:"shard"`
	OldestPendingSeconds float64 `json:"oldest_pending_seconds"`
	OldestKey            string  `json:"oldest_key"`
	OldestEventID        string  `json:"oldest_event_id"`
	LastError            string  `json:"last_error,omitempty"` // of the oldest event
}
