package config

import (
	"regexp"
	"strings"
	"time"
)

// Relay says how this process takes part in relaying.
type Relay struct {
	// Name is the relay name: relays with one name share the work. The
	// default is "default".
	Name string
	// Claim is how they share it. The default is shard.
	Claim Claim
	// Shards is the number of shards that the table is laid out for, and that
	// relays lease unless Claim is row, 1 to 1024. The default is 64.
	Shards int
	// VersionGap is how long a gap in an aggregate's versions holds its key;
	// 0, the default, is until it closes. It is 0 when Claim is row.
	VersionGap time.Duration
	// Batch is how many events one read takes at most. The default is 500.
	Batch int
	// MaxInFlightEvents bounds the events in memory; it is not less than
	// Batch. The default is 8 times Batch.
	MaxInFlightEvents int
	// MaxInFlightBytes bounds the bytes of events in memory. The default is
	// 16 MiB.
	MaxInFlightBytes int
	// Lease is how long a shard stays with a relay that has died, at least
	// 1s; a claimed event stays a fifth longer. The default is 30s.
	Lease time.Duration
	// Poll bounds the pause between two reads.
	Poll Poll
	// OnPublished says what becomes of a published event's row. The default
	// is keep, or delete with a preset whose table cannot show it.
	OnPublished OnPublished
	// Retention is how long a kept row stays; 0 keeps it for ever. It means
	// nothing when OnPublished is delete. The default is 72h, and 0 for a
	// table that postrider init did not create.
	Retention time.Duration
	// Cleanup says how rows past their retention are removed.
	Cleanup Cleanup
	// Grace is how long a stop waits for what is in flight, at least 1ms.
	// The default is 20s.
	Grace time.Duration
	// PublishTimeout bounds one call of a sink, and is shorter than Lease.
	// The default is 10s, or half of a Lease that is shorter than 20s.
	PublishTimeout time.Duration
	// Retry is the policy of every route that has none of its own.
	Retry Retry
	// OnDead says what becomes of a key whose event is DEAD, for routes that
	// do not say it and events without a route. The default is continue.
	OnDead OnDead
}

// Poll bounds the adaptive pause between reads: Min while there is work, up
// to Max when idle. Min is at least 1ms and not above Max. The defaults are
// 5ms and 250ms.
type Poll struct{ Min, Max time.Duration }

// Cleanup says how often rows past their retention are looked for, and how
// many are removed by one statement. The defaults are 1m and 1000.
type Cleanup struct {
	Interval time.Duration
	Chunk    int
}

// Claim is a way to share the work.
type Claim string

// The ways to share the work.
const (
	ClaimShard Claim = "shard"
	ClaimRow   Claim = "row"
)

// order is what is asked of the events of a key.
type order string

const (
	orderKey  order = "key"
	orderNone order = "none"
)

// OnPublished is what becomes of a published event's row.
type OnPublished string

// What may become of a published event's row.
const (
	KeepPublished   OnPublished = "keep"
	DeletePublished OnPublished = "delete"
)

// OnDead is what becomes of a key whose event is DEAD.
type OnDead string

// What may become of a key whose event is DEAD.
const (
	ContinueKey OnDead = "continue"
	HoldKey     OnDead = "hold"
)

const (
	maxShards         = 1024
	maxBatch          = 100_000
	maxInFlightEvents = 10_000_000
	maxInFlightBytes  = 64 << 30
	maxChunk          = 100_000

	batchesInFlight       = 8
	longestPublishTimeout = 10 * time.Second // of those that are not given
)

// readRelay also returns what is wrong with keys that DEAD events hold, or nil.
func readRelay(v value, outbox Outbox) (relay Relay, noHold *mistake) {
	relay = Relay{
		Name:             "default",
		Claim:            ClaimShard,
		Shards:           64,
		Batch:            500,
		MaxInFlightBytes: 16 << 20,
		Lease:            30 * time.Second,
		Poll:             Poll{Min: 5 * time.Millisecond, Max: 250 * time.Millisecond},
		OnPublished:      KeepPublished,
		Retention:        72 * time.Hour,
		Cleanup:          Cleanup{Interval: time.Minute, Chunk: 1000},
		Grace:            20 * time.Second,
		Retry:            defaultRetry(),
		OnDead:           ContinueKey,
	}
	v.object(func(o *object) {
		strAs(o, "name", &relay.Name, parseName)
		noHold = whyNoHold(readSharing(o, &relay, outbox), relay.Claim)
		readLimits(o, &relay)
		readPoll(o.field("poll"), &relay.Poll)
		readPublished(o, &relay, outbox)
		duration(o, "grace", &relay.Grace, time.Millisecond)
		relay.Retry = readRetry(o.field("retry"), relay.Retry)
		readOnDead(o, &relay.OnDead, noHold)
	})
	return relay, noHold
}

// whyNoHold tells what keeps DEAD events from holding their keys.
func whyNoHold(asked order, claim Claim) *mistake {
	switch {
	case claim == ClaimRow:
		return &mistake{"hold asks for order, and claim: row keeps none", "write claim: shard, or continue"}
	case asked == orderNone:
		return &mistake{"hold asks for order, and order is none", "write order: key, or continue"}
	}
	return nil
}

