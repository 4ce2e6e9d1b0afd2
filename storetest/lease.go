package storetest

import (
	"errors"
	"sync"

	"github.com/postrider/postrider/relay"
)

var leaseTests = map[string]func(*fixture){
	"Init runs concurrently and again": func(f *fixture) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := f.Init(f.ctx); err != nil {
					f.Error(err)
				}
			})
		}
		wg.Wait()
		f.addKeys("a")
		f.must(f.Init(f.ctx))
		if n := len(f.readIDs()); n != 1 {
			f.Fatalf("after another Init %d events are left, want 1", n)
		}
	},

	"Renew creates the shards and lists live members": func(f *fixture) {
		f.renew(f.member("b"))
		table := f.renew(f.member("a"))
		if len(table.Shards) != f.Shards {
			f.Fatalf("%d shards, want %d", len(table.Shards), f.Shards)
		}
		for i, s := range table.Shards {
			if s.Shard != i || s.Owner != "" || s.Expired {
				f.Errorf("shard %d is %+v, want it free", i, s)
			}
		}
		f.equal("live members", table.Live, []string{"a", "b"})
	},

	"Renew keeps the shards of relay names apart": func(f *fixture) {
		mine := f.brief()
		f.takeAll(mine)
		other := f.member("b")
		other.Name = "other"
		f.await("no relay of the first name is live", func() bool {
			_, err := f.Store.Renew(f.ctx, relay.Heartbeat{Member: other}, nil)
			return err == nil
		})
		for _, s := range f.renew(other).Shards {
			if s.Owner != "" || s.Epoch != 0 {
				f.Errorf("shard of another relay name is %+v", s)
			}
		}
	},

	"Renew refuses another number of shards": func(f *fixture) {
		m := f.member("a")
		m.Shards++
		_, err := f.Store.Renew(f.ctx, relay.Heartbeat{Member: m}, nil)
		var conflict *relay.ShardCountError
		if !errors.As(err, &conflict) || conflict.Have != f.Shards || conflict.Want != f.Shards+1 {
			f.Fatalf("got %v, want a ShardCountError", err)
		}
	},

	"Renew refuses a second relay name on the table": func(f *fixture) {
		first, second := f.member("a"), f.member("b")
		second.Name = "other"
		f.renew(first)
		_, err := f.Store.Renew(f.ctx, relay.Heartbeat{Member: second}, nil)
		var conflict *relay.NameConflictError
		if !errors.As(err, &conflict) || conflict.Name != "other" || conflict.Other != "main" {
			f.Fatalf("got %v, want a NameConflictError", err)
		}
		f.equal("live members", f.renew(first).Live, []string{"a"})
		f.must(f.Store.Leave(f.ctx, first))
		f.renew(second)
	},

	"Leave removes the member and keeps its leases": func(f *fixture) {
		m := f.member("a")
		f.takeAll(m)
		f.must(f.Store.Leave(f.ctx, m))
		table := f.renew(f.member("b"))
		f.equal("live members", table.Live, []string{"b"})
		if s := table.Shards[0]; s.Owner != "a" || s.Expired {
			f.Errorf("shard 0 is %+v, want it owned by a", s)
		}
	},

	"Acquire raises the epoch": func(f *fixture) {
		leases := f.takeAll(f.member("a"))
		for _, l := range leases {
			if l.Epoch != 1 {
				f.Errorf("first lease of shard %d has epoch %d, want 1", l.Shard, l.Epoch)
			}
		}
		for _, s := range f.renew(f.member("b")).Shards {
			if s.Owner != "a" || s.Epoch != 1 || s.Expired {
				f.Errorf("shard %d is %+v", s.Shard, s)
			}
		}
	},

	"Acquire leaves owned shards alone": func(f *fixture) {
		f.takeAll(f.member("a"))
		b := f.member("b")
		if taken := f.acquire(b, seen(f.renew(b))); len(taken) > 0 {
			f.Fatalf("b took %v from a", taken)
		}
	},

	"Acquire leaves shards alone that have moved on": func(f *fixture) {
		a, b := f.member("a"), f.member("b")
		old := seen(f.renew(b))
		f.must(f.Store.Release(f.ctx, a, f.takeAll(a)))
		if taken := f.acquire(b, old); len(taken) > 0 {
			f.Fatalf("b took %v at an epoch that it had not seen", taken)
		}
	},

	"Acquire gives each shard to one of many": func(f *fixture) {
		for range 25 {
			table := seen(f.renew(f.member("a")))
			var (
				wg    sync.WaitGroup
				mu    sync.Mutex
				taken = map[int]int{}
			)
			for _, id := range []string{"a", "b", "c", "d"} {
				wg.Go(func() {
					mine, err := f.Store.Acquire(f.ctx, f.member(id), table)
					if err == nil {
						err = f.Store.Release(f.ctx, f.member(id), mine)
					}
					if err != nil {
						f.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					for _, l := range mine {
						taken[l.Shard]++
					}
				})
			}
			wg.Wait()
			for shard := range f.Shards {
				if taken[shard] != 1 {
					f.Fatalf("shard %d was taken %d times at one epoch", shard, taken[shard])
				}
			}
		}
	},

	"Leases run out by the database's clock": func(f *fixture) {
		f.takeAll(f.brief())
		b := f.member("b")
		f.await("a's leases expired", func() bool {
			table := f.renew(b)
			return table.Shards[0].Expired && table.Shards[0].Owner == "a" && len(table.Live) == 1
		})
		for _, l := range f.takeAll(b) {
			if l.Epoch != 2 {
				f.Errorf("shard %d was taken over at epoch %d, want 2", l.Shard, l.Epoch)
			}
		}
	},

	"Renew prolongs what is still ours, even when it ran out": func(f *fixture) {
		a := f.brief()
		leases := f.takeAll(a)
		f.await("leases expired", func() bool { return f.renew(f.member("b")).Shards[0].Expired })
		a.LeaseTTL = f.member("a").LeaseTTL
		for _, s := range f.renew(a, leases...).Shards {
			if s.Owner != "a" || s.Epoch != 1 || s.Expired {
				f.Errorf("shard %d is %+v, want it renewed", s.Shard, s)
			}
		}
	},

	"Renew leaves alone what was taken over": func(f *fixture) {
		a := f.brief()
		old := f.takeAll(a)
		f.takeAll(f.member("b"))
		for _, s := range f.renew(a, old...).Shards {
			if s.Owner != "b" || s.Epoch != 2 {
				f.Errorf("shard %d is %+v, want it owned by b", s.Shard, s)
			}
		}
	},

	"Renew proves the epoch": func(f *fixture) {
		a := f.brief()
		old := f.takeAll(a)
		f.must(f.Store.Release(f.ctx, a, old))
		f.takeAll(a)
		f.await("the second leases expired", func() bool { return f.renew(f.member("b")).Shards[0].Expired })
		a.LeaseTTL = f.member("a").LeaseTTL
		if s := f.renew(a, old...).Shards[0]; !s.Expired {
			f.Errorf("the lease %+v was renewed by an old epoch", s)
		}
	},

	"Release frees only what is ours": func(f *fixture) {
		a, b := f.member("a"), f.member("b")
		leases := f.takeAll(a)
		f.must(f.Store.Release(f.ctx, b, leases))
		stale := leases[0]
		stale.Epoch--
		f.must(f.Store.Release(f.ctx, a, []relay.Lease{stale}))
		f.must(f.Store.Release(f.ctx, a, leases[1:]))
		for _, s := range f.renew(b).Shards {
			if free := s.Owner == ""; free != (s.Shard > 0) {
				f.Errorf("shard %d is %+v", s.Shard, s)
			}
		}
		if taken := f.acquire(b, seen(f.renew(b))); len(taken) != f.Shards-1 || taken[0].Epoch != 2 {
			f.Errorf("b took %v, want all but shard 0 at epoch 2", taken)
		}
	},
}
