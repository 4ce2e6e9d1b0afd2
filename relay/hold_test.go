package relay_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// holding is setup with keys that DEAD events hold.
func holding(m *memory, s relay.Sink) relay.Config {
	cfg := setup(m, s)
	cfg.OnDead = relay.OnDeadHold
	return cfg
}

// refuse makes the sink refuse one event for good.
func (s *recorder) refuse(id string) {
	s.set(func(msg relay.Message) relay.Outcome {
		if string(msg.Payload) == id {
			return relay.Permanent(errTest)
		}
		return relay.Published("x")
	})
}

func TestADeadEventHoldsItsKeyUntilItIsRedriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		bad, second := m.add("a", "placed"), m.add("a", "placed")
		other := m.add("b", "placed")
		s.refuse(bad)
		_, stop := start(t, holding(m, s))
		await(t, "the event is DEAD", func() bool { return m.find(bad).state == postrider.StateDead })
		third := m.add("a", "placed")
		time.Sleep(time.Hour)
		wantIDs(t, s.ids("a"))
		wantIDs(t, s.ids("b"), other)
		s.set(nil)
		m.redrive(nil)
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 4 })
		wantIDs(t, s.ids("a"), bad, second, third)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAHeldKeyLetsNothingPassBeforeTheDeathIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		m.late = func() time.Duration { return 200 * time.Millisecond } // reads see what was before the settle
		bad := m.add("a", "placed")
		m.add("a", "placed")
		s.set(func(msg relay.Message) relay.Outcome {
			if string(msg.Payload) != bad {
				return relay.Published("x")
			}
			m.fail(errTest) // the settle cannot be written
			return relay.Permanent(errTest)
		})
		_, stop := start(t, holding(m, s))
		await(t, "the event is sent", s.asked)
		time.Sleep(5 * time.Second)
		m.fail(nil)
		await(t, "the event is DEAD", func() bool { return m.find(bad).state == postrider.StateDead })
		time.Sleep(time.Minute)
		wantIDs(t, s.ids("a"))
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEventThatCannotBeSentHoldsItsKey(t *testing.T) {
	malformed := func(e *relay.Event) { e.Malformed = errTest }
	for name, test := range map[string]struct {
		spoil        func(*relay.Event)
		onDead       relay.OnDead // of the relay
		routesOnDead relay.OnDead
		holds        bool
	}{
		"without a route":                        {func(e *relay.Event) { e.EventType = "unknown" }, relay.OnDeadHold, relay.OnDeadContinue, true},
		"without a route, when keys go on":       {func(e *relay.Event) { e.EventType = "unknown" }, relay.OnDeadContinue, relay.OnDeadHold, false},
		"malformed":                              {malformed, relay.OnDeadContinue, relay.OnDeadHold, true},
		"malformed, when its route's keys go on": {malformed, relay.OnDeadHold, relay.OnDeadContinue, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, s := newMemory(), &recorder{}
				before := m.add("a", "placed")
				bad := m.add("a", "placed")
				test.spoil(&m.rows[len(m.rows)-1].event)
				later := m.add("a", "placed")
				cfg := setup(m, s)
				cfg.Store, cfg.OnDead = slowToSettle{m}, test.onDead
				cfg.Routes[0].EventType, cfg.Routes[0].OnDead = "placed", test.routesOnDead
				_, stop := start(t, cfg)
				await(t, "the event is DEAD", func() bool { return m.find(bad).state == postrider.StateDead })
				time.Sleep(time.Minute)
				if test.holds {
					wantIDs(t, s.ids("a"), before)
				} else {
					wantIDs(t, s.ids("a"), before, later)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// slowToSettle is a memory that is read several times before an outcome is written.
type slowToSettle struct{ *memory }

func (s slowToSettle) Settle(ctx context.Context, m relay.Member, settlements []relay.Settlement) ([]string, error) {
	time.Sleep(time.Second)
	return s.memory.Settle(ctx, m, settlements)
}

func TestEventsWithoutAKeyHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for range 2 {
			m.add("", "placed")
			m.rows[len(m.rows)-1].event.Malformed = errTest
		}
		_, stop := start(t, holding(m, s))
		await(t, "both are DEAD", func() bool { return m.count(postrider.StateDead) == 2 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHoldingKeysIsRefusedWithoutOrder(t *testing.T) {
	m, s := newMemory(), &recorder{}
	for name, set := range map[string]func(*relay.Config){
		"relay":   func(c *relay.Config) { c.OnDead = relay.OnDeadHold },
		"a route": func(c *relay.Config) { c.Routes[0].OnDead = relay.OnDeadHold },
	} {
		cfg := setup(m, s)
		cfg.Store, cfg.Claim = newClaiming(m), relay.ClaimRow
		set(&cfg)
		if _, err := relay.New(cfg); err == nil || !strings.Contains(err.Error(), `OnDead is "hold", but Claim is "row"`) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAnUnknownOnDeadIsRefused(t *testing.T) {
	cfg := setup(newMemory(), &recorder{})
	cfg.OnDead, cfg.Routes[0].OnDead = "stop", "wait"
	_, err := relay.New(cfg)
	for _, word := range []string{`"stop"`, `Routes[0]: OnDead is "wait"`} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s is not named in %v", word, err)
		}
	}
}
