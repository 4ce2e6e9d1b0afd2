package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// fixture gives the tests short words for what they do over and over.
type fixture struct {
	*testing.T
	Harness
	ctx          context.Context
	killerLeases []relay.Lease // of the member that kills events; see killFor
}

// must ends the test on an error.
func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// await ends the test when cond does not come true.
func (f *fixture) await(what string, cond func() bool) {
	f.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-f.ctx.Done():
			f.Fatalf("waited in vain: %s", what)
		}
	}
}

func (f *fixture) equal(what string, got, want []string) {
	f.Helper()
	if !slices.Equal(got, want) {
		f.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

// member is a relay of the name "main" whose leases last longer than any test.
func (f *fixture) member(id string) relay.Member {
	return relay.Member{Name: "main", ID: id, Host: "host", Version: "test", Shards: f.Shards, LeaseTTL: 10 * time.Minute}
}

// brief is the member "a" with leases that run out at once.
func (f *fixture) brief() relay.Member {
	m := f.member("a")
	m.LeaseTTL = 20 * time.Millisecond
	return m
}

func (f *fixture) renew(m relay.Member, held ...relay.Lease) relay.LeaseTable {
	f.Helper()
	table, err := f.Store.Renew(f.ctx, relay.Heartbeat{Member: m}, held)
	f.must(err)
	return table
}

// seen is what a member would try to acquire after it saw the table.
func seen(table relay.LeaseTable) []relay.Lease {
	var leases []relay.Lease
	for _, s := range table.Shards {
		leases = append(leases, s.Lease)
	}
	return leases
}

func (f *fixture) acquire(m relay.Member, seen []relay.Lease) []relay.Lease {
	f.Helper()
	taken, err := f.Store.Acquire(f.ctx, m, seen)
	f.must(err)
	return taken
}

// takeAll makes the member own all shards, once the leases of others have run out, and returns its leases by shard.
func (f *fixture) takeAll(m relay.Member) []relay.Lease {
	f.Helper()
	leases := make([]relay.Lease, f.Shards)
	left := f.Shards
	f.await("all shards acquired", func() bool {
		for _, l := range f.acquire(m, seen(f.renew(m))) {
			leases[l.Shard] = l
			left--
		}
		return left == 0
	})
	return leases
}

// add commits the events in one transaction and returns their ids.
func (f *fixture) add(events ...Event) []string {
	f.Helper()
	tx := f.Begin(f.T)
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = tx.Add(f.T, complete(e))
	}
	tx.Commit(f.T)
	return ids
}

// addKeys commits one event for each key.
func (f *fixture) addKeys(keys ...string) []string {
	f.Helper()
	events := make([]Event, len(keys))
	for i, key := range keys {
		events[i] = Event{Key: key}
	}
	return f.add(events...)
}

func complete(e Event) Event {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&e.AggregateType, "order")
	fill(&e.Key, "key")
	fill(&e.EventType, "OrderPlaced")
	if e.Payload == nil {
		e.Payload = []byte(`{"n": 1}`)
	}
	return e
}

// request asks for everything.
func (f *fixture) request() relay.ReadRequest {
	req := relay.ReadRequest{PerShard: 1000, Limit: 1000, MaxBytes: 1 << 24}
	for shard := range f.Shards {
		req.Shards = append(req.Shards, shard)
	}
	return req
}

func (f *fixture) read(req relay.ReadRequest) []relay.Event {
	f.Helper()
	events, err := f.Store.Read(f.ctx, req)
	f.must(err)
	return events
}

// readAll returns all that may be sent now, by id.
func (f *fixture) readAll() map[string]relay.Event {
	f.Helper()
	events := map[string]relay.Event{}
	for _, e := range f.read(f.request()) {
		events[e.ID] = e
	}
	return events
}

// readIDs returns the ids of all that may be sent now, in ascending order.
func (f *fixture) readIDs() []string {
	f.Helper()
	return sorted(ids(f.read(f.request())))
}

func ids(events []relay.Event) []string {
	list := []string{}
	for _, e := range events {
		list = append(list, e.ID)
	}
	return list
}

// sorted puts ids, which are numbers, into their order.
func sorted(ids []string) []string {
	slices.SortFunc(ids, compareIDs)
	return ids
}

func compareIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return slices.Compare([]byte(a), []byte(b))
}

// sameShard returns n keys of one shard, each with an event, and the ids of those events.
func (f *fixture) sameShard(n int) (shard int, keys, eventIDs []string) {
	f.Helper()
	var many []string
	for i := range n * f.Shards {
		many = append(many, "key-"+string(rune('a'+i)))
	}
	f.addKeys(many...)
	byShard := map[int][]relay.Event{}
	for _, e := range f.read(f.request()) {
		byShard[e.Shard] = append(byShard[e.Shard], e)
	}
	for shard, events := range byShard {
		if len(events) >= n {
			for _, e := range events[:n] {
				keys = append(keys, e.AggregateID)
			}
			return shard, keys, ids(events[:n])
		}
	}
	f.Fatalf("no shard has %d of %d keys", n, len(many))
	return 0, nil, nil
}

func (f *fixture) settle(m relay.Member, settlements ...relay.Settlement) []string {
	f.Helper()
	settled, err := f.Store.Settle(f.ctx, m, settlements)
	f.must(err)
	return sorted(settled)
}

// published, retry and dead settle an event under the lease of its shard.
func published(e relay.Event, leases []relay.Lease) relay.Settlement {
	return relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePublished, PublishedTo: "test:" + e.ID}
}

func retry(e relay.Event, leases []relay.Lease, after time.Duration) relay.Settlement {
	return relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePending,
		RetryCount: e.RetryCount + 1, RetryAfter: after, Error: "broker says no"}
}

func dead(e relay.Event, leases []relay.Lease, reason string) relay.Settlement {
	return relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StateDead, RetryCount: e.RetryCount + 1, Error: reason}
}

func (f *fixture) row(id string) operator.Row {
	f.Helper()
	row, err := f.Operator.Event(f.ctx, id)
	f.must(err)
	return row
}

func (f *fixture) wantState(id string, want postrider.State) {
	f.Helper()
	if got := f.row(id).Status; got != want {
		f.Fatalf("event %s is %s, want %s", id, got, want)
	}
}
