package storetest

import (
	"errors"
	"strconv"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

var operatorTests = map[string]func(*fixture){
	"Event shows every column": func(f *fixture) {
		version := int64(7)
		id := f.add(Event{
			EventID: "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", AggregateType: "wallet", Key: "k", EventType: "Debited", Version: &version,
			Topic: "wallets", ContentType: "text/json", Headers: `{"a": "b"}`, DedupKey: "d", Payload: []byte(`{"x": 1.0}`), DueIn: time.Hour,
		})[0]
		row := f.row(id)
		if row.ID != id || row.EventID != "0192f0c1-9a3b-7c4d-8e5f-0123456789ab" || row.AggregateType != "wallet" || row.AggregateID != "k" ||
			row.EventType != "Debited" || *row.AggregateVersion != 7 || row.Topic != "wallets" || row.ContentType != "text/json" ||
			row.Headers["a"] != "b" || row.DedupKey != "d" || string(row.Payload) != `{"x": 1.0}` || row.Status != postrider.StatePending ||
			row.RetryCount != 0 || row.LastError != "" || row.PublishedTo != "" || row.PublishedAt != nil {
			f.Errorf("row is %+v", row)
		}
		if row.CreatedAt.Location() != time.UTC || time.Since(row.CreatedAt).Abs() > time.Minute {
			f.Errorf("created_at is %v", row.CreatedAt)
		}
		if wait := row.NextAttemptAt.Sub(row.CreatedAt); wait < 59*time.Minute || wait > 61*time.Minute {
			f.Errorf("next_attempt_at is %v after created_at", wait)
		}
		if byEventID := f.row(row.EventID); byEventID.ID != id {
			f.Errorf("found %s by the event id", byEventID.ID)
		}
	},

	"Event finds nothing by a wrong reference": func(f *fixture) {
		f.addKeys("a")
		for _, ref := range []string{"999999", "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", "x' OR '1'='1", "", "99999999999999999999999999"} {
			if _, err := f.Operator.Event(f.ctx, ref); !errors.Is(err, operator.ErrNotFound) {
				f.Errorf("Event(%q) returned %v, want ErrNotFound", ref, err)
			}
		}
	},

	"Events applies every part of the filter": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.add(
			Event{AggregateType: "x", Key: "1", EventType: "A"},
			Event{AggregateType: "x", Key: "2", EventType: "B"},
			Event{AggregateType: "y", Key: "1", EventType: "A"},
		)
		events := f.readAll()
		f.settle(m, dead(events[all[0]], leases, "Error 100% at host_1"), dead(events[all[1]], leases, "error 100 at hostx1"))
		for _, test := range []struct {
			filter operator.Filter
			want   []string
		}{
			{operator.Filter{}, all},
			{operator.Filter{AggregateType: "x"}, all[:2]},
			{operator.Filter{AggregateID: "2"}, all[1:2]},
			{operator.Filter{EventType: "A", AggregateID: "1"}, []string{all[0], all[2]}},
			{operator.Filter{State: postrider.StateDead}, all[:2]},
			{operator.Filter{State: postrider.StatePending}, all[2:]},
			{operator.Filter{ErrorContains: "error 100"}, all[:2]},
			{operator.Filter{ErrorContains: "100%"}, all[:1]},
			{operator.Filter{ErrorContains: "HOST_1"}, all[:1]},
			{operator.Filter{ErrorContains: "!"}, nil},
			{operator.Filter{IDs: []string{all[1], events[all[2]].EventID, "x"}}, all[1:]},
			{operator.Filter{IDs: []string{"x"}}, nil},
			{operator.Filter{After: all[0], Limit: 1}, all[1:2]},
		} {
			rows, err := f.Operator.Events(f.ctx, test.filter)
			f.must(err)
			var got []string
			for _, row := range rows {
				got = append(got, row.ID)
			}
			if len(got) != len(test.want) {
				f.Errorf("%+v: got %v, want %v", test.filter, got, test.want)
				continue
			}
			f.equal("events", got, test.want)
		}
		if _, err := f.Operator.Events(f.ctx, operator.Filter{State: "SENT' OR '1'='1"}); err == nil {
			f.Error("an unknown state was accepted")
		}
		if _, err := f.Operator.Events(f.ctx, operator.Filter{After: "1 OR true"}); err == nil {
			f.Error("an id that is none was accepted")
		}
	},

	"Redrive makes dead events pending, in outbox order, and keeps who and why": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a", "a", "b")
		for _, id := range all[:3] {
			f.settle(m, dead(f.readAll()[id], leases, "refused"))
		}
		f.equal("events while three are dead", f.readIDs(), all[3:])
		if n := f.redrive(operator.Filter{AggregateID: "a", Limit: 2}); n != 2 {
			f.Errorf("redrove %d, want 2", n)
		}
		f.wantState(all[2], postrider.StateDead)
		if n := f.redrive(operator.Filter{}); n != 1 {
			f.Errorf("redrove %d, want 1", n)
		}
		f.equal("events", f.readIDs(), all)
		row := f.row(all[0])
		if row.Status != postrider.StatePending || row.RetryCount != 0 || row.LastError != "" {
			f.Errorf("row is %+v", row)
		}
		attempts, err := f.Operator.Attempts(f.ctx, all[0])
		f.must(err)
		if len(attempts) != 2 || attempts[0].Outcome != "dead" || attempts[1].Outcome != "redriven" || attempts[1].By != "me" ||
			attempts[1].Error != "fixed" || attempts[1].At.Before(attempts[0].At) {
			f.Errorf("attempts are %+v", attempts)
		}
	},

	"Redrive, Discard and Retry leave other states alone": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.add(Event{Key: "a"}, Event{Key: "b"}, Event{Key: "c", DueIn: time.Hour})
		f.settle(m, published(f.readAll()[all[0]], leases))
		before := []operator.Row{f.row(all[0]), f.row(all[1]), f.row(all[2])}
		act := operator.Action{Who: "me", Reason: "test"}
		for name, do := range map[string]func() (int, error){
			"Redrive": func() (int, error) { return f.Operator.Redrive(f.ctx, operator.Filter{IDs: all}, act) },
			"Discard": func() (int, error) { return f.Operator.Discard(f.ctx, operator.Filter{IDs: all}, act) },
			"Retry":   func() (int, error) { return f.Operator.Retry(f.ctx, operator.Filter{IDs: all}, act) },
		} {
			if n, err := do(); n != 0 || err != nil {
				f.Errorf("%s changed %d, %v", name, n, err)
			}
		}
		for i, id := range all {
			if row := f.row(id); row.Status != before[i].Status || !row.NextAttemptAt.Equal(before[i].NextAttemptAt) {
				f.Errorf("event %s became %+v", id, row)
			}
			if attempts, err := f.Operator.Attempts(f.ctx, id); err != nil || len(attempts) > 0 {
				f.Errorf("attempts of %s: %v, %v", id, attempts, err)
			}
		}
	},

	"Redrive takes more than one chunk": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		const many = 1100
		events := make([]Event, many)
		for i := range events {
			events[i].Key = strconv.Itoa(i)
		}
		f.add(events...)
		req := f.request()
		req.PerShard, req.Limit = many, many
		var all []relay.Settlement
		for _, e := range f.read(req) {
			all = append(all, dead(e, leases, "x"))
		}
		f.settle(m, all...)
		if n := f.redrive(operator.Filter{State: postrider.StateDead}); n != many {
			f.Errorf("redrove %d, want %d", n, many)
		}
		if n := len(f.read(req)); n != many {
			f.Errorf("%d events can be read, want %d", n, many)
		}
	},

	"A settle that comes after a redrive of the same event is still fenced by its state": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		id := f.addKeys("a")[0]
		event := f.readAll()[id]
		f.settle(m, dead(event, leases, "x"))
		if n, err := f.Operator.Discard(f.ctx, operator.Filter{IDs: []string{id}}, operator.Action{Who: "me", Reason: "r"}); n != 1 || err != nil {
			f.Fatalf("discarded %d, %v", n, err)
		}
		f.equal("settled", f.settle(m, published(event, leases)), nil)
		if n := f.redrive(operator.Filter{IDs: []string{id}}); n != 0 {
			f.Errorf("redrove a discarded event")
		}
		f.wantState(id, postrider.StateDiscarded)
	},

	"Discard needs a reason": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		id := f.addKeys("a")[0]
		f.settle(m, dead(f.readAll()[id], leases, "x"))
		if _, err := f.Operator.Discard(f.ctx, operator.Filter{}, operator.Action{Who: "me"}); err == nil {
			f.Error("discarded without a reason")
		}
		f.wantState(id, postrider.StateDead)
	},

	"Retry makes waiting events due and dead ones pending": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a", "b", "c")
		events := f.readAll()
		f.settle(m, retry(events[all[0]], leases, time.Hour), dead(events[all[2]], leases, "x"))
		f.equal("events before", f.readIDs(), all[3:])
		if n, err := f.Operator.Retry(f.ctx, operator.Filter{}, operator.Action{Who: "me"}); n != 2 || err != nil {
			f.Fatalf("retried %d, %v; want 2", n, err)
		}
		f.equal("events after", f.readIDs(), []string{all[0], all[2], all[3]})
		if waiting, dead := f.row(all[0]), f.row(all[2]); waiting.RetryCount != 1 || dead.RetryCount != 0 {
			f.Errorf("attempts are %d and %d, want 1 and 0", waiting.RetryCount, dead.RetryCount)
		}
	},

	"DeadGroups groups by cause": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "b", "c", "d")
		events := f.readAll()
		f.settle(m,
			dead(events[all[0]], leases, `order "A-17" refused after 12 ms by 0192f0c1-9a3b-7c4d-8e5f-0123456789ab`),
			dead(events[all[1]], leases, "no route"),
			dead(events[all[2]], leases, `order "B-9" refused after 7 ms by 0192f0c1-9a3b-7c4d-8e5f-abcdefabcdef`))
		groups, err := f.Operator.DeadGroups(f.ctx, 10)
		f.must(err)
		if len(groups) != 2 || groups[0].Count != 2 || groups[1].Count != 1 || groups[1].Error != "no route" ||
			groups[0].Sample == "" || groups[0].Oldest.IsZero() || groups[0].EventType != "OrderPlaced" {
			f.Errorf("groups are %+v", groups)
		}
		if groups, err = f.Operator.DeadGroups(f.ctx, 1); err != nil || len(groups) != 1 {
			f.Errorf("%d groups, %v; want 1", len(groups), err)
		}
	},

	"Status describes the outbox and its relays": func(f *fixture) {
		a, b := f.member("a"), f.member("b")
		leases := f.takeAll(a)
		f.must(f.Store.Release(f.ctx, a, leases[:1]))
		sink := func(circuit string) []relay.SinkState {
			return []relay.SinkState{{Name: "s", Type: "test", Circuit: circuit}}
		}
		_, err := f.Store.Renew(f.ctx, relay.Heartbeat{Member: b, Sinks: sink("open")}, nil)
		f.must(err)
		_, err = f.Store.Renew(f.ctx, relay.Heartbeat{Member: a, Sinks: sink("closed")}, nil)
		f.must(err)
		all := f.addKeys("k1", "k2")
		events := f.readAll()
		f.must(f.Store.Release(f.ctx, a, nil))
		free := leases[0].Shard
		leases[free] = f.acquire(a, []relay.Lease{leases[free]})[0]
		f.settle(a, retry(events[all[0]], leases, time.Hour), dead(events[all[1]], leases, "x"))
		f.must(f.Store.Release(f.ctx, a, leases[:1]))
		status, err := f.Operator.Status(f.ctx, "main")
		f.must(err)
		if status.States[postrider.StatePending] != 1 || status.States[postrider.StateDead] != 1 || status.OldestPendingSeconds <= 0 {
			f.Errorf("states %v, oldest %v", status.States, status.OldestPendingSeconds)
		}
		if want := (operator.Shards{Total: f.Shards, Owned: f.Shards - 1, Free: 1}); status.Shards != want {
			f.Errorf("shards %+v, want %+v", status.Shards, want)
		}
		if len(status.Relays) != 2 || status.Relays[0].Shards+status.Relays[1].Shards != f.Shards-1 || status.Relays[0].Name != "main" ||
			status.Relays[0].HeartbeatSeconds > 60 {
			f.Errorf("relays %+v", status.Relays)
		}
		if len(status.Sinks) != 1 || status.Sinks[0].Circuit != "open" {
			f.Errorf("sinks %+v, want the worst", status.Sinks)
		}
		if g := status.KeyGroups; len(g) != 1 || g[0].OldestKey != "k1" || g[0].Shard != events[all[0]].Shard || g[0].LastError == "" ||
			g[0].OldestEventID != events[all[0]].EventID {
			f.Errorf("key groups %+v", g)
		}
		other, err := f.Operator.Status(f.ctx, "other")
		f.must(err)
		if other.Shards.Total != 0 || len(other.Relays) != 0 {
			f.Errorf("shards and relays of another name: %+v, %+v", other.Shards, other.Relays)
		}
	},
}

func (f *fixture) redrive(filter operator.Filter) int {
	f.Helper()
	n, err := f.Operator.Redrive(f.ctx, filter, operator.Action{Who: "me", Reason: "fixed"})
	f.must(err)
	return n
}
