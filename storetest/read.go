package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

var readTests = map[string]func(*fixture){
	"Read returns every column as it was written": func(f *fixture) {
		version := int64(1) << 60
		id := f.add(Event{
			EventID: "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", AggregateType: "wallet", Key: "ключ-🔑", EventType: "Debited",
			Version: &version, Topic: "wallets", ContentType: "application/vnd.test+json",
			Headers: `{"traceparent": "00-1", "x": "ü"}`, Payload: []byte(`{"a": 1}`),
		})[0]
		got := f.readAll()[id]
		want := relay.Event{
			ID: id, EventID: "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", Shard: got.Shard, AggregateType: "wallet", AggregateID: "ключ-🔑",
			EventType: "Debited", Topic: "wallets", ContentType: "application/vnd.test+json",
		}
		if got.AggregateVersion == nil || *got.AggregateVersion != version {
			f.Errorf("aggregate version %v, want %d", got.AggregateVersion, version)
		}
		if string(got.Payload) != `{"a": 1}` || len(got.Headers) != 2 || got.Headers["x"] != "ü" || got.Headers["traceparent"] != "00-1" {
			f.Errorf("payload %s, headers %v", got.Payload, got.Headers)
		}
		if got.Age < 0 || got.Age > time.Minute {
			f.Errorf("age %v of a new event", got.Age)
		}
		got.AggregateVersion, got.Payload, got.Headers, got.Age = nil, nil, nil, 0
		if got.Malformed != nil || got.Kind() != want.Kind() || got.EventID != want.EventID || got.AggregateID != want.AggregateID ||
			got.Topic != want.Topic || got.ContentType != want.ContentType || got.RetryCount != 0 {
			f.Errorf("got %+v, want %+v", got, want)
		}
	},

	"Read returns the defaults": func(f *fixture) {
		id := f.addKeys("a")[0]
		got := f.readAll()[id]
		if len(got.EventID) != 36 || !strings.ContainsRune("47", rune(got.EventID[14])) || got.AggregateVersion != nil || got.Topic != "" ||
			got.ContentType != "application/json" || got.Headers != nil || got.Malformed != nil {
			f.Errorf("got %+v", got)
		}
	},

	"Read returns the exact bytes of the payload": func(f *fixture) {
		for _, payload := range []string{
			`{"a":1.0,"b":1e400,"a":2}`, ` { "spaces" :  [ 1 , 2 ] } `, "{\n\t\"z\": 1, \"a\": 2}", `"😀 ü"`, `"\u0000\ud83d\ude00\/"`, `-0.0`, `null`,
			`"` + strings.Repeat("long ", 100_000) + `"`,
		} {
			id := f.add(Event{Payload: []byte(payload)})[0]
			if got := string(f.readAll()[id].Payload); got != payload {
				f.Errorf("payload %.60q came back as %.60q", payload, got)
			}
		}
	},

	"Read gives an event with malformed headers its reason": func(f *fixture) {
		ids := f.add(Event{Headers: `{"n": "1"}`}, Event{Headers: `{"n": 1}`}, Event{Headers: `{"n": null}`})
		events := f.readAll()
		for i, id := range ids {
			if malformed := events[id].Malformed; (malformed != nil) != (i > 0) {
				f.Errorf("event %d: malformed is %v; want an error for all but the first", i, malformed)
			}
		}
	},

	"Read never returns what was rolled back": func(f *fixture) {
		tx := f.Begin(f.T)
		tx.Add(f.T, complete(Event{}))
		f.equal("events of an open transaction", f.readIDs(), []string{})
		tx.Rollback(f.T)
		f.equal("events after the rollback", f.readIDs(), []string{})
	},

	"Read finds a lower id that committed later": func(f *fixture) {
		if f.SerialWriters {
			tx := f.Begin(f.T)
			id := tx.Add(f.T, complete(Event{}))
			f.equal("events of an open transaction", f.readIDs(), []string{})
			tx.Commit(f.T)
			f.equal("events after the commit", f.readIDs(), []string{id})
			return
		}
		slow := f.Begin(f.T)
		lower := slow.Add(f.T, complete(Event{Key: "slow"}))
		higher := f.addKeys("fast")[0]
		f.equal("events before the slow commit", f.readIDs(), []string{higher})
		f.settle(f.member("a"), published(f.readAll()[higher], f.takeAll(f.member("a"))))
		slow.Commit(f.T)
		f.equal("events after the slow commit", f.readIDs(), []string{lower})
	},

	"Read returns each shard in outbox order, shards in the order asked for": func(f *fixture) {
		for range 3 {
			f.addKeys("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
		}
		req := f.request()
		slices.Reverse(req.Shards)
		events := f.read(req)
		if len(events) != 30 {
			f.Fatalf("%d events, want 30", len(events))
		}
		if !slices.IsSortedFunc(events, func(a, b relay.Event) int {
			if a.Shard != b.Shard {
				return b.Shard - a.Shard
			}
			return compareIDs(a.ID, b.ID)
		}) {
			f.Errorf("order is %v", ids(events))
		}
	},

	"Read keeps a key in one shard, within the number of shards": func(f *fixture) {
		f.addKeys("a", "b", "c", "a", "b", "c", "", "ключ", "ключ")
		shards := map[string]int{}
		for _, e := range f.readAll() {
			if before, ok := shards[e.AggregateID]; ok && before != e.Shard || e.Shard < 0 || e.Shard >= f.Shards {
				f.Errorf("key %q is in shard %d, before in %d", e.AggregateID, e.Shard, before)
			}
			shards[e.AggregateID] = e.Shard
		}
	},

	"Read returns only the shards asked for": func(f *fixture) {
		shard, _, _ := f.sameShard(2)
		req := f.request()
		req.Shards = []int{shard}
		events := f.read(req)
		for _, e := range events {
			if e.Shard != shard {
				f.Errorf("event %s is of shard %d", e.ID, e.Shard)
			}
		}
		if len(events) < 2 {
			f.Errorf("%d events, want at least 2", len(events))
		}
	},

	"Read leaves out what is in flight, and counts limits without it": func(f *fixture) {
		all := f.addKeys("a", "a", "a", "a")
		req := f.request()
		req.InFlight, req.PerShard, req.Limit = all[:2], 1, 1
		f.equal("events", ids(f.read(req)), all[2:3])
	},

	"Read leaves out kinds that take nothing, and counts limits without them": func(f *fixture) {
		all := f.add(Event{Key: "a", AggregateType: "x", EventType: "1"}, Event{Key: "a", AggregateType: "x", EventType: "2"},
			Event{Key: "a", AggregateType: "y", EventType: "1"})
		req := f.request()
		req.Skip = []relay.Kind{{AggregateType: "x", EventType: "1"}, {AggregateType: "y", EventType: "2"}}
		req.PerShard = 2
		f.equal("events", ids(f.read(req)), all[1:])
	},

	"Read leaves out keys that can be taken no further, and counts limits without them": func(f *fixture) {
		shard, keys, _ := f.sameShard(2)
		req := f.request()
		req.Shards, req.PerShard, req.Limit = []int{shard}, 1, 1
		req.SkipKeys = []string{keys[0], "another"}
		if events := f.read(req); len(events) != 1 || events[0].AggregateID != keys[1] {
			f.Errorf("got %+v, want one event of %q", events, keys[1])
		}
	},

	"Read limits each shard and the whole": func(f *fixture) {
		shard, keys, _ := f.sameShard(1)
		for range 5 {
			f.addKeys(keys[0])
		}
		req := f.request()
		req.PerShard = 2
		count := 0
		for _, e := range f.read(req) {
			if e.Shard == shard {
				count++
			}
		}
		if count != 2 {
			f.Errorf("%d events of shard %d, want 2", count, shard)
		}
		req.PerShard, req.Limit = 100, 3
		if n := len(f.read(req)); n != 3 {
			f.Errorf("%d events, want 3", n)
		}
	},

	"Read stops at the sum of bytes, after one event at least": func(f *fixture) {
		all := f.addKeys("a", "a", "a")
		size := func() int { e := f.readAll()[all[0]]; return e.Size() }()
		req := f.request()
		for maxBytes, want := range map[int]int{1: 1, size: 1, size + 1: 2, 2*size + 1: 3, 9 * size: 3} {
			req.MaxBytes = maxBytes
			f.equal("events", ids(f.read(req)), all[:want])
		}
	},

	"Read holds a scheduled event back, and its key does not wait": func(f *fixture) {
		all := f.add(Event{Key: "a", DueIn: time.Hour}, Event{Key: "a"}, Event{Key: "b", DueIn: 2 * time.Second})
		f.equal("events before they are due", f.readIDs(), all[1:2])
		f.await("the event is due", func() bool { return len(f.readAll()) == 2 })
		f.equal("events", f.readIDs(), all[1:])
	},

	"Read lets a failed event block its key and no other": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		_, keys, first := f.sameShard(2)
		later := f.addKeys(keys[0], keys[1])
		f.settle(m, retry(f.readAll()[first[0]], leases, time.Hour))
		if events := f.readAll(); has(events, first[0]) || has(events, later[0]) || !has(events, first[1]) || !has(events, later[1]) {
			f.Errorf("got %v; want %v and its key's %v held back", f.readIDs(), first[0], later[0])
		}
	},

	"Read returns a failed event alone once it is due": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a", "a")
		f.settle(m, published(f.readAll()[all[0]], leases), retry(f.readAll()[all[1]], leases, 2*time.Second))
		f.equal("events before the retry is due", f.readIDs(), []string{})
		f.await("the retry is due", func() bool { return len(f.readAll()) > 0 })
		f.equal("events", f.readIDs(), all[1:2])
		if e := f.readAll()[all[1]]; e.RetryCount != 1 {
			f.Errorf("retry count %d, want 1", e.RetryCount)
		}
		f.settle(m, published(f.readAll()[all[1]], leases))
		f.equal("events after the retry succeeded", f.readIDs(), all[2:])
	},

	"Read lets a key go on after DEAD": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "a")
		f.settle(m, retry(f.readAll()[all[0]], leases, 0))
		f.await("the retry is due", func() bool { return has(f.readAll(), all[0]) })
		f.settle(m, dead(f.readAll()[all[0]], leases, "given up"))
		f.equal("events", f.readIDs(), all[1:])
	},

	"Read does not let blocked keys fill the batch": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		_, keys, first := f.sameShard(2)
		var others []relay.Settlement
		for id, e := range f.readAll() {
			if id == first[0] {
				others = append(others, retry(e, leases, time.Hour))
			} else {
				others = append(others, published(e, leases))
			}
		}
		f.settle(m, others...)
		for range 5 {
			f.addKeys(keys[0])
		}
		free := f.addKeys(keys[1])[0]
		req := f.request()
		req.PerShard = 1
		f.equal("events", ids(f.read(req)), []string{free})
	},

	"Read returns nothing that left PENDING": func(f *fixture) {
		m := f.member("a")
		leases := f.takeAll(m)
		all := f.addKeys("a", "b", "c")
		f.settle(m, published(f.readAll()[all[0]], leases), dead(f.readAll()[all[1]], leases, "x"))
		f.wantState(all[0], postrider.StatePublished)
		f.wantState(all[1], postrider.StateDead)
		f.equal("events", f.readIDs(), all[2:])
	},

	"A second add with a deduplication key is dropped": func(f *fixture) {
		all := f.add(Event{DedupKey: "once"}, Event{DedupKey: "once"}, Event{}, Event{})
		if all[0] == "" || all[1] != "" {
			f.Errorf("ids %q, want the second empty", all)
		}
		if n := len(f.readAll()); n != 3 {
			f.Errorf("%d events, want 3", n)
		}
	},
}

func has(events map[string]relay.Event, id string) bool {
	_, ok := events[id]
	return ok
}
