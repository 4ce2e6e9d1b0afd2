package sinktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

// memory is a destination in memory and a sink to it. Its faults break the contract, one each.
type memory struct {
	faults
	mu     sync.Mutex
	stored []Stored
}

type faults struct {
	loses           bool // says published without storing
	misplaces       bool // tells wrong coordinates
	trims           bool // changes payloads
	lowersHeaders   bool // changes the case of header names
	reverses        bool // stores a batch back to front
	goesOn          bool // stores later messages of a key whose earlier one was refused
	blamesAll       bool // refuses a whole batch because of one message
	ignoresContext  bool // stores although the context has ended, and says unavailable
	takesMissing    bool // says published for a topic that does not exist
	blamesTopicless bool // says unavailable for a topic that does not exist
	forgetsOutcome  bool // returns one outcome too few
	givesNoReason   bool // leaves Err empty
}

const (
	topic   = "orders"
	missing = "nowhere"
	limit   = 5000
)

func (s *memory) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	outcomes := s.publish(ctx, batch)
	for i := range outcomes {
		if s.givesNoReason {
			outcomes[i].Err = nil
		}
	}
	if s.forgetsOutcome && len(outcomes) > 0 {
		return outcomes[1:]
	}
	return outcomes
}

func (s *memory) publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	b := keyorder.New(batch)
	if ctx.Err() != nil {
		if s.ignoresContext {
			for _, m := range batch {
				s.store(m)
			}
		}
		b.SettleRest(relay.Unavailable(ctx.Err()))
		return b.Outcomes()
	}
	order := slices.Clone(b.Pending())
	if s.reverses {
		slices.Reverse(order)
	}
	for _, i := range order {
		if !s.goesOn && !slices.Contains(b.Pending(), i) {
			continue
		}
		o := s.publishOne(batch[i])
		if o.Class == relay.ClassPermanent && s.blamesAll {
			b.SettleRest(o)
			break
		}
		b.Settle(i, o)
	}
	return b.Outcomes()
}

func (s *memory) publishOne(m relay.Message) relay.Outcome {
	switch {
	case m.Topic == missing && s.takesMissing, s.loses:
		return relay.Published(fmt.Sprintf("memory:%d", len(s.stored)))
	case m.Topic == missing && s.blamesTopicless:
		return relay.Unavailable(errors.New("no topic " + missing))
	case m.Topic == missing:
		return relay.Retry(errors.New("no topic " + missing))
	case size(m) > limit:
		return relay.Permanent(errors.New("too large"))
	}
	s.store(m)
	if s.misplaces {
		return relay.Published("memory:0")
	}
	return relay.Published(s.stored[len(s.stored)-1].Coordinates)
}

func (s *memory) store(m relay.Message) {
	stored := Stored{Key: m.Key, Payload: slices.Clone(m.Payload), Headers: slices.Clone(m.Headers), Coordinates: fmt.Sprintf("memory:%d", len(s.stored)+1)}
	if s.trims {
		stored.Payload = []byte(strings.TrimSpace(string(m.Payload)))
	}
	for i := range stored.Headers {
		if h := &stored.Headers[i]; s.lowersHeaders && h.Name != idHeader {
			h.Name = strings.ToLower(h.Name)
		}
	}
	s.stored = append(s.stored, stored)
}

func (s *memory) Close() error { return nil }

// size counts what Fill fills.
func size(m relay.Message) int {
	n := len(m.Payload) / 20 // the suite's own payloads are larger than the limit
	if len(m.Headers) > 0 && m.Headers[0].Name == idHeader && strings.HasPrefix(string(m.Payload), "filled") {
		n = len(m.Payload)
	}
	for _, h := range m.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return n
}

func openMemory(f faults) Open {
	return func(testing.TB) Fixture {
		s := &memory{faults: f}
		return Fixture{
			Sink: s, Topic: topic, Missing: missing,
			Read: func(testing.TB) []Stored { return s.stored },
			Fill: func(m relay.Message) relay.Message {
				m.Payload = []byte("filled")
				m.Payload = append(m.Payload, make([]byte, limit-size(m))...)
				return m
			},
			Keeps: Keeps{Key: true, HeaderOrder: true},
		}
	}
}

func TestGoodSinkPasses(t *testing.T) {
	Run(t, openMemory(faults{}))
}

func TestEveryFaultIsFound(t *testing.T) {
	for _, test := range []struct {
		fault faults
		found string // the case that must fail
	}{
		{faults{loses: true}, "PublishedIsThere"},
		{faults{misplaces: true}, "PublishedIsThere"},
		{faults{trims: true}, "PayloadsAreExact"},
		{faults{lowersHeaders: true}, "HeadersAreExact"},
		{faults{reverses: true}, "OrderPerKey"},
		{faults{reverses: true}, "OneKey"},
		{faults{reverses: true}, "ConcurrentCalls"},
		{faults{goesOn: true}, "OversizeHarmsOnlyItsKey"},
		{faults{blamesAll: true}, "OversizeHarmsOnlyItsKey"},
		{faults{ignoresContext: true}, "EndedContext"},
		{faults{takesMissing: true}, "MissingTopic"},
		{faults{blamesTopicless: true}, "MissingTopic"},
		{faults{forgetsOutcome: true}, "PublishedIsThere"},
		{faults{givesNoReason: true}, "EndedContext"},
	} {
		t.Run(fmt.Sprintf("%+v in %s", test.fault, test.found), func(t *testing.T) {
			i := slices.IndexFunc(cases, func(c testCase) bool { return c.name == test.found })
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				cases[i].run(r, openMemory(test.fault))
			}()
			<-done
			if len(r.failures) == 0 {
				t.Errorf("%s passes", test.found)
			}
		})
	}
}

// recorder keeps failures instead of failing.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
