package storetest

import (
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// addVersions commits one event of one aggregate for each version, in this outbox order, and returns their ids.
func (f *fixture) addVersions(versions ...int64) []string {
	f.Helper()
	events := make([]Event, len(versions))
	for i := range versions {
		events[i] = Event{Key: "k", Version: &versions[i]}
	}
	return f.add(events...)
}

// wantAfter checks which version each event that may be read waits for; 0 means none.
func (f *fixture) wantAfter(what string, want map[string]int64) {
	f.Helper()
	events := f.readAll()
	if len(events) != len(want) {
		f.Fatalf("%s: %d events may be read, want %d", what, len(events), len(want))
	}
	for id, version := range want {
		e, read := events[id]
		switch {
		case !read:
			f.Fatalf("%s: event %s may not be read", what, id)
		case version == 0 && e.After != nil:
			f.Fatalf("%s: event %s waits for version %d, want none", what, id, *e.After)
		case version > 0 && (e.After == nil || *e.After != version):
			f.Fatalf("%s: event %s waits for %v, want version %d", what, id, e.After, version)
		}
	}
}

// hold lets an event wait as the relay does that finds a version missing.
func hold(e relay.Event, leases []relay.Lease) relay.Settlement {
	s := retry(e, leases, 0)
	s.Held, s.RetryCount, s.Error = true, e.RetryCount, "waits for a version"
	return s
}

var versionTests = map[string]func(*fixture){
	"Read tells no version to wait for when versions follow one another": func(f *fixture) {
		all := f.addVersions(7, 8, 9)
		f.add(Event{Key: "k"}, Event{Key: "other"})
		for id, e := range f.readAll() {
			if e.After != nil {
				f.Errorf("event %s waits for version %d", id, *e.After)
			}
		}
		m := f.member("a")
		leases := f.takeAll(m)
		f.settle(m, published(f.readAll()[all[0]], leases))
		if e := f.readAll()[all[1]]; e.After != nil {
			f.Errorf("version 8 waits for %d, which has left", *e.After)
		}
	},

	"Read tells which version is missing": func(f *fixture) {
		all := f.addVersions(1, 3, 4)
		f.wantAfter("nothing has left", map[string]int64{all[0]: 0, all[1]: 2, all[2]: 0})
		m := f.member("a")
		leases := f.takeAll(m)
		f.settle(m, published(f.readAll()[all[0]], leases))
		f.wantAfter("version 1 has left", map[string]int64{all[1]: 2, all[2]: 0})
	},

	"Read tells the lowest version that waits to go first": func(f *fixture) {
		all := f.addVersions(6, 5)
		f.wantAfter("version 5 stands behind 6", map[string]int64{all[0]: 5, all[1]: 0})
	},

	"Read keeps the versions of aggregates with one key apart": func(f *fixture) {
		one, three := int64(1), int64(3)
		a := f.add(Event{AggregateType: "order", Key: "k", Version: &one}, Event{AggregateType: "invoice", Key: "k", Version: &three})
		m := f.member("a")
		leases := f.takeAll(m)
		f.settle(m, published(f.readAll()[a[0]], leases))
		f.wantAfter("the other aggregate has none that left", map[string]int64{a[1]: 0})
	},

	"Settle lets an event wait without an attempt": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addVersions(1, 3, 4)
		e := f.readAll()
		f.equal("settled", f.settle(m, published(e[all[0]], leases), hold(e[all[1]], leases)), all[:2])
		row := f.row(all[1])
		if row.Status != postrider.StatePending || row.RetryCount != 0 || row.LastError != "waits for a version" {
			f.Errorf("row is %+v", row)
		}
		attempts, err := f.Operator.Attempts(f.ctx, all[1])
		f.must(err)
		if len(attempts) > 0 {
			f.Errorf("attempts are %+v", attempts)
		}
		f.await("only the held event may be read", func() bool { return has(f.readAll(), all[1]) })
		f.wantAfter("the later version waits behind it", map[string]int64{all[1]: 2})
	},

	"A missing version passes the events that wait for it": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addVersions(1, 3)
		e := f.readAll()
		f.settle(m, published(e[all[0]], leases), hold(e[all[1]], leases))
		two := f.addVersions(2)[0]
		f.await("the held event is due", func() bool { return has(f.readAll(), all[1]) })
		f.wantAfter("it stands behind the event that waits for it", map[string]int64{two: 0, all[1]: 2})
		f.settle(m, published(f.readAll()[two], leases))
		f.wantAfter("it has left", map[string]int64{all[1]: 0})
	},

	"A version has left also when its event is DEAD, but not while it is tried again": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addVersions(1, 2, 3)
		f.settle(m, retry(f.readAll()[all[0]], leases, 0))
		f.await("the retry is due", func() bool { return has(f.readAll(), all[0]) })
		f.wantAfter("version 1 is tried again", map[string]int64{all[0]: 0})
		f.settle(m, dead(f.readAll()[all[0]], leases, "refused"))
		f.wantAfter("version 1 is DEAD", map[string]int64{all[1]: 0, all[2]: 0})
		four := f.addVersions(5)[0]
		f.settle(m, published(f.readAll()[all[1]], leases), published(f.readAll()[all[2]], leases))
		f.wantAfter("version 3 has left", map[string]int64{four: 4})
	},

	"A stale settle lets no version leave": func(f *fixture) {
		a := f.brief()
		stale := f.takeAll(a)
		all := f.addVersions(1, 3)
		e := f.readAll()
		b := f.member("b")
		leases := f.takeAll(b)
		f.settle(a, dead(e[all[1]], stale, "refused"), published(e[all[1]], stale))
		f.settle(b, published(e[all[0]], leases))
		f.wantAfter("only version 1 has left", map[string]int64{all[1]: 2})
	},

	"A held event is the oldest that waits": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addVersions(1, 3)
		e := f.readAll()
		held := hold(e[all[1]], leases)
		held.RetryAfter = time.Hour
		f.settle(m, published(e[all[0]], leases), held)
		status, err := f.Operator.Status(f.ctx, "main")
		f.must(err)
		if len(status.KeyGroups) != 1 || status.KeyGroups[0].LastError != "waits for a version" || status.KeyGroups[0].OldestKey != "k" {
			f.Errorf("status shows %+v", status.KeyGroups)
		}
	},
}
