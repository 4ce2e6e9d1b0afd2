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

func TestAMissingVersionHoldsItsKeyUntilItHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		one, three := m.addVersion("a", "placed", 1), m.addVersion("a", "placed", 3)
		four, plain, other := m.addVersion("a", "placed", 4), m.add("a", "placed"), m.add("b", "placed")
		_, stop := start(t, setup(m, s))
		await(t, "b published", func() bool { return m.find(other).state == postrider.StatePublished })
		time.Sleep(time.Hour)
		wantIDs(t, s.ids("a"), one)
		if r := m.find(three); r.event.RetryCount != 0 || !strings.Contains(r.reason, "aggregate_version 2 of order \"a\"") {
			t.Errorf("the event before the gap has retry_count %d and the reason %q", r.event.RetryCount, r.reason)
		}
		two := m.addVersion("a", "placed", 2)
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 6 })
		wantIDs(t, s.ids("a"), one, two, three, four, plain)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestVersionsLeaveInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		three, one, two := m.addVersion("a", "placed", 3), m.addVersion("a", "placed", 1), m.addVersion("a", "placed", 2)
		_, stop := start(t, setup(m, s))
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 3 })
		wantIDs(t, s.ids("a"), one, two, three)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAKeyGoesOnWithoutAVersionAfterTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		one, three, four := m.addVersion("a", "placed", 1), m.addVersion("a", "placed", 3), m.addVersion("a", "placed", 4)
		cfg := setup(m, s)
		cfg.VersionGap = 10 * time.Minute
		began := time.Now()
		_, stop := start(t, cfg)
		for m.count(postrider.StatePublished) < 3 {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("the key went on after %v", took)
		}
		two := m.addVersion("a", "placed", 2)
		await(t, "the late version published", func() bool { return m.count(postrider.StatePublished) == 4 })
		wantIDs(t, s.ids("a"), one, three, four, two)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A version that waits at another sink is not missing.
func TestASinkThatIsDownHoldsNoVersionsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, up, down := newMemory(), &recorder{}, &recorder{}
		down.set(func(relay.Message) relay.Outcome { return relay.Unavailable(errTest) })
		m.addVersion("a", "down", 1)
		two, three := m.addVersion("a", "up", 2), m.addVersion("a", "up", 3)
		cfg := setup(m, up)
		cfg.Sinks = append(cfg.Sinks, relay.NamedSink{Name: "down", Type: "memory", Sink: down})
		cfg.Routes = []relay.Route{{EventType: "down", Sink: "down"}, {Sink: "main"}}
		_, stop := start(t, cfg)
		await(t, "the others published", func() bool { return m.count(postrider.StatePublished) == 2 })
		wantIDs(t, up.ids("a"), two, three)
		_ = stop() // an event is still on its way to the sink that is down
	})
}

// slowSettle is a memory in which an outcome is written late.
type slowSettle struct{ *memory }

func (s slowSettle) Settle(ctx context.Context, m relay.Member, settlements []relay.Settlement) ([]string, error) {
	time.Sleep(time.Second)
	return s.memory.Settle(ctx, m, settlements)
}

func TestAGapHoldsItsKeyBeforeTheStoreKnowsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		one := m.addVersion("a", "placed", 1)
		m.addVersion("a", "placed", 3)
		m.addVersion("a", "placed", 4)
		m.add("a", "placed")
		cfg := setup(m, s)
		cfg.Store = slowSettle{m}
		_, stop := start(t, cfg)
		time.Sleep(time.Hour)
		wantIDs(t, s.ids("a"), one)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAGapHoldsItsKeyAtEverySink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, main, second := newMemory(), &recorder{}, &recorder{}
		m.addVersion("a", "placed", 1)
		m.addVersion("a", "placed", 3)
		m.addVersion("a", "second", 4)
		m.add("a", "second")
		cfg := setup(m, main)
		cfg.Sinks = append(cfg.Sinks, relay.NamedSink{Name: "second", Type: "memory", Sink: second})
		cfg.Routes = []relay.Route{{EventType: "second", Sink: "second"}, {Sink: "main"}}
		_, stop := start(t, cfg)
		time.Sleep(time.Hour)
		if got := second.ids("a"); len(got) > 0 {
			t.Errorf("%v left behind a gap", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEventThatWentOnWithoutAVersionDoesNotWaitForItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		m.addVersion("a", "placed", 1)
		three := m.addVersion("a", "placed", 3)
		failed := false
		s.set(func(msg relay.Message) relay.Outcome {
			if string(msg.Payload) == three && !failed {
				failed = true
				return relay.Retry(errTest)
			}
			return relay.Published("x")
		})
		cfg := setup(m, s)
		cfg.VersionGap = time.Hour
		began := time.Now()
		_, stop := start(t, cfg)
		for m.count(postrider.StatePublished) < 2 {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > time.Hour+5*time.Minute {
			t.Errorf("the event was published after %v", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
