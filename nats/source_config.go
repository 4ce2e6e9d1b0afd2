package nats

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// SourceConfig says what a Source reads. Stream, Consumer, and Servers or InProcess must be set.
type SourceConfig struct {
	Servers        []string                   // as for a sink
	InProcess      nats.InProcessConnProvider // as for a sink
	User, Password string                     // as for a sink
	Token          string                     // as for a sink
	CredsFile      string                     // as for a sink
	TLS            *tls.Config                // as for a sink
	Name           string                     // as for a sink

	// Stream is the stream to read. It must exist.
	Stream string

	// Consumer is the durable consumer of the stream, which its members share. It is created, from the start of the stream,
	// when it does not exist. One that exists is read as it is, unless it could lose messages.
	Consumer string

	// Subjects are what to read, such as "orders.*"; an existing consumer must have the same. Empty is everything, and
	// whatever an existing consumer has.
	//
	// Name the retry topics, such as "orders.*.retry.5m": beside other subjects those of each delay have a durable consumer of
	// their own, CONSUMER-retry-5m. Where they come by a wildcard that stands for other subjects too, or because Subjects is
	// empty, Prefetch messages that wait for their time hold up everything.
	Subjects []string

	// AckWait is how long a consumer that is created waits for a member that has died. It must be at least 1s; 0 means 30s.
	AckWait time.Duration

	// Prefetch is how many messages of each consumer the source has at most that are not finished, whether they were fetched or wait to be. What
	// one member has, no other gets: make it a few times what is handled at a time. 0 means 500.
	Prefetch int
}

const (
	defaultAckWait  = 30 * time.Second
	shortestAckWait = time.Second
	defaultPrefetch = 500
)

// withDefaults fills what was left empty and reports every mistake together.
func (c SourceConfig) withDefaults() (SourceConfig, error) {
	shared, err := c.shared().withDefaults()
	mistakes := []error{err}
	c.Name = shared.Name
	c.AckWait, c.Prefetch = cmp.Or(c.AckWait, defaultAckWait), cmp.Or(c.Prefetch, defaultPrefetch)
	for what, name := range map[string]string{"stream": c.Stream, "consumer": c.Consumer} {
		if name == "" || strings.ContainsAny(name, " \t\r\n\x00.*>/\\") {
			mistakes = append(mistakes, fmt.Errorf("%s %q: it needs a name without white space, dots, wildcards and slashes", what, name))
		}
	}
	if c.AckWait < shortestAckWait {
		mistakes = append(mistakes, fmt.Errorf("wait for acknowledgements of %s: it must be at least %s", c.AckWait, shortestAckWait))
	}
	if c.Prefetch < 1 {
		mistakes = append(mistakes, fmt.Errorf("prefetch of %d: it must be at least 1", c.Prefetch))
	}
	mistakes = append(mistakes, overlaps(c.durables()))
	return c, errors.Join(mistakes...)
}

// shared is what a source and a sink have in common.
func (c SourceConfig) shared() Config {
	return Config{Servers: c.Servers, InProcess: c.InProcess, User: c.User, Password: c.Password, Token: c.Token,
		CredsFile: c.CredsFile, TLS: c.TLS, Name: c.Name}
}

// wanted is the consumer to create. How much its members have is bounded by each of them: a bound for all would leave those
// with nothing that come last.
func (c SourceConfig) wanted(d durable) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:        d.name,
		DeliverPolicy:  jetstream.DeliverAllPolicy, // a message that nobody has taken yet is not passed over
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        c.AckWait,
		MaxDeliver:     -1,
		MaxAckPending:  -1,
		FilterSubjects: d.subjects,
	}
}

// check refuses a consumer that exists and could lose messages, or gets others than asked for.
func (c SourceConfig) check(d durable, existing jetstream.ConsumerConfig) error {
	var mistakes []error
	refuse := func(format string, arguments ...any) { mistakes = append(mistakes, fmt.Errorf(format, arguments...)) }
	if existing.AckPolicy != jetstream.AckExplicitPolicy {
		refuse("it acknowledges by policy %s, which takes messages for done that are not: it must be explicit", existing.AckPolicy)
	}
	if existing.MaxDeliver > 0 {
		refuse("it gives a message up after %d deliveries: set max_deliver to -1", existing.MaxDeliver)
	}
	if existing.DeliverSubject != "" {
		refuse("it pushes to a subject: a source needs one that is pulled from")
	}
	if existing.HeadersOnly {
		refuse("it leaves payloads out: set headers_only to false")
	}
	if existing.PriorityPolicy != jetstream.PriorityPolicyNone {
		refuse("it has priority groups, of which a source knows nothing")
	}
	if subjects := subjectsOf(existing); len(d.subjects) > 0 && !sameSubjects(subjects, d.subjects) {
		refuse("it gets the subjects %q, not %q: correct one of them", subjects, d.subjects)
	}
	if len(mistakes) > 0 {
		return fmt.Errorf("consumer %s of stream %s cannot be used: %w", d.name, c.Stream, errors.Join(mistakes...))
	}
	return nil
}

func subjectsOf(c jetstream.ConsumerConfig) []string {
	if c.FilterSubject != "" {
		return []string{c.FilterSubject}
	}
	return c.FilterSubjects
}

func sameSubjects(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// ackWait is the shortest time after which the server gives up waiting.
func ackWait(c jetstream.ConsumerConfig) time.Duration {
	if len(c.BackOff) > 0 {
		return slices.Min(c.BackOff)
	}
	return c.AckWait
}
