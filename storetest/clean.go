package storetest

import (
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

var cleanTests = map[string]func(*fixture){
	"Clean deletes only what was published before the retention": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "b", "c", "d", "e")
		events := f.readAll()
		f.settle(m, published(events[all[0]], leases), retry(events[all[1]], leases, time.Hour), dead(events[all[2]], leases, "x"),
			published(events[all[4]], leases))
		if deleted := f.cleanAll(time.Hour, 2); deleted != 0 {
			f.Errorf("%d deleted within the retention", deleted)
		}
		f.await("the published events are deleted", func() bool { return f.cleanAll(0, 2) > 0 })
		f.cleanAll(0, 2)
		left, err := f.Operator.Events(f.ctx, operator.Filter{})
		f.must(err)
		var got []string
		for _, row := range left {
			got = append(got, row.ID)
		}
		f.equal("events left", got, all[1:4])
	},

	"Clean walks on over chunks in which nothing is old enough": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "b", "c", "d", "e", "f")
		f.settle(m, published(f.readAll()[all[5]], leases))
		f.await("the last event is deleted", func() bool { return f.cleanAll(0, 2) == 1 })
	},

	"Clean looks at no more rows than the limit": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "b", "c")
		for _, e := range f.readAll() {
			f.settle(m, published(e, leases))
		}
		var first relay.CleanResult
		f.await("the first chunk is old enough", func() bool {
			first = f.clean(relay.CleanRequest{Limit: 2})
			return first.Deleted > 0
		})
		if first.Last != all[1] || first.Deleted > 2 || first.Done {
			f.Errorf("first chunk: %+v", first)
		}
		if rest := f.clean(relay.CleanRequest{After: first.Last, Limit: 2}); rest.Last != all[2] || !rest.Done {
			f.Errorf("last chunk: %+v", rest)
		}
		if none := f.clean(relay.CleanRequest{After: all[2], Limit: 2}); none.Last != all[2] || !none.Done || none.Deleted != 0 {
			f.Errorf("behind the end: %+v", none)
		}
	},

	"Clean is done at the first chunk that is younger than the retention": func(f *fixture) {
		f.addKeys("a", "b", "c")
		if got := f.clean(relay.CleanRequest{Limit: 1, Retention: time.Hour}); !got.Done {
			f.Errorf("got %+v, want it done", got)
		}
	},

	"Clean deletes what was discarded before the retention, with its attempts": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		id := f.addKeys("a")[0]
		f.settle(m, dead(f.readAll()[id], leases, "x"))
		if n, err := f.Operator.Discard(f.ctx, operator.Filter{}, operator.Action{Who: "me", Reason: "test"}); n != 1 || err != nil {
			f.Fatalf("discarded %d, %v", n, err)
		}
		if deleted := f.cleanAll(time.Hour, 10); deleted != 0 {
			f.Errorf("%d deleted within the retention", deleted)
		}
		f.await("the event is deleted", func() bool { return f.cleanAll(0, 10) == 1 })
		if attempts, err := f.Operator.Attempts(f.ctx, id); err != nil || len(attempts) != 0 {
			f.Errorf("attempts left: %v, %v", attempts, err)
		}
	},

	"Backlog counts what waits and how old it is": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		if b := f.backlog(); b != (relay.Backlog{}) {
			f.Errorf("backlog of an empty outbox: %+v", b)
		}
		scheduled := Event{Key: "s", DueIn: time.Hour}
		f.add(scheduled)
		if b := f.backlog(); b.Pending != 1 || b.OldestPending != 0 {
			f.Errorf("backlog of a scheduled event: %+v", b)
		}
		f.addKeys("a", "b", "c")
		events := f.read(f.request())
		f.await("the backlog has an age", func() bool { return f.backlog().OldestPending > 10*time.Millisecond })
		f.settle(m, published(events[0], leases), dead(events[1], leases, "x"), retry(events[2], leases, time.Hour))
		b := f.backlog()
		if b.Pending != 2 || b.Dead != 1 || b.Capped || b.OldestPending <= 10*time.Millisecond || b.OldestPending > time.Minute {
			f.Errorf("backlog of a failed event: %+v", b)
		}
	},

	"Backlog counts a redriven event as waiting": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		id := f.addKeys("a")[0]
		f.settle(m, dead(f.readAll()[id], leases, "x"))
		_, err := f.Operator.Redrive(f.ctx, operator.Filter{State: postrider.StateDead}, operator.Action{Who: "me"})
		f.must(err)
		if b := f.backlog(); b.Pending != 1 || b.Dead != 0 {
			f.Errorf("backlog: %+v", b)
		}
	},
}

func (f *fixture) clean(req relay.CleanRequest) relay.CleanResult {
	f.Helper()
	result, err := f.Store.Clean(f.ctx, req)
	f.must(err)
	return result
}

// cleanAll cleans in chunks from the start to the end and returns how many events were deleted.
func (f *fixture) cleanAll(retention time.Duration, limit int) (deleted int) {
	f.Helper()
	req := relay.CleanRequest{Retention: retention, Limit: limit}
	for range 100 {
		result := f.clean(req)
		deleted += result.Deleted
		if result.Done {
			return deleted
		}
		req.After = result.Last
	}
	f.Fatal("cleaning does not come to an end")
	return 0
}

func (f *fixture) backlog() relay.Backlog {
	f.Helper()
	b, err := f.Store.Backlog(f.ctx)
	f.must(err)
	return b
}
