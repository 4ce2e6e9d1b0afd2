package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// claimer is a relay that claims rows.
type claimer struct {
	*fixture
	store relay.Store
	relay.Member
}

// claimer returns a relay of the name "main" that is at work, with claims that last longer than any test.
func (f *fixture) claimer(id string) *claimer {
	f.Helper()
	c := &claimer{f, f.Claims(), f.member(id)}
	c.Claim = relay.ClaimRow
	c.renew()
	return c
}

// briefClaimer is one whose claims run out at once.
func (f *fixture) briefClaimer(id string) *claimer {
	f.Helper()
	c := f.claimer(id)
	c.LeaseTTL = time.Millisecond
	c.renew()
	return c
}

// renew returns the claimer's one lease, and whether it holds it.
func (c *claimer) renew() (relay.Lease, bool) {
	c.Helper()
	table, err := c.store.Renew(c.ctx, relay.Heartbeat{Member: c.Member}, nil)
	c.must(err)
	if len(table.Shards) != 1 {
		c.Fatalf("%d shards, want one in their place", len(table.Shards))
	}
	c.equal("live members", table.Live, []string{c.ID})
	return table.Shards[0].Lease, table.Shards[0].Owner == c.ID
}

// own makes the claimer hold its lease.
func (c *claimer) own() relay.Lease {
	c.Helper()
	lease, _ := c.renew()
	taken, err := c.store.Acquire(c.ctx, c.Member, []relay.Lease{lease})
	c.must(err)
	if len(taken) != 1 {
		c.Fatal("the lease was not granted")
	}
	return taken[0]
}

// everything asks for all that can be claimed, with inFlight already there.
func (f *fixture) everything(inFlight ...string) relay.ReadRequest {
	req := f.request()
	req.Shards, req.InFlight = []int{0}, inFlight
	return req
}

// claim claims what req asks for and returns it.
func (c *claimer) claim(req relay.ReadRequest) []relay.Event {
	c.Helper()
	events, err := c.store.Read(c.ctx, req)
	c.must(err)
	for _, e := range events {
		if e.Shard != 0 {
			c.Fatalf("event %s is in shard %d, which the relay does not know", e.ID, e.Shard)
		}
	}
	return events
}

// claimIDs claims all that can be claimed and returns the ids in ascending order.
func (c *claimer) claimIDs(inFlight ...string) []string {
	c.Helper()
	return sorted(ids(c.claim(c.everything(inFlight...))))
}

// awaitClaim claims, as soon as they run out, the events that another relay has claimed.
func (c *claimer) awaitClaim() (events []relay.Event) {
	c.Helper()
	c.await("the claims ran out", func() bool {
		events = c.claim(c.everything())
		return len(events) > 0
	})
	return events
}

func (c *claimer) settle(settlements ...relay.Settlement) []string {
	c.Helper()
	written, err := c.store.Settle(c.ctx, c.Member, settlements)
	c.must(err)
	return sorted(written)
}

// oneLease is what a claimer's settlements refer to.
var oneLease = []relay.Lease{{Epoch: 1}}

func (f *fixture) history(id string) (outcomes []string) {
	f.Helper()
	attempts, err := f.Operator.Attempts(f.ctx, id)
	f.must(err)
	for _, a := range attempts {
		outcomes = append(outcomes, a.Outcome+" by "+a.By)
	}
	return outcomes
}

