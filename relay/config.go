package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"
)

// Config says how a relay works. Store, Name, Sinks and Routes must be set; every other zero value means the
// default that its comment gives.
type Config struct {
	Store  Store
	Name   string // relay name: relays with one name share the work
	Sinks  []NamedSink
	Routes []Route

	// Restore, when set, is called for every event that was read, before it is routed. It makes the event that producers added of
	// one that its outbox keeps in another form, as sink/outbox does. It leaves ID, Shard and what Key returns as they are.
	Restore func(*Event)

	Claim Claim // how the relays of one name share the work; default ClaimShard

	Host    string // shown to people; default: the host name
	Version string // shown to people

	Shards int           // number of shards of the relay name, the same for all its relays; default 64
	Lease  time.Duration // how long a dead relay's shards wait for their new owner; default 30s, at least 1s

	Batch            int // most events of one read, and of one Publish call unless the sink says otherwise; default 500
	MaxInFlight      int // most events between read and settle; default 8 * Batch
	MaxInFlightBytes int // most bytes of events between read and settle, one event may exceed it; default 16 MiB

	PollMin time.Duration // wait between reads while events keep coming; default 5ms
	PollMax time.Duration // longest wait between reads when none come; default 250ms

	Retry RetryPolicy // default: 1s, 5s, 30s, 2m, then DEAD, with 20 % jitter

	// OnDead says what becomes of the key of an event that is DEAD, for routes that do not say it and events without a
	// route. Default OnDeadContinue. Row claims know no hold.
	OnDead OnDead

	// VersionGap is how long a key waits for a missing aggregate version, counted by each relay from when it met the gap.
	// Then the key goes on without it. 0 means that it waits until the version has left. Row claims know no versions.
	VersionGap time.Duration

	PublishTimeout time.Duration // a Publish call gets this long, less when a lease ends sooner; default 10s, below Lease
	Grace          time.Duration // a stop waits this long for what is in flight; default 20s

	Retention  time.Duration // published events are deleted after this time; 0 keeps them
	CleanEvery time.Duration // pause between two cleanings; default 1m
	CleanChunk int           // rows that one cleaning statement looks at; default 1000

	Logger *slog.Logger // default: discards
	Hooks  Hooks
}

// Claim says how the relays of one name share the work. All of them must do it in the same way.
type Claim string

// The ways to share the work.
const (
	// ClaimShard leases shards of the keys. The events of a key leave in order.
	ClaimShard Claim = "shard"

	// ClaimRow claims events one by one, which needs a Store that does so, such as sqlstore's RowClaims. Any relay may
	// send any event: an event that fails holds up no other, a hot key is spread over all relays, and no order is
	// promised, nor do aggregate versions wait for each other. What needs order needs ClaimShard. It costs one more
	// write for each event. Config.Shards has no meaning for it.
	ClaimRow Claim = "row"
)

// NamedSink is a sink with the name that routes call it by. The caller closes the sink after Run has returned.
type NamedSink struct {
	Name        string
	Type        string // kafka, nats, ... for people
	Sink        Sink
	Concurrency int // Publish calls at the same time; default 2
	Batch       int // most events of one Publish call; default Config.Batch
}

const (
	defaultShards         = 64
	defaultBatch          = 500
	defaultBatchesAhead   = 8
	defaultBytes          = 16 << 20
	defaultLease          = 30 * time.Second
	minLease              = time.Second
	defaultPollMin        = 5 * time.Millisecond
	defaultPollMax        = 250 * time.Millisecond
	defaultPublishTimeout = 10 * time.Second
	defaultGrace          = 20 * time.Second
	defaultCleanEvery     = time.Minute
	defaultCleanChunk     = 1000
	defaultConcurrency    = 2
)

// DefaultRetry is the retry policy of a Config without one.
func DefaultRetry() RetryPolicy {
	return RetryPolicy{
		Schedule: []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute},
		Jitter:   0.2,
	}
}

