package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
)

// Handler applies a batch and returns one result for each message, in the order of the batch. Messages of one key stand in
// order. Once one of a key was neither applied nor a duplicate, its later ones of the batch are not applied: they come back
// with inbox.ErrSkipped. The class of each other error (inbox.ClassOf) says what it means for the message. It is called
// concurrently, but never for two messages of one key at a time. ctx ends when an orderly stop has waited for long enough.
//
// A panic is a failure of the message: a batch that panics, or that gives a wrong number of results, is handled again one by
// one, so effects must be such that they may be repeated, which those of package inbox are.
type Handler func(ctx context.Context, batch []inbox.Message) []inbox.Result

// Config says how a Consumer works. Name, Source and Handler must be set, and Sink unless nothing can go to a retry or a
// dead-letter topic; every other zero value means the default that its comment gives.
type Config struct {
	Name    string // of the consumer, as in its receipts: it stands in the headers of dead letters and in the parking table
	Source  Source
	Handler Handler

	// Sink writes to the retry and dead-letter topics of the Source's broker. The caller closes Source and Sink after Run has
	// returned.
	Sink relay.Sink

	Policy   Policy            // of every event type that has none of its own
	Policies map[string]Policy // by event type

	// Types are the event types that the consumer knows; others are malformed. Empty, the Handler gets every type.
	Types []string

	// Parking keeps parked messages; package parking has it for SQL databases.
	Parking Parking

	Workers          int // calls of the Handler at the same time; default 8
	Batch            int // most messages of one call; default 100
	MaxInFlight      int // most messages in hand, fetched and not finished; default 8 * Workers * Batch
	MaxInFlightBytes int // most bytes of messages in hand, which the messages of one fetch may exceed; default 64 MiB

	// LaneBuffer is how many messages of one lane may be in hand before it is paused, so that one that is stuck behind a key
	// does not take the room of the others; default MaxInFlight / 4, at least 1. RetryBuffer is the same for messages that wait for
	// their time on a retry topic; default 64, at most LaneBuffer. A fetch, of at most Batch messages, may exceed them once. As
	// many lanes as fit into MaxInFlight can be stuck before the others wait too.
	LaneBuffer  int
	RetryBuffer int

	PublishTimeout time.Duration // of a write to the retry and dead-letter topics; default 10s
	Grace          time.Duration // a stop waits this long for what is being applied; default 20s

	ParkingPoll  time.Duration // pause between two looks for parked messages that are due; default 1s
	ParkingLease time.Duration // how long a call of the Handler for a parked key may take, and a dead process keeps it; default 1m

	Logger *slog.Logger // default: discards
	Hooks  Hooks
}

const (
	defaultWorkers        = 8
	defaultBatch          = 100
	defaultBytes          = 64 << 20
	defaultRetryBuffer    = 64
	defaultPublishTimeout = 10 * time.Second
	defaultGrace          = 20 * time.Second
	defaultParkingPoll    = time.Second
	defaultParkingLease   = time.Minute
)

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) withDefaults() Config {
	setDefault(&c.Workers, defaultWorkers)
	setDefault(&c.Batch, defaultBatch)
	setDefault(&c.MaxInFlight, 8*c.Workers*c.Batch)
	setDefault(&c.MaxInFlightBytes, defaultBytes)
	setDefault(&c.LaneBuffer, max(1, c.MaxInFlight/4))
	setDefault(&c.RetryBuffer, min(defaultRetryBuffer, c.LaneBuffer))
	setDefault(&c.PublishTimeout, defaultPublishTimeout)
	setDefault(&c.Grace, defaultGrace)
	setDefault(&c.ParkingPoll, defaultParkingPoll)
	setDefault(&c.ParkingLease, defaultParkingLease)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Policy = c.Policy.withDefaults()
	policies := make(map[string]Policy, len(c.Policies))
	for eventType, p := range c.Policies {
		policies[eventType] = p.withDefaults()
	}
	c.Policies = policies
	return c
}

// validate reports every mistake of a configuration whose defaults are filled in.
func (c Config) validate() error {
	var problems []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	require(c.Name != "", "Name is missing")
	require(c.Source != nil, "Source is missing")
	require(c.Handler != nil, "Handler is missing")
	require(c.Workers > 0, "Workers is %d, must be above 0", c.Workers)
	require(c.Batch > 0, "Batch is %d, must be above 0", c.Batch)
	require(c.MaxInFlight > 0, "MaxInFlight is %d, must be above 0", c.MaxInFlight)
	require(c.MaxInFlightBytes > 0, "MaxInFlightBytes is %d, must be above 0", c.MaxInFlightBytes)
	require(c.LaneBuffer > 0 && c.LaneBuffer <= c.MaxInFlight, "LaneBuffer is %d, must be above 0 and not above MaxInFlight (%d)", c.LaneBuffer, c.MaxInFlight)
	require(c.RetryBuffer > 0 && c.RetryBuffer <= c.LaneBuffer, "RetryBuffer is %d, must be above 0 and not above LaneBuffer (%d)", c.RetryBuffer, c.LaneBuffer)
	require(c.PublishTimeout > 0, "PublishTimeout is %v, must be above 0", c.PublishTimeout)
	require(c.Grace > 0, "Grace is %v, must be above 0", c.Grace)
	require(c.ParkingPoll > 0 && c.ParkingLease > 0, "ParkingPoll (%v) and ParkingLease (%v) must be above 0", c.ParkingPoll, c.ParkingLease)
	check := func(place string, p Policy) {
		problems = append(problems, p.validate(place))
		require(c.Sink != nil || !p.writes(), "Sink is missing, but %s writes to retry or dead-letter topics", place)
		require(c.Parking != nil || p.Retry != RetryPark, "Parking is missing, but %s.Retry is %q", place, RetryPark)
	}
	check("Policy", c.Policy)
	for _, eventType := range slices.Sorted(maps.Keys(c.Policies)) {
		check(fmt.Sprintf("Policies[%q]", eventType), c.Policies[eventType])
	}
	return errors.Join(problems...)
}

// policyOf returns the policy of an event type.
func (c Config) policyOf(eventType string) Policy {
	if p, ok := c.Policies[eventType]; ok {
		return p
	}
	return c.Policy
}
