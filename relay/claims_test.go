package relay_test

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// claiming is the memory as one relay sees it that claims rows.
type claiming struct {
	*memory
	self  string
	lease relay.Lease
	owned bool
	held  map[string]int // tokens by id
	beat  atomic.Int64   // calls of Renew
}

// claim is what a row knows of the relay that has it.
type claim struct {
	token int // every claim of a row has a higher one
	until time.Time
}

func newClaiming(m *memory) *claiming {
	return &claiming{memory: m, held: make(map[string]int)}
}

func (c *claiming) Renew(ctx context.Context, beat relay.Heartbeat, _ []relay.Lease) (relay.LeaseTable, error) {
	if err := c.enter(ctx); err != nil {
		return relay.LeaseTable{}, err
	}
	defer c.mu.Unlock()
	c.beat.Add(1)
	if c.self != beat.ID {
		c.self, c.owned = beat.ID, false
		clear(c.held)
	}
	c.beats[beat.ID] = time.Now()
	for id := range c.held {
		if r := c.mine(id); r != nil {
			r.claim.until = time.Now().Add(beat.LeaseTTL)
		} else {
			delete(c.held, id)
			c.owned = false
		}
	}
	lease := relay.ShardLease{Lease: c.lease}
	if c.owned {
		lease.Owner = c.self
	}
	return relay.LeaseTable{Shards: []relay.ShardLease{lease}, Live: []string{c.self}}, nil
}

// mine returns the row if it is still claimed under the token that the relay knows.
func (c *claiming) mine(id string) *row {
	n, _ := strconv.Atoi(id)
	token, held := c.held[id]
	if r := c.rows[n-1]; held && r.state == postrider.StateProcessing && r.claim.token == token {
		return r
	}
	return nil
}

func (c *claiming) Acquire(ctx context.Context, _ relay.Member, _ []relay.Lease) ([]relay.Lease, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	c.lease.Epoch++
	c.owned = true
	return []relay.Lease{c.lease}, nil
}

func (c *claiming) Release(ctx context.Context, _ relay.Member, held []relay.Lease) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.mu.Unlock()
	if len(held) > 0 {
		c.giveBack(nil)
	}
	return nil
}

func (c *claiming) giveBack(inFlight map[string]bool) {
	for id := range c.held {
		if inFlight[id] {
			continue
		}
		if r := c.mine(id); r != nil {
			r.state = postrider.StatePending
		}
		delete(c.held, id)
	}
}

func (c *claiming) Read(ctx context.Context, req relay.ReadRequest) ([]relay.Event, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	events, late := c.take(req), c.late
	c.mu.Unlock()
	if late != nil {
		time.Sleep(late())
	}
	return events, nil
}

const memoryLease = 3 * time.Second // of every claim before it is renewed

func (c *claiming) take(req relay.ReadRequest) []relay.Event {
	inFlight := set(req.InFlight)
	c.giveBack(inFlight)
	var events []relay.Event
	now := time.Now()
	for _, r := range c.rows {
		free := r.state == postrider.StatePending && !now.Before(r.due) ||
			r.state == postrider.StateProcessing && !now.Before(r.claim.until)
		if !r.seen || !free || inFlight[r.event.ID] || len(events) == req.Limit || slices.Contains(req.Skip, r.event.Kind()) {
			continue
		}
		r.state = postrider.StateProcessing
		r.claim = claim{r.claim.token + 1, now.Add(memoryLease)}
		c.held[r.event.ID] = r.claim.token
		e := r.event
		e.Shard = 0
		events = append(events, e)
	}
	return events
}

func (c *claiming) Settle(ctx context.Context, who relay.Member, settlements []relay.Settlement) (written []string, err error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	for _, s := range settlements {
		r := c.mine(s.ID)
		if who.ID != c.self || r == nil {
			continue
		}
		delete(c.held, s.ID)
		r.state, r.to, r.reason = s.State, s.PublishedTo, s.Error
		r.event.RetryCount, r.due = s.RetryCount, time.Now().Add(s.RetryAfter)
		written = append(written, s.ID)
	}
	return written, nil
}

// stealClaims gives claimed rows to a relay that never settles them.
func (m *memory) stealClaims(ids ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		n, _ := strconv.Atoi(id)
		m.rows[n-1].claim = claim{m.rows[n-1].claim.token + 1, time.Now().Add(time.Hour)}
	}
}

// claimSetup is setup for row claims.
func claimSetup(m *memory, s relay.Sink) relay.Config {
	cfg := setup(m, s)
	cfg.Store, cfg.Claim, cfg.Lease = newClaiming(m), relay.ClaimRow, memoryLease
	return cfg
}

func TestClaimsPublishEverythingAmongRelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for i := range 3000 {
			m.add(key(i%7), "placed")
		}
		a, stopA := start(t, claimSetup(m, s))
		_, stopB := start(t, claimSetup(m, s))
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 3000 })
		if n := len(s.ids("")); n != 3000 {
			t.Errorf("%d deliveries of 3000 events", n)
		}
		if h := a.Health(); !h.Ready {
			t.Errorf("health is %+v", h)
		}
		for _, stop := range []func() error{stopA, stopB} {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestClaimsHoldNoEventBackForAFailedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		bad := m.add("a", "placed")
		second, third := m.add("a", "placed"), m.add("a", "placed")
		s.set(func(msg relay.Message) relay.Outcome {
			if string(msg.Payload) == bad {
				return relay.Retry(errTest)
			}
			return relay.Published("x")
		})
		begin := time.Now()
		_, stop := start(t, claimSetup(m, s))
		await(t, "the others published", func() bool { return m.count(postrider.StatePublished) == 2 })
		if took := time.Since(begin); took > 500*time.Millisecond {
			t.Errorf("the others waited %v", took)
		}
		delivered := s.ids("a")
		slices.Sort(delivered)
		wantIDs(t, delivered, second, third)
		await(t, "the failed one is DEAD", func() bool { return m.find(bad).state == postrider.StateDead })
		if r := m.find(bad); r.event.RetryCount != 3 {
			t.Errorf("retry_count is %d, want 3", r.event.RetryCount)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestClaimsSendOneKeyInSeveralBatchesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for range 100 {
			m.add("hot", "placed")
		}
		letGo := s.hold()
		cfg := claimSetup(m, s)
		cfg.Batch, cfg.Sinks[0].Concurrency = 10, 4
		_, stop := start(t, cfg)
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		s.mu.Lock()
		if s.calls != 4 {
			t.Errorf("%d batches are at the sink at once, want 4", s.calls)
		}
		s.mu.Unlock()
		letGo()
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 100 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestALostClaimIsCountedAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		lost, kept := m.add("a", "placed"), m.add("a", "placed")
		letGo := s.hold()
		var lostClaims, written atomic.Int64
		cfg := claimSetup(m, s)
		cfg.Lease = 20 * time.Second // renewed every two seconds
		cfg.Hooks.Settled = func(w, l int, _ time.Duration) { written.Add(int64(w)); lostClaims.Add(int64(l)) }
		_, stop := start(t, cfg)
		await(t, "the events are being sent", s.asked)
		time.Sleep(time.Second) // until the renewals have their pace of two seconds
		renewals := &cfg.Store.(*claiming).beat
		before := renewals.Load()
		m.stealClaims(lost)
		letGo()
		await(t, "both outcomes are known", func() bool { return written.Load()+lostClaims.Load() == 2 })
		if lostClaims.Load() != 1 || m.find(lost).state != postrider.StateProcessing || m.find(kept).state != postrider.StatePublished {
			t.Errorf("%d lost claims; the event that was lost is %s, the other %s", lostClaims.Load(), m.find(lost).state, m.find(kept).state)
		}
		m.add("a", "placed")
		await(t, "the relay goes on", func() bool { return m.count(postrider.StatePublished) == 2 })
		if renewals.Load() != before {
			t.Error("a lost claim stopped the relay until a renewal")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingIsSentWhoseClaimWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &deaf{letGo: make(chan struct{})}
		var ids []string
		for range 30 {
			ids = append(ids, m.add("a", "placed"))
		}
		cfg := claimSetup(m, s)
		cfg.Batch, cfg.Sinks[0].Concurrency = 10, 1
		sent := make(map[string]int)
		cfg.Sinks[0].Sink = &counting{deaf: s, sent: sent}
		_, stop := start(t, cfg)
		await(t, "the first batch is being sent", s.asked)
		m.stealClaims(ids[10:20]...)
		time.Sleep(memoryLease) // in which the claims are renewed
		close(s.letGo)
		await(t, "what is left is published", func() bool { return m.count(postrider.StatePublished) == 20 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		for i, id := range ids {
			if want := map[bool]int{true: 0, false: 1}[i >= 10 && i < 20]; sent[id] != want {
				t.Errorf("event %s was sent %d times, want %d", id, sent[id], want)
			}
		}
	})
}

// counting counts what reaches a sink. One Publish call is under way at a time.
type counting struct {
	*deaf
	sent map[string]int
}

func (c *counting) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	for _, m := range batch {
		c.sent[string(m.Payload)]++
	}
	return c.deaf.Publish(ctx, batch)
}

func TestClaimsAreGivenBackByAnOrderlyStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for i := range 2000 {
			m.add(key(i), "placed")
		}
		letGo := s.hold()
		_, stop := start(t, claimSetup(m, s))
		await(t, "events are being sent", s.asked)
		time.AfterFunc(time.Second, letGo)
		if err := stop(); err != nil {
			t.Error(err)
		}
		sent := len(s.ids(""))
		if sent == 0 || sent != m.count(postrider.StatePublished) {
			t.Errorf("%d events were sent and %d settled", sent, m.count(postrider.StatePublished))
		}
		if n := m.count(postrider.StateProcessing); n > 0 {
			t.Errorf("%d events are still claimed", n)
		}
	})
}

func TestClaimsOfARelayThatDiedAreTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &recorder{}
		for i := range 100 {
			m.add(key(i), "placed")
		}
		dead := newClaiming(m)
		if _, err := dead.Read(t.Context(), relay.ReadRequest{Limit: 60}); err != nil {
			t.Fatal(err)
		}
		_, stop := start(t, claimSetup(m, s))
		await(t, "all published", func() bool { return m.count(postrider.StatePublished) == 100 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestClaimConflictEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		want := &relay.ClaimConflictError{Name: "test", Claim: relay.ClaimRow, Other: relay.ClaimShard, Table: "outbox_events"}
		m.fail(want)
		_, stop := start(t, claimSetup(m, &recorder{}))
		synctest.Wait()
		if err := stop(); !containsText(err, "set relay.claim to shard") {
			t.Errorf("Run returned %v", err)
		}
	})
}
