package redis

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/await"
)

// join opens a member that waits for long before it takes over, unless the test says otherwise.
func join(t testing.TB, c SourceConfig) *Source {
	t.Helper()
	c.Group = "group"
	if c.ClaimAfter == 0 {
		c.ClaimAfter = time.Hour
	}
	s, err := OpenSource(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fetch returns exactly n deliveries. Errors are only logged.
func fetch(t testing.TB, s *Source, n int) (all []*consumer.Delivery) {
	t.Helper()
	ctx := testContext(t)
	for len(all) < n {
		got, err := s.Fetch(ctx, n-len(all))
		if ctx.Err() != nil {
			t.Fatalf("fetched %d of %d: %v", len(all), n, err)
		}
		if err != nil {
			t.Log(err)
		}
		all = append(all, got...)
	}
	return all
}

func offsets(deliveries []*consumer.Delivery) (all []string) {
	for _, d := range deliveries {
		all = append(all, d.Message.Offset)
	}
	return all
}

func pendingOf(t testing.TB, c redis.UniversalClient, stream string) (ids []string) {
	t.Helper()
	pending, err := c.XPendingExt(testContext(t), &redis.XPendingExtArgs{Stream: stream, Group: "group", Start: "-", End: "+", Count: 10_000}).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pending {
		ids = append(ids, p.ID)
	}
	return ids
}

func closeSource(t testing.TB, s *Source) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestMemberThatComesBack gets first what it had, in order, although that is more than it may read ahead. Nobody else waits for so
// long in this test.
func TestMemberThatComesBack(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		c := client(t, shared(t, kind))
		stream := newStream(t, c)
		ids := fillStream(t, c, stream)
		do(t, c, "XGROUP", "CREATE", stream, "group", "0")
		for _, name := range []string{"one", "two", "one"} {
			do(t, c, "XREADGROUP", "GROUP", "group", name, "COUNT", 100, "STREAMS", stream, ">")
		}
		s := join(t, SourceConfig{Addresses: []string{shared(t, kind)}, Streams: []string{stream}, Consumer: "one", Prefetch: 20})
		var got []*consumer.Delivery
		for len(got) < 210 {
			some := fetch(t, s, 10)
			s.Finish(some...)
			got = append(got, some...)
		}
		if want := slices.Concat(ids[:100], ids[200:310]); !slices.Equal(offsets(got), want) {
			t.Errorf("%s: got other entries, or in another order", kind)
		}
		if before, first := got[199].Deliveries, got[200].Deliveries; before != 2 || first != 1 {
			t.Errorf("%s: deliveries %d and %d, want 2 and 1", kind, before, first)
		}
		closeSource(t, s)
	}
}

// TestTakenOverStaysThere has another member take over what the source holds: the source does not take it back, and what it finishes is
// over all the same.
func TestTakenOverStaysThere(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		c := client(t, shared(t, kind))
		stream := newStream(t, c)
		fillStream(t, c, stream)
		s := join(t, SourceConfig{Addresses: []string{shared(t, kind)}, Streams: []string{stream}, ClaimAfter: time.Second, Prefetch: 3})
		held := fetch(t, s, 3)
		ids := offsets(held)
		do(t, c, "XCLAIM", stream, "group", "other", 0, ids[0], ids[1], "IDLE", 500)
		s.Return(held[1])
		idle := func(of int) time.Duration {
			return c.XPendingExt(testContext(t), &redis.XPendingExtArgs{Stream: stream, Group: "group", Start: ids[of], End: ids[of], Count: 1}).Val()[0].Idle
		}
		await.True(t, time.Minute, "what the source holds is kept", func() bool { return idle(2) < 100*time.Millisecond && idle(0) > 700*time.Millisecond })
		left := c.XPendingExt(testContext(t), &redis.XPendingExtArgs{Stream: stream, Group: "group", Start: "-", End: "+", Count: 10, Consumer: "other"}).Val()
		if len(left) != 2 || left[1].Idle > time.Minute {
			t.Errorf("%s: the other member has %+v, want what it has taken, and nothing of it given back", kind, left)
		}
		s.Finish(held[0])
		if err := s.Flush(testContext(t)); err != nil {
			t.Error(err)
		}
		if slices.Contains(pendingOf(t, c, stream), ids[0]) {
			t.Errorf("%s: %s is pending, although it is finished", kind, ids[0])
		}
		closeSource(t, s)
	}
}

