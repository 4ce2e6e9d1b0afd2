package storetest

import (
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// claimEndTests are about how claims end: by an outcome, by being given back, or by running out.
var claimEndTests = map[string]func(*fixture){
	"Settle writes each outcome under its claim": func(f *fixture) {
		a := f.claimer("a")
		all := f.addKeys("a", "b", "c")
		events := map[string]relay.Event{}
		for _, e := range a.claim(a.everything()) {
			events[e.ID] = e
		}
		f.equal("settled", a.settle(published(events[all[0]], oneLease), retry(events[all[1]], oneLease, time.Hour),
			dead(events[all[2]], oneLease, "refused")), all)
		if row := f.row(all[0]); row.Status != postrider.StatePublished || row.PublishedTo != "test:"+all[0] || row.PublishedAt == nil {
			f.Errorf("published row is %+v", row)
		}
		if row := f.row(all[1]); row.Status != postrider.StatePending || row.RetryCount != 1 || row.LastError != "broker says no" ||
			row.NextAttemptAt.Sub(row.CreatedAt) < 59*time.Minute {
			f.Errorf("failed row is %+v", row)
		}
		if row := f.row(all[2]); row.Status != postrider.StateDead || row.RetryCount != 1 || row.LastError != "refused" {
			f.Errorf("dead row is %+v", row)
		}
		f.equal("history of the failed", f.history(all[1]), []string{"retry by a"})
		f.equal("history of the dead", f.history(all[2]), []string{"dead by a"})
		f.equal("settled again", a.settle(published(events[all[0]], oneLease), published(events[all[1]], oneLease),
			published(events[all[2]], oneLease)), nil)
	},

	"Settle of a retry makes the event claimable again": func(f *fixture) {
		a, b := f.claimer("a"), f.claimer("b")
		id := f.addKeys("a")[0]
		a.settle(retry(a.claim(a.everything())[0], oneLease, 0))
		again := b.awaitClaim()
		if again[0].ID != id || again[0].RetryCount != 1 {
			f.Fatalf("claimed %+v", again)
		}
		f.equal("settled by the first relay", a.settle(dead(again[0], oneLease, "x")), nil)
		f.equal("settled by the second", b.settle(published(again[0], oneLease)), []string{id})
		if row := f.row(id); row.LastError != "" {
			f.Errorf("row is %+v", row)
		}
	},

	"Settle records the versions that left": func(f *fixture) {
		a := f.claimer("a")
		first, third := int64(1), int64(3)
		f.add(Event{Key: "published", Version: &first}, Event{Key: "dead", Version: &first})
		for _, e := range a.claim(a.everything()) {
			if e.AggregateID == "dead" {
				a.settle(dead(e, oneLease, "x"))
			} else {
				a.settle(published(e, oneLease))
			}
		}
		f.must(a.store.Leave(f.ctx, a.Member))
		next := f.add(Event{Key: "published", Version: &third}, Event{Key: "dead", Version: &third})
		f.wantAfter("after version 1 has left", map[string]int64{next[0]: 2, next[1]: 2})
	},

	"A claim that ran out is taken over without spending an attempt": func(f *fixture) {
		a := f.briefClaimer("a")
		id := f.addKeys("a")[0]
		stale := a.claim(a.everything())[0]
		b := f.claimer("b")
		fresh := b.awaitClaim()
		if len(fresh) != 1 || fresh[0].ID != id || fresh[0].RetryCount != 0 || fresh[0].Malformed != nil {
			f.Fatalf("taken over: %+v", fresh)
		}
		f.equal("history", f.history(id), []string{"retry by b"})
		f.equal("published by the first relay", a.settle(published(stale, oneLease)), nil)
		f.equal("retried by the first relay", a.settle(retry(stale, oneLease, 0)), nil)
		f.equal("given up by the first relay", a.settle(dead(stale, oneLease, "x")), nil)
		f.wantState(id, postrider.StateProcessing)
		f.equal("published by the second", b.settle(published(fresh[0], oneLease)), []string{id})
	},

	"Settle accepts a claim that ran out while nobody took the event": func(f *fixture) {
		a := f.briefClaimer("a")
		all := f.addKeys("a", "b")
		events := a.claim(a.everything())
		req := f.everything()
		req.Limit = 1
		b := f.claimer("b")
		var taken []relay.Event
		f.await("a claim ran out", func() bool {
			taken = b.claim(req)
			return len(taken) > 0
		})
		written := a.settle(published(events[0], oneLease), published(events[1], oneLease))
		if len(written) != 1 || written[0] == taken[0].ID {
			f.Errorf("written %v of %v after another relay took %s", written, all, taken[0].ID)
		}
	},

	"Renew keeps claims from running out": func(f *fixture) {
		a, b := f.claimer("a"), f.claimer("b")
		a.LeaseTTL = 2 * time.Second
		a.renew()
		f.addKeys("a", "b")
		event := a.claim(a.everything())[0]
		begin := time.Now()
		f.await("the claims would have run out", func() bool {
			a.renew()
			f.equal("claimed by another", b.claimIDs(), []string{})
			return time.Since(begin) > a.LeaseTTL+a.LeaseTTL/4
		})
		f.equal("settled", a.settle(published(event, oneLease)), []string{event.ID})
	},

	"Renew prolongs what ran out while nobody took the event": func(f *fixture) {
		a := f.briefClaimer("a")
		id := f.addKeys("a")[0]
		a.claim(a.everything())
		a.LeaseTTL = f.member("a").LeaseTTL
		a.renew()
		f.equal("claimed by another", f.claimer("b").claimIDs(), []string{})
		f.wantState(id, postrider.StateProcessing)
	},

	"Renew tells that claims were lost": func(f *fixture) {
		a := f.briefClaimer("a")
		lease := a.own()
		f.addKeys("a", "b")
		a.claim(a.everything())
		if now, owned := a.renew(); !owned || now != lease {
			f.Fatalf("the lease is %v, held %v", now, owned)
		}
		b := f.claimer("b")
		b.awaitClaim()
		if _, owned := a.renew(); owned {
			f.Error("the lease is still held")
		}
		if again := a.own(); again.Epoch <= lease.Epoch {
			f.Errorf("the lease is %v after %v", again, lease)
		}
	},

	"Renew does not take what is settled for lost": func(f *fixture) {
		a := f.claimer("a")
		a.own()
		f.addKeys("a", "b", "c")
		events := a.claim(a.everything())
		a.settle(published(events[0], oneLease), retry(events[1], oneLease, 0), dead(events[2], oneLease, "x"))
		if _, owned := a.renew(); !owned {
			f.Error("the lease is not held any more")
		}
	},

	"A new member leaves the claims of the one before to run out": func(f *fixture) {
		a := f.claimer("a")
		id := f.addKeys("a")[0]
		event := a.claim(a.everything())[0]
		before := a.Member
		a.ID = "again"
		a.renew()
		f.equal("claimed", a.claimIDs(), []string{})
		written, err := a.store.Settle(f.ctx, before, []relay.Settlement{published(event, oneLease)})
		f.must(err)
		f.equal("settled by the member before", written, nil)
		f.wantState(id, postrider.StateProcessing)
	},

	"Release gives every claim back": func(f *fixture) {
		a, b := f.claimer("a"), f.claimer("b")
		lease := a.own()
		all := f.addKeys("a", "b", "c")
		event := a.claim(a.everything())[0]
		f.must(a.store.Release(f.ctx, a.Member, nil))
		f.equal("claimed by another before", b.claimIDs(), []string{})
		a.settle(published(event, oneLease))
		f.must(a.store.Release(f.ctx, a.Member, []relay.Lease{lease}))
		events := b.claim(b.everything())
		if len(events) != 2 {
			f.Fatalf("%d of %v were given back, want the 2 that were not settled", len(events), all)
		}
		for _, e := range events {
			if h := f.history(e.ID); e.RetryCount != 0 || len(h) > 0 {
				f.Errorf("event %s has retry_count %d and the history %v", e.ID, e.RetryCount, h)
			}
		}
		f.equal("settled after the release", a.settle(published(events[0], oneLease)), nil)
	},

	"Relays that lease shards give back what was claimed before them": func(f *fixture) {
		a := f.briefClaimer("a")
		id := f.addKeys("a")[0]
		a.claim(a.everything())
		f.must(a.store.Leave(f.ctx, a.Member))
		m := f.member("b")
		f.await("the event is given back", func() bool {
			f.renew(m)
			_, err := f.Store.Backlog(f.ctx)
			f.must(err)
			return f.row(id).Status == postrider.StatePending
		})
		f.equal("events", f.readIDs(), []string{id})
	},

	"An event whose relays die each time comes to an end, and alone": func(f *fixture) {
		all := f.addKeys("bad", "good", "good", "good")
		poison := all[0]
		end := func(life int) bool { // one life of a relay, until the poison kills it; true when it does not
			c := f.briefClaimer("relay-" + string(rune('a'+life)))
			suspects := life > 1
			for events := c.awaitClaim(); ; events = c.awaitClaim() {
				if suspects && len(events) > 1 {
					f.Fatalf("life %d: %d events together, one of which ends relays", life, len(events))
				}
				for _, e := range events {
					switch {
					case e.ID != poison && (e.Malformed != nil || e.RetryCount > 0):
						f.Fatalf("life %d: the neighbour %s has %v and retry_count %d", life, e.ID, e.Malformed, e.RetryCount)
					case e.ID == poison && e.Malformed != nil:
						c.settle(dead(e, oneLease, e.Malformed.Error()))
						return true
					}
				}
				if !suspects || events[0].ID == poison {
					f.must(c.store.Leave(f.ctx, c.Member))
					return false
				}
				c.settle(published(events[0], oneLease))
			}
		}
		lives := 0
		for !end(lives) {
			if lives++; lives > 10 {
				f.Fatal("the event ends relays again and again")
			}
		}
		if lives < 3 {
			f.Errorf("given up after %d relays", lives)
		}
		f.wantState(poison, postrider.StateDead)
		for _, id := range f.claimer("z").claimIDs() {
			if id == poison {
				f.Error("the dead event was claimed")
			}
		}
	},
}