var claimTests = map[string]func(*fixture){
	"Renew answers for one lease in place of the shards": func(f *fixture) {
		c := f.claimer("a")
		lease, owned := c.renew()
		if owned {
			f.Error("the lease is held before it was acquired")
		}
		taken, err := c.store.Acquire(f.ctx, c.Member, []relay.Lease{lease})
		if err != nil || len(taken) != 1 || taken[0].Epoch != lease.Epoch+1 {
			f.Fatalf("acquired %v, %v", taken, err)
		}
		if now, owned := c.renew(); !owned || now != taken[0] {
			f.Errorf("after Acquire the lease is %v, held %v", now, owned)
		}
		if again, err := c.store.Acquire(f.ctx, c.Member, taken); err != nil || len(again) > 0 {
			f.Errorf("acquired again: %v, %v", again, err)
		}
	},

	"Read claims what it returns": func(f *fixture) {
		a, b := f.claimer("a"), f.claimer("b")
		all := f.add(Event{Key: "a", Topic: "x", Headers: `{"h": "1"}`, Payload: []byte(`[1]`)}, Event{Key: "a"}, Event{Key: "b"})
		events := a.claim(a.everything())
		f.equal("events", sorted(ids(events)), all)
		for _, e := range events {
			f.wantState(e.ID, postrider.StateProcessing)
			if e.ID == all[0] && (e.Topic != "x" || e.Headers["h"] != "1" || string(e.Payload) != `[1]` || e.AggregateID != "a" || e.After != nil) {
				f.Errorf("got %+v", e)
			}
		}
		f.equal("claimed by another", b.claimIDs(), []string{})
		f.equal("claimed again", a.claimIDs(all...), []string{})
	},

	"Read needs a member": func(f *fixture) {
		if _, err := f.Claims().Read(f.ctx, f.everything()); err == nil {
			f.Error("claimed for nobody")
		}
	},

	"Read claims each event for one of many": func(f *fixture) {
		const relays, rounds, events = 4, 10, 60
		for round := range rounds {
			f.addKeys(make([]string, events)...)
			var (
				start, done sync.WaitGroup
				mu          sync.Mutex
				times       = map[string]int{}
			)
			start.Add(1)
			for i := range relays {
				c := f.claimer(string(rune('a' + i)))
				done.Go(func() {
					start.Wait()
					req := c.everything()
					req.Limit = events / 2
					for {
						claimed, err := c.store.Read(f.ctx, req)
						if err != nil {
							f.Error(err)
						}
						if len(claimed) == 0 {
							return
						}
						req.InFlight = append(req.InFlight, ids(claimed)...)
						mu.Lock()
						for _, e := range claimed {
							times[e.ID]++
						}
						mu.Unlock()
					}
				})
			}
			start.Done()
			done.Wait()
			for id, n := range times {
				if n != 1 {
					f.Fatalf("round %d: event %s was claimed %d times", round, id, n)
				}
			}
			if len(times) != events {
				f.Fatalf("round %d: %d events were claimed, want %d", round, len(times), events)
			}
		}
	},

	"Read claims no more than it returns": func(f *fixture) {
		a, b := f.claimer("a"), f.claimer("b")
		f.addKeys("a", "b", "c", "d", "e")
		req := a.everything()
		req.Limit = 2
		if n := len(a.claim(req)); n != 2 {
			f.Fatalf("%d events with a limit of 2", n)
		}
		one := b.everything()
		one.MaxBytes = 1
		if n := len(b.claim(one)); n != 1 {
			f.Fatalf("%d events with a limit of one byte, want 1", n)
		}
		if n := len(f.claimer("c").claimIDs()); n != 2 {
			f.Errorf("%d events are left for others, want 2", n)
		}
	},

	"Read leaves out kinds and keys that take nothing": func(f *fixture) {
		a := f.claimer("a")
		all := f.add(Event{Key: "a", AggregateType: "x", EventType: "1"}, Event{Key: "a", AggregateType: "x", EventType: "2"},
			Event{Key: "b", AggregateType: "x", EventType: "2"})
		req := a.everything()
		req.Skip, req.SkipKeys, req.Limit = []relay.Kind{{AggregateType: "x", EventType: "1"}}, []string{"b"}, 1
		f.equal("events", ids(a.claim(req)), all[1:2])
		f.wantState(all[0], postrider.StatePending)
		f.wantState(all[2], postrider.StatePending)
	},

	"Read leaves a scheduled event until it is due": func(f *fixture) {
		a := f.claimer("a")
		all := f.add(Event{Key: "a", DueIn: time.Hour}, Event{Key: "a", DueIn: 2 * time.Second}, Event{Key: "a"})
		f.equal("events before they are due", a.claimIDs(), all[2:])
		f.await("the event is due", func() bool { return len(a.claim(a.everything(all[2]))) > 0 })
		f.wantState(all[0], postrider.StatePending)
		f.wantState(all[1], postrider.StateProcessing)
	},

	"Read keeps no event back for a failed one of its key": func(f *fixture) {
		a := f.claimer("a")
		all := f.addKeys("a", "a")
		req := a.everything()
		req.Limit = 1
		first := a.claim(req)[0]
		a.settle(retry(first, oneLease, time.Hour))
		if left := a.claimIDs(); len(left) != 1 || left[0] == first.ID {
			f.Errorf("claimed %v of %v after %s failed", left, all, first.ID)
		}
	},

	"Read gives back what is no longer in flight": func(f *fixture) {
		a, b := f.claimer("a"), f.claimer("b")
		all := f.addKeys("a", "b")
		a.claim(a.everything())
		req := a.everything(all[0])
		req.SkipKeys = []string{"b"}
		f.equal("claimed anew", ids(a.claim(req)), []string{})
		f.wantState(all[0], postrider.StateProcessing)
		f.equal("given back", b.claimIDs(), all[1:])
		if h := f.history(all[1]); len(h) > 0 {
			f.Errorf("giving back is kept as %v", h)
		}
	},

	"A relay that leases shards and one that claims rows refuse each other": func(f *fixture) {
		shard, row := f.member("a"), f.member("b")
		shard.Claim, row.Claim = relay.ClaimShard, relay.ClaimRow
		claims := f.Claims()
		refused := func(s relay.Store, m relay.Member, other relay.Claim) {
			f.Helper()
			_, err := s.Renew(f.ctx, relay.Heartbeat{Member: m}, nil)
			var conflict *relay.ClaimConflictError
			if !errors.As(err, &conflict) || conflict.Name != "main" || conflict.Other != other {
				f.Fatalf("got %v, want a ClaimConflictError with %s", err, other)
			}
		}
		f.renew(shard)
		refused(claims, row, relay.ClaimShard)
		f.equal("live members", f.renew(shard).Live, []string{"a"})
		f.must(f.Store.Leave(f.ctx, shard))
		c := f.claimer("c")
		refused(f.Store, shard, relay.ClaimRow)
		refused(f.Store, row, relay.ClaimShard)
		refused(claims, shard, relay.ClaimRow)
		f.must(c.store.Leave(f.ctx, c.Member))
		f.renew(shard)
	},

	"Renew refuses a second relay name for claims as well": func(f *fixture) {
		f.claimer("a")
		other := f.member("b")
		other.Name, other.Claim = "other", relay.ClaimRow
		_, err := f.Claims().Renew(f.ctx, relay.Heartbeat{Member: other}, nil)
		var conflict *relay.NameConflictError
		if !errors.As(err, &conflict) || conflict.Other != "main" {
			f.Fatalf("got %v, want a NameConflictError", err)
		}
	},

	"Clean is the work of one of the relays": func(f *fixture) {
		a, b := f.claimer("a"), f.claimer("b")
		a.renew()
		id := f.addKeys("a")[0]
		a.settle(published(a.claim(a.everything())[0], oneLease))
		req := relay.CleanRequest{Limit: 10}
		if done, err := b.store.Clean(f.ctx, req); err != nil || done.Deleted != 0 || !done.Done {
			f.Errorf("the second relay cleaned %+v, %v", done, err)
		}
		f.wantState(id, postrider.StatePublished)
		f.await("the first relay cleans", func() bool {
			done, err := a.store.Clean(f.ctx, req)
			f.must(err)
			return done.Deleted == 1
		})
	},

	"Backlog knows the age of claimed events": func(f *fixture) {
		a := f.claimer("a")
		f.addKeys("a")
		a.claimIDs()
		f.await("the claimed event shows", func() bool {
			b, err := a.store.Backlog(f.ctx)
			f.must(err)
			return b.OldestPending > 10*time.Millisecond
		})
	},
}