// TestDeletedEntriesArePassedOver has entries removed that a dead member had.
func TestDeletedEntriesArePassedOver(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		c := client(t, shared(t, kind))
		stream := newStream(t, c)
		ids := fillStream(t, c, stream)[:6]
		do(t, c, "XGROUP", "CREATE", stream, "group", "0")
		do(t, c, "XREADGROUP", "GROUP", "group", "dead", "COUNT", 6, "STREAMS", stream, ">")
		do(t, c, "XGROUP", "SETID", stream, "group", "$")
		do(t, c, "XDEL", stream, ids[0], ids[1], ids[4])
		s := join(t, SourceConfig{Addresses: []string{shared(t, kind)}, Streams: []string{stream}, ClaimAfter: time.Second, Prefetch: 4})
		if got, want := offsets(fetch(t, s, 3)), []string{ids[2], ids[3], ids[5]}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
		await.True(t, time.Minute, "the deleted ones are off the list", func() bool { return len(pendingOf(t, c, stream)) == 3 })
		closeSource(t, s)
	}
}

// TestReturnedAtOnce has a member leave with something in hand. Another one does not wait until it could take over.
func TestReturnedAtOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		c := client(t, shared(t, kind))
		stream := newStream(t, c)
		ids := fillStream(t, c, stream)[:10]
		config := SourceConfig{Addresses: []string{shared(t, kind)}, Streams: []string{stream}, Consumer: "first", Prefetch: 10}
		s := join(t, config)
		held := fetch(t, s, 10)
		do(t, c, "XGROUP", "SETID", stream, "group", "$")
		s.Return(held[:4]...)
		s.Finish(held[4:7]...)
		closeSource(t, s)
		config.Consumer = "second"
		s = join(t, config)
		got := fetch(t, s, 7)
		if want := slices.Concat(ids[:4], ids[7:]); !slices.Equal(offsets(got), want) {
			t.Errorf("%s: got %q, want %q", kind, offsets(got), want)
		}
		s.Finish(got...)
		closeSource(t, s)
		names := c.XInfoConsumers(testContext(t), stream, "group").Val()
		if len(names) != 1 || names[0].Name != "first" {
			t.Errorf("%s: consumers %+v, want the first, which had something when it left, and not the second", kind, names)
		}
	}
}

// TestGroupThatIsGone is told, and everything comes again. What was in hand is not taken for what comes.
func TestGroupThatIsGone(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		c := client(t, shared(t, kind))
		stream := newStream(t, c)
		add := func() { do(t, c, "XADD", stream, "1-1", "n", "1") }
		add()
		s := join(t, SourceConfig{Addresses: []string{shared(t, kind)}, Streams: []string{stream}, Prefetch: 1}) // full
		old := fetch(t, s, 1)
		do(t, c, "DEL", stream)
		add()
		if _, err := s.Fetch(testContext(t), 1); err == nil || !strings.Contains(err.Error(), "the group is gone") {
			t.Errorf("%s: Fetch returned %v, want that the group is gone", kind, err)
		}
		again := fetch(t, s, 1)
		s.Finish(old...)
		if err := s.Flush(testContext(t)); err != nil {
			t.Error(err)
		}
		if pending := pendingOf(t, c, stream); len(pending) != 1 {
			t.Errorf("%s: the new entry was acknowledged with the old one", kind)
		}
		s.Finish(again...)
		closeSource(t, s)
		if pending := pendingOf(t, c, stream); len(pending) != 0 {
			t.Errorf("%s: pending %q", kind, pending)
		}
	}
}

