package storetest

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

var settleTests = map[string]func(*fixture){
	"Settle writes published events": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "b")
		events := f.readAll()
		f.equal("settled", f.settle(m, published(events[all[0]], leases), published(events[all[1]], leases)), all)
		row := f.row(all[0])
		if row.Status != postrider.StatePublished || row.PublishedTo != "test:"+all[0] || row.PublishedAt == nil || row.LastError != "" {
			f.Errorf("row is %+v", row)
		}
		if age := time.Since(*row.PublishedAt); age < -time.Minute || age > time.Minute {
			f.Errorf("published_at is %v, %v ago", row.PublishedAt, age)
		}
	},

	"Settle writes retries and deaths, and keeps them as attempts": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "b")
		events := f.readAll()
		f.equal("settled", f.settle(m, retry(events[all[0]], leases, time.Hour), dead(events[all[1]], leases, "refused")), all)
		if row := f.row(all[0]); row.Status != postrider.StatePending || row.RetryCount != 1 || row.LastError != "broker says no" ||
			row.NextAttemptAt.Sub(row.CreatedAt) < 59*time.Minute || row.NextAttemptAt.Sub(row.CreatedAt) > 61*time.Minute {
			f.Errorf("row after a failed attempt is %+v", row)
		}
		if row := f.row(all[1]); row.Status != postrider.StateDead || row.RetryCount != 1 || row.LastError != "refused" {
			f.Errorf("row after the last attempt is %+v", row)
		}
		for id, want := range map[string]string{all[0]: "retry broker says no a", all[1]: "dead refused a"} {
			attempts, err := f.Operator.Attempts(f.ctx, id)
			f.must(err)
			if len(attempts) != 1 || attempts[0].Outcome+" "+attempts[0].Error+" "+attempts[0].By != want {
				f.Errorf("attempts of %s are %+v, want %q", id, attempts, want)
			}
		}
	},

	"Settle clears the error of an event that was published after all": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		id := f.addKeys("a")[0]
		f.settle(m, retry(f.readAll()[id], leases, 0))
		f.await("the retry is due", func() bool { return has(f.readAll(), id) })
		f.settle(m, published(f.readAll()[id], leases))
		if row := f.row(id); row.LastError != "" || row.RetryCount != 1 {
			f.Errorf("row is %+v", row)
		}
	},

	"Settle changes nothing without the lease": func(f *fixture) {
		a := f.brief()
		stale := f.takeAll(a)
		id := f.addKeys("a")[0]
		event := f.readAll()[id]
		b := f.member("b")
		fresh := f.takeAll(b)
		f.equal("settled at a stale epoch", f.settle(a, published(event, stale)), nil)
		f.equal("settled at another's epoch", f.settle(a, published(event, fresh)), nil)
		f.equal("retried at another's epoch", f.settle(a, retry(event, fresh, 0)), nil)
		f.equal("retried at a stale epoch", f.settle(a, retry(event, stale, 0)), nil)
		f.equal("given up at a stale epoch", f.settle(a, dead(event, stale, "x")), nil)
		f.equal("settled by the owner at a stale epoch", f.settle(b, published(event, stale)), nil)
		f.equal("retried by the owner at a stale epoch", f.settle(b, retry(event, stale, 0)), nil)
		f.wantState(id, postrider.StatePending)
		if attempts, err := f.Operator.Attempts(f.ctx, id); err != nil || len(attempts) > 0 {
			f.Errorf("attempts %v, %v; want none", attempts, err)
		}
		f.equal("settled by the owner", f.settle(b, published(event, fresh)), []string{id})
	},

	"Settle proves the lease of the event's own shard": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		id := f.addKeys("a")[0]
		event := f.readAll()[id]
		wrong := published(event, leases)
		wrong.Lease = leases[(event.Shard+1)%f.Shards]
		f.equal("settled under another shard's lease", f.settle(m, wrong), nil)
		f.wantState(id, postrider.StatePending)
	},

	"Settle accepts a lease that ran out while nobody took it": func(f *fixture) {
		a := f.brief()
		leases := f.takeAll(a)
		id := f.addKeys("a")[0]
		f.await("leases expired", func() bool { return f.renew(f.member("b")).Shards[0].Expired })
		f.equal("settled", f.settle(a, published(f.readAll()[id], leases)), []string{id})
	},

	"Settle fences each shard by itself": func(f *fixture) {
		a, b := f.member("a"), f.member("b")
		leases := f.takeAll(a)
		f.must(f.Store.Release(f.ctx, a, leases[:1]))
		f.acquire(b, []relay.Lease{leases[0]})
		f.addKeys("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p")
		var all []relay.Settlement
		var want []string
		for _, e := range f.read(f.request()) {
			all = append(all, published(e, leases))
			if e.Shard != 0 {
				want = append(want, e.ID)
			}
		}
		if len(want) == len(all) {
			f.Fatal("no event is in shard 0")
		}
		f.equal("settled", f.settle(a, all...), sorted(want))
	},

	"Settle writes an event once": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		id := f.addKeys("a")[0]
		event := f.readAll()[id]
		f.settle(m, dead(event, leases, "x"))
		f.equal("settled again", f.settle(m, published(event, leases)), nil)
		f.equal("given up again", f.settle(m, dead(event, leases, "y")), nil)
		f.wantState(id, postrider.StateDead)
	},

	"Settle racing a takeover loses or wins as a whole": func(f *fixture) {
		a := f.brief()
		leases := f.takeAll(a)
		b := f.member("b")
		keys := strings.Split(strings.Repeat("abcdefghijklmnop", 10), "")
		f.addKeys(keys...)
		var all []relay.Settlement
		for _, e := range f.read(f.request()) {
			all = append(all, published(e, leases))
		}
		table := f.renew(b)
		f.await("leases expired", func() bool { table = f.renew(b); return table.Shards[0].Expired })
		var (
			wg      sync.WaitGroup
			settled []string
		)
		wg.Go(func() {
			var err error
			if settled, err = f.Store.Settle(f.ctx, a, all); err != nil {
				f.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := f.Store.Acquire(f.ctx, b, seen(table)); err != nil {
				f.Error(err)
			}
		})
		wg.Wait()
		left := f.readAll()
		if len(settled)+len(left) != len(all) {
			f.Fatalf("%d settled and %d left of %d", len(settled), len(left), len(all))
		}
		f.equal("settled by the stale owner after the race", f.settle(a, all...), f.stillOwned(left, a))
	},

	"Settle cuts and cleans the error": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		for _, reason := range []string{
			"nul \x00 byte", "broken \xff\xfe utf-8", strings.Repeat("😀", 5000), "x" + strings.Repeat("ü", 5000), strings.Repeat("\x00", 5000), "",
		} {
			id := f.addKeys("a")[0]
			f.equal("settled", f.settle(m, dead(f.readAll()[id], leases, reason)), []string{id})
			got := f.row(id).LastError
			if got == "" || len(got) > 3000 || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
				f.Errorf("error %.20q became %.20q of %d bytes", reason, got, len(got))
			}
			if reason != "" && utf8.ValidString(reason) && !strings.Contains(reason, "\x00") && !strings.HasPrefix(reason, got) {
				f.Errorf("error %.20q became %.20q", reason, got)
			}
		}
	},

	"Settle cleans the coordinates": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		id := f.addKeys("a")[0]
		one := published(f.readAll()[id], leases)
		one.PublishedTo = "test:\x00\xff" + strings.Repeat("😀", 5000)
		f.equal("settled", f.settle(m, one), []string{id})
	},

	"Settle clamps the delay of a retry": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "b")
		events := f.readAll()
		f.settle(m, retry(events[all[0]], leases, 1<<63-1), retry(events[all[1]], leases, -1<<63))
		if row := f.row(all[0]); !row.NextAttemptAt.After(row.CreatedAt.Add(24 * time.Hour)) {
			f.Errorf("a very long delay became %v", row.NextAttemptAt)
		}
		f.await("the other retry is due", func() bool { return has(f.readAll(), all[1]) })
	},

	"Settle refuses states that are no outcomes": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		id := f.addKeys("a")[0]
		one := published(f.readAll()[id], leases)
		one.State = postrider.StateDiscarded
		if _, err := f.Store.Settle(f.ctx, m, []relay.Settlement{one}); err == nil {
			f.Error("DISCARDED was accepted as an outcome")
		}
	},
}

// stillOwned returns the ids of those events whose shard is owned by m, in ascending order.
func (f *fixture) stillOwned(events map[string]relay.Event, m relay.Member) []string {
	f.Helper()
	owner := map[int]string{}
	for _, s := range f.renew(f.member("b")).Shards {
		owner[s.Shard] = s.Owner
	}
	var list []string
	for id, e := range events {
		if owner[e.Shard] == m.ID {
			list = append(list, id)
		}
	}
	return sorted(list)
}