func readOnDead(o *object, onDead *OnDead, noHold *mistake) {
	if choice(o, "on_dead", onDead, ContinueKey, HoldKey) && *onDead == HoldKey && noHold != nil {
		o.problem("on_dead", noHold.message, noHold.hint)
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// parseName takes the name of a relay or a sink: a column, a label of metrics
// and a part of addresses.
func parseName(text string) (string, *mistake) {
	if !plainName.MatchString(text) {
		return "", &mistake{"is no name", "write at most 63 letters, digits, _ . or -, the first a letter or digit"}
	}
	return text, nil
}

func readSharing(o *object, relay *Relay, outbox Outbox) (asked order) {
	choice(o, "claim", &relay.Claim, ClaimShard, ClaimRow)
	switch {
	case relay.Claim != ClaimRow || outbox.takesClaims():
	case outbox.Database == MongoDB:
		o.problem("claim", "row needs documents with fields for it", "map columns.claim_token and columns.processing_until, or write claim: shard, which serves every collection")
	default:
		o.problem("claim", "row needs a table with columns for it", "map columns.claim_token, columns.processing_until and status.processing, or write claim: shard, which serves every table")
	}
	asked = readOrder(o, relay)
	integer(o, "shards", &relay.Shards, 1, maxShards)
	duration(o, "lease", &relay.Lease, time.Second)
	relay.PublishTimeout = min(longestPublishTimeout, relay.Lease/2)
	if duration(o, "publish_timeout", &relay.PublishTimeout, time.Millisecond) && relay.PublishTimeout >= relay.Lease {
		o.problem("publish_timeout", "must be shorter than lease", "a relay hands nothing to a sink that could outlive its lease")
	}
	return asked
}

// readOrder refuses what asks for order of relays that keep none.
func readOrder(o *object, relay *Relay) (asked order) {
	asked = orderKey
	if relay.Claim == ClaimRow {
		asked = orderNone
	}
	choice(o, "order", &asked, orderKey, orderNone)
	read(o, "version_gap", &relay.VersionGap, parseVersionGap)
	switch {
	case relay.Claim == ClaimRow && asked == orderKey:
		o.problem("order", "claim: row keeps no order", "write claim: shard, or order: none")
	case relay.Claim == ClaimRow && o.has("version_gap"):
		o.problem("version_gap", "asks for order, and claim: row keeps none", "write claim: shard, or remove it")
	case asked == orderNone && o.has("version_gap"):
		o.problem("version_gap", "asks for order, and order is none", "write order: key, or remove it")
	}
	return asked
}

// parseVersionGap takes hold, as 0, or how long to hold.
func parseVersionGap(text string) (time.Duration, *mistake) {
	const hint = "write hold, or continue after 10m"
	if text == "hold" {
		return 0, nil
	}
	bound, found := strings.CutPrefix(text, "continue after ")
	if !found {
		return 0, &mistake{"does not say what becomes of a gap", hint}
	}
	after, wrong := parseDuration(strings.TrimSpace(bound), time.Millisecond)
	if wrong != nil {
		return 0, &mistake{wrong.message, hint}
	}
	return after, nil
}

func readLimits(o *object, relay *Relay) {
	integer(o, "batch", &relay.Batch, 1, maxBatch)
	relay.MaxInFlightEvents = batchesInFlight * relay.Batch
	if integer(o, "max_in_flight_events", &relay.MaxInFlightEvents, 1, maxInFlightEvents) && relay.MaxInFlightEvents < relay.Batch {
		o.problem("max_in_flight_events", "must not be less than batch", "raise it, or set batch lower")
	}
	size(o, "max_in_flight_bytes", &relay.MaxInFlightBytes, 1, maxInFlightBytes)
}

func readPoll(v value, poll *Poll) {
	v.object(func(o *object) {
		duration(o, "min", &poll.Min, time.Millisecond)
		duration(o, "max", &poll.Max, time.Millisecond)
		if poll.Max < poll.Min {
			o.problem(o.firstOf("max", "min"), "max must not be shorter than min", "raise max, or set min lower")
		}
	})
}

func readPublished(o *object, relay *Relay, outbox Outbox) {
	if outbox.IsTheirs() {
		relay.Retention = 0
	}
	if outbox.Preset != "" && !outbox.marksPublished() {
		relay.OnPublished = DeletePublished // nothing else deletes rows without being told to
	}
	choice(o, "on_published", &relay.OnPublished, KeepPublished, DeletePublished)
	if relay.OnPublished == KeepPublished && !outbox.marksPublished() {
		o.problem("on_published", "no row of this table can show that it was published",
			"write on_published: delete, or name the column that shows it in columns.status or columns.published_at of outbox")
	}
	duration(o, "retention", &relay.Retention, 0)
	o.field("cleanup").object(func(o *object) {
		duration(o, "interval", &relay.Cleanup.Interval, time.Second)
		integer(o, "chunk", &relay.Cleanup.Chunk, 1, maxChunk)
	})
	if relay.OnPublished == DeletePublished {
		for _, key := range []string{"retention", "cleanup"} {
			if o.has(key) {
				o.problem(key, "means nothing with on_published: delete", "remove it, or write on_published: keep")
			}
		}
	}
}