// TestEntriesOfOthers were not written by the sink.
func TestEntriesOfOthers(t *testing.T) {
	t.Parallel()
	c := client(t, shared(t, "redis"))
	for _, test := range []struct {
		fields  []any
		key     string
		payload []byte
		headers []inbox.Header
	}{
		{[]any{"id", "7", "key", "k", "payload", "p", "h:X-Event-Type", "t"}, "k", []byte("p"), []inbox.Header{{Name: "X-Event-Type", Value: "t"}, {Name: "X-Event-Id", Value: "7"}}},
		{[]any{"id", "7:dlt", "payload", "p", "h:X-Event-Id", "7"}, "", []byte("p"), []inbox.Header{{Name: "X-Event-Id", Value: "7"}}},
		{[]any{"data", "\x00\xff", "b", "1", "a", "2", "a", "3"}, "", []byte("\x00\xff"), []inbox.Header{{Name: "b", Value: "1"}, {Name: "a", Value: "2"}, {Name: "a", Value: "3"}}},
		{[]any{"data", "d", "payload", "", "data", "e"}, "", []byte{}, []inbox.Header{{Name: "data", Value: "d"}, {Name: "data", Value: "e"}}},
		{[]any{"a", "1"}, "", nil, []inbox.Header{{Name: "a", Value: "1"}}},
	} {
		stream := newStream(t, c)
		do(t, c, append([]any{"XADD", stream, "*"}, test.fields...)...)
		s := join(t, SourceConfig{Addresses: []string{shared(t, "redis")}, Streams: []string{stream}})
		m := fetch(t, s, 1)[0].Message
		if m.Key != test.key || string(m.Payload) != string(test.payload) || (m.Payload == nil) != (test.payload == nil) || !slices.Equal(m.Headers, test.headers) {
			t.Errorf("%q was read as %+v", test.fields, m)
		}
		closeSource(t, s)
	}
}

// TestStreamsOfACluster are on several nodes.
func TestStreamsOfACluster(t *testing.T) {
	t.Parallel()
	x := newCluster(t, "redis")
	config := SourceConfig{Addresses: x.config(0).Addresses, Cluster: true}
	var want []string
	for i := range 12 {
		stream := fmt.Sprintf("orders-%d", i)
		config.Streams = append(config.Streams, stream)
		want = append(want, stream+"@1-1", stream+"@1-2")
		for _, id := range []string{"1-1", "1-2"} {
			do(t, x.c, "XADD", stream, id, "payload", "p")
		}
	}
	s := join(t, config)
	var got []string
	deliveries := fetch(t, s, len(want))
	for _, d := range deliveries {
		got = append(got, d.Message.Topic+"@"+d.Message.Offset)
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Return(deliveries[0])
	s.Finish(deliveries[1:]...)
	s.Finish(fetch(t, s, 1)...)
	closeSource(t, s)
	for _, stream := range config.Streams {
		if pending := pendingOf(t, x.c, stream); len(pending) != 0 {
			t.Errorf("stream %s: pending %q", stream, pending)
		}
	}
}

// TestSourceTellsWhyNothingComes has the other stream go on.
func TestSourceTellsWhyNothingComes(t *testing.T) {
	t.Parallel()
	server := launch(t, "redis")
	c := client(t, server.address())
	do(t, c, "SET", "text", "1")
	do(t, c, "XADD", "good", "*", "payload", "p")
	do(t, c, "ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "-evalsha", "-eval")
	told := func(s *Source, words string) {
		t.Helper()
		await.True(t, time.Minute, "Fetch tells "+words, func() bool {
			_, err := s.Fetch(testContext(t), 1)
			return err != nil && strings.Contains(err.Error(), words)
		})
	}
	s := join(t, SourceConfig{Addresses: []string{server.address()}, Streams: []string{"text", "good"}})
	s.Finish(fetch(t, s, 1)...)
	told(s, "WRONGTYPE")
	closeSource(t, s)

	do(t, c, "XADD", "good", "*", "payload", "p")
	s = join(t, SourceConfig{Addresses: []string{server.address()}, Streams: []string{"good"}, User: "reader", Password: "secret", ClaimAfter: time.Second})
	fetch(t, s, 1)
	told(s, "NOPERM")
	closeSource(t, s)
	s = join(t, SourceConfig{Addresses: []string{server.address()}, Streams: []string{"good"}, User: "reader", Password: "wrong"})
	told(s, "WRONGPASS")
	closeSource(t, s)
}

func TestSourceConfigTellsEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := OpenSource(SourceConfig{Streams: []string{"a", "", "a"}, ClaimAfter: time.Millisecond, Prefetch: -1})
	for _, words := range []string{"no addresses", "stream 2 has no name", `stream "a" is named twice`, "no group", "takeover after 1ms", "prefetch of -1"} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("the mistakes %v do not mention %q", err, words)
		}
	}
	if _, err = OpenSource(SourceConfig{Addresses: []string{"a:1"}, Group: "g"}); err == nil || !strings.Contains(err.Error(), "no streams") {
		t.Errorf("no streams: %v", err)
	}
}