func (c Config) withDefaults() Config {
	if c.Host == "" {
		c.Host, _ = os.Hostname() // only shown to people
	}
	setDefault(&c.Claim, ClaimShard)
	setDefault(&c.OnDead, OnDeadContinue)
	setDefault(&c.Shards, defaultShards)
	setDefault(&c.Lease, defaultLease)
	setDefault(&c.Batch, defaultBatch)
	setDefault(&c.MaxInFlight, defaultBatchesAhead*c.Batch)
	setDefault(&c.MaxInFlightBytes, defaultBytes)
	setDefault(&c.PollMin, defaultPollMin)
	setDefault(&c.PollMax, defaultPollMax)
	setDefault(&c.PublishTimeout, min(defaultPublishTimeout, c.Lease/2))
	setDefault(&c.Grace, defaultGrace)
	setDefault(&c.CleanEvery, defaultCleanEvery)
	setDefault(&c.CleanChunk, defaultCleanChunk)
	if len(c.Retry.Schedule) == 0 && c.Retry.Attempts == 0 {
		c.Retry = DefaultRetry()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	sinks := make([]NamedSink, len(c.Sinks))
	for i, s := range c.Sinks {
		setDefault(&s.Concurrency, defaultConcurrency)
		setDefault(&s.Batch, c.Batch)
		sinks[i] = s
	}
	c.Sinks = sinks
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports every mistake of a configuration whose defaults are filled in.
func (c Config) validate() error {
	var problems []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	require(c.Store != nil, "Store is missing")
	require(c.Name != "", "Name is missing: relays with one name share the work")
	require(len(c.Routes) > 0, "Routes is empty: every event would become DEAD")
	require(c.Claim == ClaimShard || c.Claim == ClaimRow, "Claim is %q, must be %q or %q", c.Claim, ClaimShard, ClaimRow)
	require(c.Shards > 0, "Shards is %d, must be above 0", c.Shards)
	require(c.Lease >= minLease, "Lease is %v, must be at least %v", c.Lease, minLease)
	require(c.Batch > 0, "Batch is %d, must be above 0", c.Batch)
	require(c.MaxInFlight >= c.Batch && c.MaxInFlight >= len(c.Sinks),
		"MaxInFlight is %d, must be at least Batch (%d) and the number of sinks (%d)", c.MaxInFlight, c.Batch, len(c.Sinks))
	require(c.MaxInFlightBytes > 0, "MaxInFlightBytes is %d, must be above 0", c.MaxInFlightBytes)
	require(c.PollMin > 0 && c.PollMin <= c.PollMax, "PollMin (%v) must be above 0 and not above PollMax (%v)", c.PollMin, c.PollMax)
	require(c.PublishTimeout > 0 && c.PublishTimeout < c.Lease, "PublishTimeout (%v) must be above 0 and below Lease (%v)", c.PublishTimeout, c.Lease)
	require(c.VersionGap >= 0, "VersionGap is %v, must not be negative", c.VersionGap)
	require(c.VersionGap == 0 || c.Claim == ClaimShard, "VersionGap is %v, but Claim is %q, which keeps no order: use %q", c.VersionGap, c.Claim, ClaimShard)
	require(slices.Contains(onDeads, c.OnDead), "OnDead is %q, must be one of %q", c.OnDead, onDeads)
	require(!c.holdsKeys() || c.Claim == ClaimShard,
		"OnDead is %q, but Claim is %q, which keeps no order: use %q", OnDeadHold, c.Claim, ClaimShard)
	require(c.Grace > 0, "Grace is %v, must be above 0", c.Grace)
	require(c.Retention >= 0, "Retention is %v, must not be negative", c.Retention)
	require(c.CleanEvery > 0 && c.CleanChunk > 0, "CleanEvery (%v) and CleanChunk (%d) must be above 0", c.CleanEvery, c.CleanChunk)
	problems = append(problems, checkRetry("Retry", c.Retry), checkSinks(c.Sinks))
	for i, s := range c.Sinks {
		require(s.Concurrency > 0, "Sinks[%d]: Concurrency is %d, must be above 0", i, s.Concurrency)
		require(s.Batch > 0, "Sinks[%d]: Batch is %d, must be above 0", i, s.Batch)
	}
	return errors.Join(problems...)
}

// holdsKeys says whether any DEAD event can hold its key.
func (c Config) holdsKeys() bool {
	return c.OnDead == OnDeadHold || slices.ContainsFunc(c.Routes, func(r Route) bool { return r.OnDead == OnDeadHold })
}

func checkSinks(sinks []NamedSink) error {
	var problems []error
	if len(sinks) == 0 {
		problems = append(problems, errors.New("Sinks is empty: there is nowhere to send events"))
	}
	seen := make(map[string]bool)
	for i, s := range sinks {
		if s.Name == "" || s.Sink == nil {
			problems = append(problems, fmt.Errorf("Sinks[%d] needs Name and Sink", i))
		}
		if seen[s.Name] {
			problems = append(problems, fmt.Errorf("Sinks[%d]: the name %q is used twice", i, s.Name))
		}
		seen[s.Name] = true
	}
	return errors.Join(problems...)
}

func checkRetry(place string, p RetryPolicy) error {
	var problems []error
	for i, d := range p.Schedule {
		if d < 0 {
			problems = append(problems, fmt.Errorf("%s.Schedule[%d] is %v, must not be negative", place, i, d))
		}
	}
	if p.Jitter < 0 || p.Jitter > 1 {
		problems = append(problems, fmt.Errorf("%s.Jitter is %v, must be between 0 and 1", place, p.Jitter))
	}
	if len(p.Schedule) == 0 && (p.Attempts < 1 || p.Initial <= 0 || p.Ceiling < p.Initial) {
		problems = append(problems, fmt.Errorf("%s needs a Schedule, or Initial, Ceiling (not below Initial) and Attempts", place))
	}
	return errors.Join(problems...)
}

// resolveRoutes checks every route against the sinks and reports all mistakes together.
func (c Config) resolveRoutes() ([]*route, error) {
	sinks := make(map[string]int)
	for i, s := range c.Sinks {
		sinks[s.Name] = i
	}
	var routes []*route
	var problems []error
	for i, r := range c.Routes {
		resolved, err := resolveRoute(r, sinks, c)
		if r.Retry != nil {
			err = errors.Join(err, checkRetry("Retry", *r.Retry))
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("Routes[%d]: %w", i, err))
		} else {
			resolved.binding = bindingOf(c.Sinks[resolved.sink].Sink)
		}
		routes = append(routes, resolved)
	}
	return routes, errors.Join(problems...)
}
