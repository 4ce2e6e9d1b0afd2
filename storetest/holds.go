package storetest

import (
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

var holdTests = map[string]func(*fixture){
	"A held key is held absolutely, and no other one": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		_, keys, first := f.sameShard(2)
		all := f.addKeys(keys[0], keys[0], keys[0], keys[1])
		events := f.readAll()
		f.settle(m, retry(events[all[0]], leases, 0))
		f.settle(m, holding(events[all[1]], leases))
		all = append(all, f.addKeys(keys[0])...)
		events = f.readAll()
		for _, id := range []string{first[1], all[3]} {
			if !has(events, id) {
				f.Errorf("%v were read without %s", f.readIDs(), id)
			}
		}
		for _, id := range []string{first[0], all[0], all[1], all[2], all[4]} {
			if has(events, id) {
				f.Errorf("%v were read, with %s", f.readIDs(), id)
			}
		}
	},

	"A dead event that does not hold its key holds nothing": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a")
		f.settle(m, dead(f.readAll()[all[0]], leases, "refused"))
		f.equal("events", f.readIDs(), all[1:])
	},

	"A held key keeps lower versions of its aggregate as well": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		one, two := int64(1), int64(2)
		all := f.add(Event{Version: &two}, Event{Version: &one}, Event{})
		f.settle(m, holding(f.readAll()[all[0]], leases))
		f.equal("events", f.readIDs(), []string{})
	},

	"Held keys do not fill the batch": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		_, keys, first := f.sameShard(2)
		var outcomes []relay.Settlement
		for id, e := range f.readAll() {
			if id == first[0] {
				outcomes = append(outcomes, holding(e, leases))
			} else {
				outcomes = append(outcomes, published(e, leases))
			}
		}
		f.settle(m, outcomes...)
		for range 5 {
			f.addKeys(keys[0])
		}
		free := f.addKeys(keys[1])[0]
		req := f.request()
		req.PerShard = 1
		f.equal("events", ids(f.read(req)), []string{free})
	},

	"Settle holds no key without the lease": func(f *fixture) {
		a := f.brief()
		stale := f.takeAll(a)
		all := f.addKeys("a", "a")
		event := f.readAll()[all[0]]
		fresh := f.takeAll(f.member("b"))
		f.equal("held at a stale epoch", f.settle(a, holding(event, stale)), nil)
		f.equal("held at another's epoch", f.settle(a, holding(event, fresh)), nil)
		f.equal("events", f.readIDs(), all)
		f.wantHeldKeys(0)
	},

	"Settle holds no key for an event that has left PENDING": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a")
		event := f.readAll()[all[0]]
		f.settle(m, dead(event, leases, "refused"))
		f.equal("held after its death", f.settle(m, holding(event, leases)), nil)
		f.equal("events", f.readIDs(), all[1:])
		f.wantHeldKeys(0)
	},

	"Redrive lets a key go when nothing else holds it": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a", "a", "a", "b", "b")
		events := f.readAll()
		f.settle(m, holding(events[all[0]], leases), holding(events[all[1]], leases), holding(events[all[2]], leases), holding(events[all[4]], leases))
		f.equal("events while the keys are held", f.readIDs(), []string{})
		if n := f.redrive(operator.Filter{AggregateID: "a", Limit: 2}); n != 2 {
			f.Fatalf("redrove %d, want 2", n)
		}
		f.equal("events while another one holds the key", f.readIDs(), []string{})
		f.wantHeldKeys(2)
		if n := f.redrive(operator.Filter{AggregateID: "a"}); n != 1 {
			f.Fatalf("redrove %d, want 1", n)
		}
		if row := f.row(all[2]); row.Holds || row.RetryCount != 0 || row.LastError != "" {
			f.Errorf("row is %+v", row)
		}
		f.equal("events of the key", ids(f.read(f.request())), all[:4])
		f.wantHeldKeys(1)
	},

	"Redriven events leave as one batch, in order, before later ones of their key": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		keys := slices.Repeat([]string{"a"}, 105)
		all := f.addKeys(keys...)
		var outcomes []relay.Settlement
		for _, e := range f.read(f.request())[:100] {
			outcomes = append(outcomes, holding(e, leases))
		}
		f.settle(m, outcomes...)
		f.equal("events while the key is held", f.readIDs(), []string{})
		if n := f.redrive(operator.Filter{}); n != 100 {
			f.Fatalf("redrove %d, want 100", n)
		}
		f.equal("events", ids(f.read(f.request())), all)
		req := f.request()
		req.PerShard = 7
		var sent []string
		for events := f.read(req); len(events) > 0; events = f.read(req) {
			if want := min(7, len(all)-len(sent)); len(events) != want {
				f.Fatalf("a read returns %d events, want %d", len(events), want)
			}
			for _, e := range events {
				f.settle(m, published(e, leases))
			}
			sent = append(sent, ids(events)...)
		}
		f.equal("sent", sent, all)
	},

	"Redriven events are not passed beside many retries": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		_, keys, first := f.sameShard(6)
		all := append(first[:1:1], f.addKeys(keys[0], keys[0])...)
		events := f.readAll()
		f.settle(m, holding(events[all[0]], leases), holding(events[all[1]], leases))
		retried := f.addKeys(keys[1:]...)
		events = f.readAll()
		for _, id := range retried {
			f.settle(m, retry(events[id], leases, 0))
		}
		f.await("the retries are due", func() bool { return has(f.readAll(), retried[len(retried)-1]) })
		f.redrive(operator.Filter{})
		req := f.request()
		req.PerShard = 2
		var sent []string
		for len(sent) < len(all) {
			events := f.read(req)
			if len(events) == 0 {
				f.Fatalf("only %v were read", sent)
			}
			for _, e := range events {
				if e.AggregateID == keys[0] {
					sent = append(sent, e.ID)
				}
				f.settle(m, published(e, leases))
			}
		}
		f.equal("sent", sent, all)
	},

	"Redrive and a new death hold the key again": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a")
		f.settle(m, holding(f.readAll()[all[0]], leases))
		f.redrive(operator.Filter{})
		f.settle(m, holding(f.readAll()[all[0]], leases))
		f.equal("events", f.readIDs(), []string{})
		f.wantHeldKeys(1)
		f.redrive(operator.Filter{})
		f.settle(m, dead(f.readAll()[all[0]], leases, "refused"))
		f.equal("events after a death that does not hold", f.readIDs(), all[1:])
		f.wantHeldKeys(0)
	},

	"Retry lets a held key go like Redrive": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a")
		f.settle(m, holding(f.readAll()[all[0]], leases))
		if n, err := f.Operator.Retry(f.ctx, operator.Filter{IDs: all[:1]}, operator.Action{Who: "me"}); n != 1 || err != nil {
			f.Fatalf("retried %d, %v", n, err)
		}
		f.equal("events", ids(f.read(f.request())), all)
	},

	"Discard lets a key go when nothing else holds it": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a", "a")
		events := f.readAll()
		f.settle(m, holding(events[all[0]], leases), holding(events[all[1]], leases))
		discard := func(id string) {
			f.Helper()
			n, err := f.Operator.Discard(f.ctx, operator.Filter{IDs: []string{id}}, operator.Action{Who: "me", Reason: "r"})
			if n != 1 || err != nil {
				f.Fatalf("discarded %d, %v", n, err)
			}
		}
		discard(all[0])
		f.equal("events while another one holds the key", f.readIDs(), []string{})
		discard(all[1])
		f.equal("events", f.readIDs(), all[2:])
		if f.row(all[0]).Holds {
			f.Error("a discarded event holds its key")
		}
		f.wantHeldKeys(0)
	},

	"Cleaning leaves held keys held": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a")
		f.settle(m, holding(f.readAll()[all[0]], leases))
		f.cleanAll(0, 10)
		if tidier, ok := f.Store.(relay.Tidier); ok {
			f.must(tidier.Tidy(f.ctx))
		}
		f.equal("events", f.readIDs(), []string{})
		f.wantHeldKeys(1)
	},

	"Event and Status tell which keys are held": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a", "b", "c")
		events := f.readAll()
		f.settle(m, holding(events[all[0]], leases), holding(events[all[1]], leases), holding(events[all[2]], leases),
			dead(events[all[3]], leases, "refused"))
		for id, want := range map[string]bool{all[0]: true, all[1]: true, all[2]: true, all[3]: false} {
			if row := f.row(id); row.Holds != want || row.Status != postrider.StateDead {
				f.Errorf("row is %+v, want that it holds: %v", row, want)
			}
		}
		f.wantHeldKeys(2)
		groups, err := f.Operator.DeadGroups(f.ctx, 10)
		f.must(err)
		if len(groups) != 1 || groups[0].Count != 4 || groups[0].Holding != 3 {
			f.Errorf("groups are %+v, want that three of four events hold their keys", groups)
		}
		f.redrive(operator.Filter{})
		f.wantHeldKeys(0)
	},

	"What waits behind a held key is the oldest": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a")
		f.settle(m, holding(f.readAll()[all[0]], leases))
		f.await("the event is old", func() bool { return f.backlog().OldestPending > 0 }) // ages are told in milliseconds
		if backlog := f.backlog(); backlog.Pending != 1 || backlog.Dead != 1 {
			f.Errorf("the backlog is %+v", backlog)
		}
	},
}

// holding settles an event as DEAD so that it holds its key.
func holding(e relay.Event, leases []relay.Lease) relay.Settlement {
	s := dead(e, leases, "refused")
	s.HoldsKey = true
	return s
}

func (f *fixture) wantHeldKeys(want int) {
	f.Helper()
	status, err := f.Operator.Status(f.ctx, "main")
	f.must(err)
	if status.HeldKeys != int64(want) {
		f.Errorf("%d keys are held, want %d", status.HeldKeys, want)
	}
}