// TestOlderFirst has entries returned while newer ones wait to be fetched.
func TestOlderFirst(t *testing.T) {
	t.Parallel()
	c := client(t, shared(t, "redis"))
	stream := newStream(t, c)
	ids := fillStream(t, c, stream)
	s := join(t, SourceConfig{Addresses: []string{shared(t, "redis")}, Streams: []string{stream}, Prefetch: 10})
	held := fetch(t, s, 3)
	s.Return(held...)
	await.True(t, time.Minute, "what was returned is claimed", func() bool {
		pending := c.XPendingExt(testContext(t), &redis.XPendingExtArgs{Stream: stream, Group: "group", Start: "-", End: "+", Count: 3}).Val()
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(pending) == 3 && pending[2].RetryCount == 2 && len(s.readers[0].held) >= 10 // the source has heard of it
	})
	if got := offsets(fetch(t, s, 10)); got[0] != ids[0] || got[3] != ids[3] {
		t.Errorf("got %q, want %q", got, ids[:10])
	}
	closeSource(t, s)
}

// TestPausedStreamIsLeftToOthers has a member hold what it has of a stream that is paused, for longer than others wait, and take
// nothing more of it: neither what comes nor what is returned.
func TestPausedStreamIsLeftToOthers(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		c := client(t, shared(t, kind))
		stream := newStream(t, c)
		var ids []string
		for i := range 6 {
			ids = append(ids, do(t, c, "XADD", stream, "*", "n", i).(string))
		}
		config := SourceConfig{Addresses: []string{shared(t, kind)}, Streams: []string{stream}, ClaimAfter: time.Second, Prefetch: 2}
		s := join(t, config)
		held := fetch(t, s, 1)
		s.Pause(stream)
		s.Return(held...)
		await.True(t, time.Minute, "what is returned is given up", func() bool {
			pending := c.XPendingExt(testContext(t), &redis.XPendingExtArgs{Stream: stream, Group: "group", Start: ids[0], End: ids[0], Count: 1}).Val()
			return len(pending) == 1 && pending[0].Idle > time.Hour
		})
		time.Sleep(2 * config.ClaimAfter) //nolint:forbidigo // longer than others wait, who must not take what is held
		config.Prefetch = 6
		other := join(t, config)
		got := offsets(fetch(t, other, 5))
		slices.Sort(got)
		if want := slices.Concat(ids[:1], ids[2:]); !slices.Equal(got, want) {
			t.Errorf("%s: the other member got %q, want %q", kind, got, want)
		}
		s.Resume(stream)
		again := fetch(t, s, 1)[0]
		if again.Message.Offset != ids[1] || again.Deliveries != 1 {
			t.Errorf("%s: got %s, delivered %d times, want %s once", kind, again.Message.Offset, again.Deliveries, ids[1])
		}
		closeSource(t, other)
		closeSource(t, s)
	}
}
