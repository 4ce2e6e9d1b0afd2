package redis

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

const keep = 150 // entries, and more up to the next node of 100

// fillStream writes 1000 entries and returns their ids.
func fillStream(t testing.TB, c *redis.Client, stream string) []string {
	t.Helper()
	pipe := c.Pipeline()
	for i := range 1000 {
		pipe.XAdd(testContext(t), &redis.XAddArgs{Stream: stream, Values: []any{"n", i}})
	}
	commands, err := pipe.Exec(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(commands))
	for i, command := range commands {
		ids[i] = command.(*redis.StringCmd).Val()
	}
	return ids
}

// read lets a group read the next entries, and acknowledge all of them but the last ones.
func read(t testing.TB, c *redis.Client, stream, group string, count, pending int) {
	t.Helper()
	streams, err := c.XReadGroup(testContext(t), &redis.XReadGroupArgs{Group: group, Consumer: "c", Streams: []string{stream, ">"}, Count: int64(count)}).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range streams[0].Messages[:len(streams[0].Messages)-pending] {
		do(t, c, "XACK", stream, group, m.ID)
	}
}

// trimNow publishes an event by a new sink, which trims at once.
func trimNow(t testing.TB, address, stream string, trim Trim) {
	t.Helper()
	sink := open(t, Config{Addresses: []string{address}, Trim: trim, MaxEntries: keep})
	wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "1", Topic: stream}), relay.ClassPublished)
}

// wantFirst wants the oldest entry that is left between two of the filled ones.
func wantFirst(t testing.TB, c *redis.Client, stream string, ids []string, from, to int) {
	t.Helper()
	first := c.XRangeN(testContext(t), stream, "-", "+", 1).Val()[0].ID
	for i, id := range ids {
		if id == first {
			if i < from || i > to {
				t.Errorf("the oldest entry is number %d, want %d to %d", i, from, to)
			}
			return
		}
	}
	t.Errorf("the oldest entry %s is none of the filled ones", first)
}

func TestSafeTrim(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			address := shared(t, kind)
			c := client(t, address)
			stream := newStream(t, c)
			ids := fillStream(t, c, stream)
			trimNow(t, address, stream, TrimSafe)
			wantFirst(t, c, stream, ids, 0, 0) // no group

			do(t, c, "XGROUP", "CREATE", stream, "quick", "0")
			read(t, c, stream, "quick", 1000, 0)
			do(t, c, "XGROUP", "CREATE", stream, "slow", "0")
			trimNow(t, address, stream, TrimSafe)
			wantFirst(t, c, stream, ids, 0, 0) // slow has read nothing

			read(t, c, stream, "slow", 350, 50)
			trimNow(t, address, stream, TrimSafe)
			wantFirst(t, c, stream, ids, 200, 300) // slow has acknowledged 0 to 299

			read(t, c, stream, "slow", 650, 0)
			trimNow(t, address, stream, TrimSafe)
			wantFirst(t, c, stream, ids, 200, 300) // 300 to 349 are still pending

			do(t, c, "XGROUP", "SETID", stream, "quick", ids[420])
			for _, pending := range c.XPendingExt(testContext(t), &redis.XPendingExtArgs{Stream: stream, Group: "slow", Start: "-", End: "+", Count: 100}).Val() {
				do(t, c, "XACK", stream, "slow", pending.ID)
			}
			trimNow(t, address, stream, TrimSafe)
			wantFirst(t, c, stream, ids, 400, 420) // quick goes back

			read(t, c, stream, "quick", 1000, 0)
			trimNow(t, address, stream, TrimSafe)
			trimNow(t, address, stream, TrimSafe)
			wantFirst(t, c, stream, ids, 700, 1000+7-keep) // seven were published
		})
	}
}

// TestSafeTrimComparesIDs has ids whose order as text is another one, and whose numbers differ by less than floats show.
func TestSafeTrimComparesIDs(t *testing.T) {
	c := client(t, shared(t, "redis"))
	for _, ids := range [][2]string{{"99-1", "100-0"}, {"5-9", "5-10"}, {"9007199254740992-1", "9007199254740993-1"}} {
		stream := newStream(t, c)
		for i := range 300 {
			do(t, c, "XADD", stream, fmt.Sprintf("1-%d", i+1), "n", i)
		}
		for i, id := range ids {
			do(t, c, "XADD", stream, id, "n", "x")
			do(t, c, "XGROUP", "CREATE", stream, []string{"second", "first"}[i], id) // listed by their names
		}
		oldest, err := redis.NewScript(strings.Replace(trimSource, "return redis.call('XTRIM'", "return oldest --", 1)).Run(testContext(t), c, []string{stream}, 1, trimLimit).Text()
		if err != nil || oldest != ids[0] {
			t.Errorf("of %v the older is %q, %v", ids, oldest, err)
		}
	}
}

func TestTrimAlwaysAndNever(t *testing.T) {
	address := shared(t, "redis")
	c := client(t, address)
	stream := newStream(t, c)
	ids := fillStream(t, c, stream)
	do(t, c, "XGROUP", "CREATE", stream, "g", "$")
	sink := open(t, Config{Addresses: []string{address}})
	wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "1", Topic: stream}), relay.ClassPublished)
	wantFirst(t, c, stream, ids, 0, 0)
	do(t, c, "XGROUP", "SETID", stream, "g", "0")
	trimNow(t, address, stream, TrimAlways)
	wantFirst(t, c, stream, ids, 700, 1000+2-keep)
}

// TestTrimIsRare has batches follow each other closely.
func TestTrimIsRare(t *testing.T) {
	s := launch(t, "redis")
	c := client(t, s.address())
	sink := open(t, Config{Addresses: []string{s.address()}, Trim: TrimAlways, MaxEntries: 10})
	for range 20 {
		for _, topic := range []string{"a", "b"} {
			wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "1", Topic: topic}), relay.ClassPublished)
		}
	}
	if n := calls(t, c, "xtrim"); n != 2 {
		t.Errorf("trimmed %d times, want once for each stream", n)
	}
}

// TestTrimThatFails harms no event and is told.
func TestTrimThatFails(t *testing.T) {
	s := launch(t, "redis")
	c := client(t, s.address())
	do(t, c, "ACL", "SETUSER", "relay", "on", ">secret", "~*", "+@all", "-xtrim", "-xinfo|groups")
	for _, trim := range []Trim{TrimAlways, TrimSafe} {
		var log bytes.Buffer
		sink := open(t, Config{
			Addresses: []string{s.address()}, User: "relay", Password: "secret", Trim: trim, MaxEntries: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "1", Topic: "events"}), relay.ClassPublished)
		if !strings.Contains(log.String(), "stream=events") {
			t.Errorf("trim %s: the log says %q, want the stream that was not trimmed", trim, log.String())
		}
		if trim == TrimSafe {
			wantFinding(t, sink.Check(testContext(t), []string{"events"}), operator.LevelWarning, "would not be trimmed")
		}
	}
}
