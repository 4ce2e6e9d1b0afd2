package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

func TestPublishesEverythingInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		want := make(map[string][]string)
		for i := range 3000 {
			k := key(i % 7)
			want[k] = append(want[k], m.add(k, "placed"))
		}
		_, stop := start(t, setup(m, s))
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 3000 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		for k, ids := range want {
			wantIDs(t, s.ids(k), ids...)
		}
		if got := m.find("1").to; got != "memory:event-1" {
			t.Errorf("published_to is %q", got)
		}
	})
}

func TestRetryHoldsItsKeyOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		bad := m.add("a", "placed")
		second, third := m.add("a", "placed"), m.add("a", "placed")
		other := m.add("b", "placed")
		failures := 0
		s.set(func(msg relay.Message) relay.Outcome {
			if string(msg.Payload) == bad && failures < 2 {
				failures++
				return relay.Retry(errTest)
			}
			return relay.Published("x")
		})
		_, stop := start(t, setup(m, s))
		await(t, "b published", func() bool { return slices.Contains(s.ids(""), other) })
		fourth := m.add("a", "placed")
		synctest.Wait()
		if got := s.ids("a"); len(got) > 0 {
			t.Errorf("%v overtook the failed event", got)
		}
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 5 })
		wantIDs(t, s.ids("a"), bad, second, third, fourth)
		if got := m.find(bad).event.RetryCount; got != 2 {
			t.Errorf("retry_count is %d, want 2", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAPartitionKeyTakesThePlaceOfTheAggregateID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		var ids []string
		for _, aggregate := range []string{"a", "b", "c"} {
			ids = append(ids, m.add(aggregate, "placed"))
			e := &m.rows[len(m.rows)-1].event
			e.PartitionKey, e.Shard = "p", 0
		}
		failed := false
		s.set(func(msg relay.Message) relay.Outcome {
			if !failed {
				failed = true
				return relay.Retry(errTest)
			}
			return relay.Published("x")
		})
		_, stop := start(t, setup(m, s))
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 3 })
		wantIDs(t, s.ids("p"), ids...)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatWasReadIsRestoredBeforeItIsRouted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		id := m.add("a", "copied")
		var sent relay.Message
		s.set(func(msg relay.Message) relay.Outcome {
			sent = msg
			return relay.Published("x")
		})
		c := setup(m, s)
		c.Routes = []relay.Route{{EventType: "placed", Sink: c.Sinks[0].Name}}
		c.Restore = func(e *relay.Event) { e.EventType, e.EventID = "placed", "original" }
		_, stop := start(t, c)
		await(t, "published", func() bool { return m.find(id).state == postrider.StatePublished })
		if sent.EventID != "original" || sent.Event == nil || sent.Event.EventType != "placed" || sent.Event.ID != id {
			t.Errorf("sent %+v", sent)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestDeadAfterTheScheduleThenTheKeyGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		bad, next := m.add("a", "placed"), m.add("a", "placed")
		s.set(func(msg relay.Message) relay.Outcome {
			if string(msg.Payload) == bad {
				return relay.Retry(errTest)
			}
			return relay.Published("x")
		})
		begin := time.Now()
		_, stop := start(t, setup(m, s))
		await(t, "next published", func() bool { return m.count(postrider.StatePublished) == 1 })
		wantIDs(t, s.ids("a"), next)
		if took := time.Since(begin); took < time.Minute+time.Second {
			t.Errorf("the schedule of 1s and 1m took %v", took)
		}
		r := m.find(bad)
		if r.state != postrider.StateDead || r.event.RetryCount != 3 || r.reason != errTest.Error() || r.sink != "main" {
			t.Errorf("state %s, retry_count %d, last_error %q at sink %q", r.state, r.event.RetryCount, r.reason, r.sink)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestPermanentIsSettledBeforeTheKeyGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		bad, next := m.add("a", "placed"), m.add("a", "placed")
		s.set(func(msg relay.Message) relay.Outcome {
			if string(msg.Payload) == bad {
				m.fail(errTest) // the settle cannot be written
				return relay.Permanent(errTest)
			}
			return relay.Published("x")
		})
		_, stop := start(t, setup(m, s))
		time.Sleep(5 * time.Second)
		wantIDs(t, s.ids("a"))
		m.fail(nil)
		await(t, "next published", func() bool { return m.count(postrider.StatePublished) == 1 })
		wantIDs(t, s.ids("a"), next)
		if got := m.find(bad).state; got != postrider.StateDead {
			t.Errorf("state is %s", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestNoRouteIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		lost, sent := m.add("a", "unknown"), m.add("a", "order.placed")
		cfg := setup(m, s)
		cfg.Routes[0].EventType = "order.*"
		_, stop := start(t, cfg)
		await(t, "both settled", func() bool { return m.count(postrider.StatePending) == 0 })
		wantIDs(t, s.ids(""), sent)
		if r := m.find(lost); r.state != postrider.StateDead || r.reason == "" {
			t.Errorf("state %s, reason %q", r.state, r.reason)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestUnavailableSpendsNoAttemptAndHarmsNoOtherSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, down, up := newMemory(), &recorder{}, &recorder{}
		down.set(func(relay.Message) relay.Outcome { return relay.Unavailable(errTest) })
		cfg := setup(m, up)
		cfg.Sinks = append(cfg.Sinks, relay.NamedSink{Name: "down", Type: "memory", Sink: down})
		cfg.Routes = []relay.Route{{EventType: "down", Sink: "down"}, {Sink: "main"}}
		for i := range 10_000 { // far more than may be in flight
			m.add(key(i), "down")
		}
		for i := range 100 {
			m.add(key(i), "up")
		}
		r, stop := start(t, cfg)
		await(t, "the other sink's events published", func() bool { return len(up.ids("")) == 100 })
		if h := r.Health(); h.Ready || len(h.Reasons) != 1 {
			t.Errorf("health is %+v", h)
		}
		time.Sleep(2 * time.Minute)
		if m.count(postrider.StateDead) > 0 || m.count(postrider.StatePublished) != 100 {
			t.Error("an outage settled events")
		}
		down.mu.Lock()
		if down.calls > 60 {
			t.Errorf("%d calls in two minutes of outage", down.calls)
		}
		down.mu.Unlock()
		down.set(nil)
		await(t, "everything published", func() bool { return m.count(postrider.StatePending) == 0 })
		for i := range m.rows {
			if m.rows[i].event.RetryCount != 0 {
				t.Fatal("an outage spent attempts")
			}
		}
		if h := r.Health(); !h.Ready {
			t.Errorf("health is %+v", h)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestCircuitOfASinkWithoutEventsDoesNotKeepTheRelayFromReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		s.set(func(relay.Message) relay.Outcome { return relay.Unavailable(errTest) })
		m.add("a", "placed")
		r, stop := start(t, setup(m, s))
		await(t, "the outage is told", func() bool { return !r.Health().Ready && s.asked() })
		m.steal("other") // which publishes the event
		await(t, "nothing is left to wait for", func() bool { return r.Health().InFlight == 0 })
		if h := r.Health(); !h.Ready || h.Sinks[0].Circuit == relay.CircuitClosed {
			t.Errorf("health is %+v", h)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHealthTellsTheAgeOfTheOldestEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		s.set(func(relay.Message) relay.Outcome { return relay.Unavailable(errTest) })
		r, stop := start(t, setup(m, s))
		m.add("a", "placed")
		time.Sleep(time.Minute)
		m.fail(errTest) // from now on it cannot be measured
		time.Sleep(time.Minute)
		if age := r.Health().OldestPendingSeconds; age < 119 || age > 121 {
			t.Errorf("the oldest event waits for two minutes, health says %vs", age)
		}
		m.fail(nil)
		s.set(nil)
		await(t, "nothing is pending", func() bool { return r.Health().OldestPendingSeconds == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestSilentSinkOpensItsCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &deaf{letGo: make(chan struct{})}
		m.add("a", "placed")
		r, stop := start(t, setup(m, s))
		time.Sleep(20 * time.Second)
		if h := r.Health(); h.Ready {
			t.Error("ready although the sink does not answer")
		}
		close(s.letGo)
		await(t, "published", func() bool { return m.count(postrider.StatePublished) == 1 })
		await(t, "ready", func() bool { return r.Health().Ready })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// deaf is a sink that answers only when it is let go, whatever its context says.
type deaf struct {
	recorder
	letGo chan struct{}
}

func (d *deaf) Publish(_ context.Context, batch []relay.Message) []relay.Outcome {
	d.mu.Lock()
	d.calls++
	d.mu.Unlock()
	<-d.letGo
	return all(batch, relay.Published("deaf:1"))
}

func TestDatabaseOutageLosesNothingAndRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for i := range 50 {
			m.add(key(i), "placed")
		}
		s.set(func(relay.Message) relay.Outcome {
			m.fail(errTest) // the database goes away between the acknowledgement and the settle
			return relay.Published("x")
		})
		r, stop := start(t, setup(m, s))
		time.Sleep(2 * time.Minute) // much longer than the lease
		if h := r.Health(); h.Ready {
			t.Error("ready although the database is away")
		}
		s.set(nil)
		m.fail(nil)
		await(t, "all settled", func() bool { return m.count(postrider.StatePublished) == 50 })
		if n := len(s.ids("")); n != 50 {
			t.Errorf("%d deliveries of 50 events", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestStaleRelayChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		id := m.add("a", "placed")
		letGo := s.hold()
		var lost, fenced atomic.Int64
		cfg := setup(m, s)
		cfg.Hooks.LeaseLost = func(int) { lost.Add(1) }
		cfg.Hooks.Settled = func(_, n int, _ time.Duration) { fenced.Add(int64(n)) }
		_, stop := start(t, cfg)
		await(t, "the event is being sent", s.asked)
		m.steal("other")
		letGo()
		await(t, "the loss is noticed", func() bool { return lost.Load() == testShards && fenced.Load() == 1 })
		if got := m.find(id).state; got != postrider.StatePending {
			t.Errorf("a relay without its lease made the event %s", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingIsSentUnderALeaseThatRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		_, stop := start(t, setup(m, s))
		time.Sleep(time.Second)
		m.fail(errTest)
		time.Sleep(time.Minute)
		m.mu.Lock()
		m.err = nil
		m.lag = 4 * time.Second // reads come back, renewals take longer than they may
		m.mu.Unlock()
		m.add("a", "placed")
		time.Sleep(20 * time.Second)
		wantIDs(t, s.ids("a"))
		m.mu.Lock()
		m.lag = 0
		m.mu.Unlock()
		await(t, "published", func() bool { return m.count(postrider.StatePublished) == 1 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestQueuedEventsAreNotSentUnderALeaseThatRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &deaf{letGo: make(chan struct{})}
		for i := range 30 {
			m.add(key(i), "placed")
		}
		cfg := setup(m, s)
		cfg.Sinks[0].Concurrency, cfg.Batch = 1, 10
		_, stop := start(t, cfg)
		await(t, "the first batch is being sent", s.asked)
		m.fail(errTest)
		time.Sleep(time.Minute)
		close(s.letGo)
		time.Sleep(time.Minute)
		if s.calls != 1 {
			t.Errorf("%d Publish calls after the lease ran out", s.calls-1)
		}
		m.fail(nil)
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 30 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestShardIsDrainedBeforeItIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		const inLastShard = "c" // 99 % testShards == 3, which a lone relay gives up first
		m.add(inLastShard, "placed")
		letGo := s.hold()
		cfg := setup(m, s)
		cfg.PublishTimeout = 9 * time.Second
		_, stopA := start(t, cfg)
		await(t, "the event is being sent", s.asked)
		b, stopB := start(t, setup(m, s))
		time.Sleep(5 * time.Second)
		if n := b.Health().Shards; n != 1 {
			t.Errorf("the new relay has %d shards, want only the idle one of its two", n)
		}
		letGo()
		await(t, "the shard is handed over", func() bool { return b.Health().Shards == 2 })
		if n := len(s.ids("")); n != 1 {
			t.Errorf("%d deliveries of one event", n)
		}
		if err := errors.Join(stopA(), stopB()); err != nil {
			t.Error(err)
		}
	})
}

func TestLateCommitIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		low, commit := m.begin("a", "placed")
		high := m.add("b", "placed")
		_, stop := start(t, setup(m, s))
		await(t, "the higher id published", func() bool { return slices.Contains(s.ids(""), high) })
		commit()
		await(t, "the lower id published", func() bool { return slices.Contains(s.ids(""), low) })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestStopWaitsForWhatIsBeingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for i := range 2000 {
			m.add(key(i), "placed")
		}
		letGo := s.hold()
		_, stop := start(t, setup(m, s))
		await(t, "events are being sent", s.asked)
		time.AfterFunc(3*time.Second, letGo)
		if err := stop(); err != nil {
			t.Error(err)
		}
		sent := len(s.ids(""))
		if sent == 0 || sent != m.count(postrider.StatePublished) {
			t.Errorf("%d events were sent and %d settled", sent, m.count(postrider.StatePublished))
		}
		for i, shard := range m.shards {
			if shard.owner != "" {
				t.Errorf("shard %d was not released", i)
			}
		}
		if len(m.beats) > 0 {
			t.Error("the relay still counts as live")
		}
	})
}

func TestGraceIsFinite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &deaf{letGo: make(chan struct{})}
		defer close(s.letGo)
		m.add("a", "placed")
		_, stop := start(t, setup(m, s))
		time.Sleep(time.Second)
		begin := time.Now()
		if err := stop(); err == nil {
			t.Error("no word of the event that is still at the sink")
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the stop took %v", took)
		}
		if m.shards[0].owner == "" && m.shards[1].owner == "" && m.shards[2].owner == "" && m.shards[3].owner == "" {
			t.Error("the shard of an event that is still at the sink was released")
		}
	})
}

func TestRelaysShareShardsAndTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		a, stopA := start(t, setup(m, s))
		await(t, "one relay has everything", func() bool { return a.Health().Shards == testShards })
		b, stopB := start(t, setup(m, s))
		await(t, "two relays have halves", func() bool { return a.Health().Shards == 2 && b.Health().Shards == 2 })
		if err := stopA(); err != nil {
			t.Error(err)
		}
		await(t, "the other has everything", func() bool { return b.Health().Shards == testShards })
		m.add("a", "placed")
		await(t, "published", func() bool { return m.count(postrider.StatePublished) == 1 })
		if err := stopB(); err != nil {
			t.Error(err)
		}
	})
}

func TestPanicOfASinkChargesTheGuiltyEventOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		var bad string
		for i := range 20 {
			if id := m.add(key(i), "placed"); i == 7 {
				bad = id
			}
		}
		s.set(func(msg relay.Message) relay.Outcome {
			if string(msg.Payload) == bad {
				panic("poison")
			}
			return relay.Published("x")
		})
		_, stop := start(t, setup(m, s))
		await(t, "all settled", func() bool { return m.count(postrider.StatePending) == 0 })
		if m.find(bad).state != postrider.StateDead || m.count(postrider.StatePublished) != 19 {
			t.Errorf("the poison event is %s, %d published", m.find(bad).state, m.count(postrider.StatePublished))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestPanicOfALoopStartsTheRelayAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		cfg := setup(m, s)
		once := true
		cfg.Hooks.Read = func(int, time.Duration) {
			if once {
				once = false
				panic("in a hook")
			}
		}
		m.add("a", "placed")
		_, stop := start(t, cfg)
		await(t, "published", func() bool { return m.count(postrider.StatePublished) == 1 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHotKeyLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for range 10_000 {
			m.add("hot", "placed")
		}
		cold := m.add("cold", "placed")
		s.set(func(msg relay.Message) relay.Outcome {
			if msg.Key == "hot" {
				time.Sleep(time.Second)
			}
			return relay.Published("x")
		})
		cfg := setup(m, s)
		cfg.Batch, cfg.PublishTimeout = 10, 5*time.Second
		_, stop := start(t, cfg)
		begin := time.Now()
		await(t, "the cold key published", func() bool { return slices.Contains(s.ids(""), cold) })
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("the cold key waited %v", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestInFlightIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for i := range 5000 {
			m.add(key(i), "placed")
		}
		letGo := s.hold()
		cfg := setup(m, s)
		cfg.Batch, cfg.MaxInFlight = 100, 300
		r, stop := start(t, cfg)
		time.Sleep(5 * time.Second)
		if n := r.Health().InFlight; n > 300 || n < 200 {
			t.Errorf("%d events are in flight, the limit is 300", n)
		}
		letGo()
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 5000 })
		if s.largest > 100 {
			t.Errorf("a batch had %d events", s.largest)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestASinkBoundsItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for i := range 500 {
			m.add(key(i), "placed")
		}
		cfg := setup(m, s)
		cfg.Batch, cfg.Sinks[0].Batch = 100, 7
		_, stop := start(t, cfg)
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 500 })
		if s.largest != 7 {
			t.Errorf("a call had %d events, want 7", s.largest)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHintCutsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		cfg := setup(m, s)
		cfg.PollMax = time.Hour
		r, stop := start(t, cfg)
		time.Sleep(3 * time.Hour)
		begin := time.Now()
		m.add("a", "placed")
		r.Hint()
		await(t, "published", func() bool { return m.count(postrider.StatePublished) == 1 })
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v after the hint", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestRunReturnsWhatWaitingCannotMend(t *testing.T) {
	for _, want := range []error{
		fmt.Errorf("table missing: %w", relay.ErrSchema),
		&relay.ShardCountError{Relay: "test", Have: 64, Want: 4},
		&relay.NameConflictError{Name: "test", Other: "orders", Table: "outbox_events"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			m.fail(want)
			_, stop := start(t, setup(m, &recorder{}))
			synctest.Wait()
			if err := stop(); !errors.Is(err, want) {
				t.Errorf("Run returned %v, want %v", err, want)
			}
		})
	}
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, err := relay.New(relay.Config{
		Batch: -1, Lease: time.Millisecond, PublishTimeout: time.Minute,
		Sinks:  []relay.NamedSink{{Name: "a"}},
		Routes: []relay.Route{{Sink: "b", Topic: "{nothing}", EventType: "[", Retry: &relay.RetryPolicy{Jitter: 2}}},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"Store", "Name", "Batch", "Lease", "PublishTimeout", "Sinks[0]", `unknown sink "b"`, "{nothing}", `pattern "["`, "Jitter"} {
		if !containsText(err, want) {
			t.Errorf("no word of %s in: %v", want, err)
		}
	}
}

func containsText(err error, text string) bool { return strings.Contains(err.Error(), text) }
