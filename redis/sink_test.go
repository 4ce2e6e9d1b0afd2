package redis

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

func TestFieldsOfAnEntry(t *testing.T) {
	c := client(t, shared(t, "redis"))
	for _, idempotentFor := range []time.Duration{0, time.Minute} {
		stream := newStream(t, c)
		sink := open(t, Config{Addresses: []string{shared(t, "redis")}, IdempotentFor: idempotentFor})
		o := publishOne(t, sink, relay.Message{
			EventID: "e1-" + stream, Key: "order-7", Topic: stream, Payload: []byte(`{"total":7}`),
			Headers: []relay.Header{{Name: "X-Event-Type", Value: "order.created"}, {Name: "payload", Value: "not it"}, {Name: "Key", Value: "not it"}, {Name: "id", Value: "\x00\r\n\xff"}},
		})
		wantOutcome(t, o, relay.ClassPublished)
		entries := do(t, c, "XRANGE", stream, "-", "+").([]any)
		if len(entries) != 1 {
			t.Fatalf("%d entries, want 1", len(entries))
		}
		entry := entries[0].([]any)
		want := []any{
			"id", "e1-" + stream, "key", "order-7", "payload", `{"total":7}`,
			"h:X-Event-Type", "order.created", "h:payload", "not it", "h:Key", "not it", "h:id", "\x00\r\n\xff",
		}
		if !reflect.DeepEqual(entry[1], want) {
			t.Errorf("the entry is %q, want %q", entry[1], want)
		}
		if want := fmt.Sprintf("redis:%s@%s", stream, entry[0]); o.Coordinates != want {
			t.Errorf("coordinates %s, want %s", o.Coordinates, want)
		}
	}
}

// TestRetryAfterTimeout sends an event whose first request arrives after the second.
func TestRetryAfterTimeout(t *testing.T) {
	t.Parallel()
	for command, test := range map[string]struct {
		idempotentFor time.Duration
		copies        int
	}{"evalsha": {time.Minute, 1}, "xadd": {0, 2}} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := launch(t, "redis")
			c := client(t, server.address())
			proxy := sinktest.NewProxy(t, server.address())
			sink := open(t, Config{Addresses: []string{proxy.Addr}, IdempotentFor: test.idempotentFor})
			wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "warm", Topic: "events"}), relay.ClassPublished)

			m := relay.Message{EventID: "late", Topic: "events"}
			proxy.Freeze()
			start := time.Now()
			wantOutcome(t, publishOne(t, sink, m), relay.ClassUnavailable, "redis")
			if took := time.Since(start); took < answerTimeout-time.Second || took > answerTimeout+time.Second {
				t.Errorf("the outcome took %s", took)
			}
			second := open(t, Config{Addresses: []string{server.address()}, IdempotentFor: test.idempotentFor})
			o := publishOne(t, second, m)
			wantOutcome(t, o, relay.ClassPublished)
			before := calls(t, c, command)
			proxy.Heal()
			await.True(t, time.Minute, "the first request arrives", func() bool { return calls(t, c, command) > before })
			if stored := readAll(t, c, "events"); len(stored) != 1+test.copies || stored[1].Coordinates != o.Coordinates {
				t.Errorf("stored %v, want the event %d times and at %s", stored, test.copies, o.Coordinates)
			}
		})
	}
}

// calls returns how many commands of a name the server has done.
func calls(t testing.TB, c *redis.Client, command string) int {
	t.Helper()
	_, stats, _ := strings.Cut(c.Info(testContext(t), "commandstats").Val(), "cmdstat_"+command+":calls=")
	digits, _, _ := strings.Cut(stats, ",")
	n, _ := strconv.Atoi(digits) // none yet
	return n
}

// TestRepeatedEvent finds the first entry again, in the same batch of another sink too, until the window has passed.
func TestRepeatedEvent(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			c := client(t, shared(t, kind))
			stream := newStream(t, c) + "{tag}x"
			t.Cleanup(func() { do(t, c, "DEL", stream) })
			sink := open(t, Config{Addresses: []string{shared(t, kind)}, IdempotentFor: time.Hour})
			m := relay.Message{EventID: "once-" + stream, Topic: stream}
			first := publishOne(t, sink, m)
			wantOutcome(t, first, relay.ClassPublished)
			name := "postrider:published:{tag}:" + m.EventID
			do(t, c, "PEXPIRE", name, 60_000)
			second := publishOne(t, sink, m)
			if second.Class != relay.ClassPublished || second.Coordinates != first.Coordinates {
				t.Errorf("the repetition is %s at %q, the first was at %q", second.Class, second.Coordinates, first.Coordinates)
			}
			if left := do(t, c, "PTTL", name).(int64); left <= 60_000 || left > time.Hour.Milliseconds() {
				t.Errorf("the marker lasts %d ms, want it renewed to an hour", left)
			}
			do(t, c, "SCRIPT", "FLUSH")
			wantOutcome(t, publishOne(t, sink, m), relay.ClassPublished)
			do(t, c, "DEL", name)
			wantOutcome(t, publishOne(t, sink, m), relay.ClassPublished)
			if stored := readAll(t, c, stream); len(stored) != 2 {
				t.Errorf("%d entries are stored, want one from before the marker was gone and one from after", len(stored))
			}
		})
	}
}

// TestContextThatEnds does not begin anything after it, and waits for what it has begun, so that nothing is sent twice.
func TestContextThatEnds(t *testing.T) {
	address := shared(t, "redis")
	c := client(t, address)
	stream := newStream(t, c)
	proxy := sinktest.NewProxy(t, address)
	sink := open(t, Config{Addresses: []string{proxy.Addr}})
	m := []relay.Message{{EventID: "1", Topic: stream}}
	wantOutcome(t, sink.Publish(testContext(t), m)[0], relay.ClassPublished)

	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	wantOutcome(t, sink.Publish(ctx, m)[0], relay.ClassUnavailable, context.Canceled.Error())

	ctx, cancel = context.WithTimeout(testContext(t), 200*time.Millisecond)
	defer cancel()
	proxy.Freeze()
	context.AfterFunc(ctx, func() { proxy.Heal() })
	wantOutcome(t, sink.Publish(ctx, m)[0], relay.ClassPublished)
	if n := do(t, c, "XLEN", stream); n != int64(2) {
		t.Errorf("%d entries are stored, want 2", n)
	}
}

// TestLostAnswerIsNotHidden leaves it to the relay to send again.
func TestLostAnswerIsNotHidden(t *testing.T) {
	address := shared(t, "redis")
	c := client(t, address)
	stream := newStream(t, c)
	proxy := sinktest.NewProxy(t, address)
	sink := open(t, Config{Addresses: []string{proxy.Addr}})
	m := []relay.Message{{EventID: "1", Topic: stream}}
	wantOutcome(t, sink.Publish(testContext(t), m)[0], relay.ClassPublished)
	proxy.HoldAnswersAfter(1)
	outcomes := make(chan relay.Outcome)
	go func() { outcomes <- sink.Publish(context.Background(), m)[0] }()
	await.True(t, time.Minute, "the event is stored", func() bool { return do(t, c, "XLEN", stream) == int64(2) })
	proxy.Cut()
	proxy.Heal()
	wantOutcome(t, <-outcomes, relay.ClassUnavailable, stream)
	if n := do(t, c, "XLEN", stream); n != int64(2) {
		t.Errorf("%d entries are stored, want 2: nothing may be sent again within Publish", n)
	}
}

// TestLostAnswersWithoutIdempotentMode loses nothing and keeps the order of first deliveries.
func TestLostAnswersWithoutIdempotentMode(t *testing.T) {
	address := shared(t, "redis")
	c := client(t, address)
	stream := newStream(t, c)
	proxy := sinktest.NewProxy(t, address)
	sink := open(t, Config{Addresses: []string{proxy.Addr}})
	batch := make([]relay.Message, 3000)
	for i := range batch {
		batch[i] = relay.Message{EventID: fmt.Sprint(i), Key: fmt.Sprint(i % 100), Topic: stream, Payload: []byte(fmt.Sprint(i))}
	}
	cut := proxy.CutAfter(100 << 10)
	rest := unpublished(t, batch, sink.Publish(testContext(t), batch))
	<-cut
	if len(rest) == 0 {
		t.Fatal("everything was published although the network broke")
	}
	proxy.Heal()
	await.True(t, time.Minute, "the rest is published", func() bool {
		rest = unpublished(t, rest, sink.Publish(testContext(t), rest))
		return len(rest) == 0
	})
	next := make(map[string]int)
	for _, s := range readAll(t, c, stream) {
		var i, key int
		fmt.Sscan(string(s.Payload), &i)
		fmt.Sscan(s.Key, &key)
		switch want := key + 100*next[s.Key]; {
		case i == want:
			next[s.Key]++
		case i > want:
			t.Fatalf("event %d of key %s is stored before %d", i, s.Key, want)
		}
	}
	for key, n := range next {
		if n != 30 {
			t.Errorf("%d events of key %s are stored, want 30", n, key)
		}
	}
}

// TestLargeMessagesTravelAlone, so that a server which breaks the connection because of one harms no other.
func TestLargeMessagesTravelAlone(t *testing.T) {
	sink := open(t, Config{Addresses: []string{shared(t, "redis")}})
	batch := []relay.Message{{Topic: "a"}, {Topic: "a", Payload: make([]byte, pipelineBytes)}, {Topic: "b"}, {Topic: "a"}}
	flights, err := sink.flights(testContext(t), batch, []int{0, 1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]int
	for _, f := range flights {
		got = append(got, f.messages)
	}
	if want := [][]int{{0}, {1}, {2, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the pipelines hold %v, want %v", got, want)
	}
}

// TestProtocolError takes the server's own words, which a client that is still writing may not see.
func TestProtocolError(t *testing.T) {
	for _, kind := range kinds {
		conn, err := net.Dial("tcp", shared(t, kind))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "*1\r\n$%d\r\n", int64(1)<<40)
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		sink := open(t, Config{Addresses: []string{shared(t, kind)}})
		said := saidError(strings.TrimSpace(line[1:]))
		wantOutcome(t, sink.outcomeOf(testContext(t), answer{err: said}, "events"), relay.ClassPermanent, "stream events", "larger than the server takes")
	}
}

// saidError is what a server says.
type saidError string

func (e saidError) Error() string { return string(e) }
func (saidError) RedisError()     {}

// TestOrderOfAKeyAcrossStreams has the first event of a key refused, and one of another key behind it.
func TestOrderOfAKeyAcrossStreams(t *testing.T) {
	address := shared(t, "redis")
	c := client(t, address)
	good, taken := newStream(t, c), newStream(t, c)
	do(t, c, "SET", taken, "x")
	for _, idempotentFor := range []time.Duration{0, time.Minute} {
		do(t, c, "DEL", good)
		outcomes := open(t, Config{Addresses: []string{address}, IdempotentFor: idempotentFor}).Publish(testContext(t), []relay.Message{
			{EventID: "1-" + good, Key: "a", Topic: good},
			{EventID: "2-" + good, Key: "a", Topic: taken},
			{EventID: "3-" + good, Key: "a", Topic: good},
			{EventID: "4-" + good, Key: "b", Topic: good},
		})
		for i, class := range []relay.Class{relay.ClassPublished, relay.ClassRetry, relay.ClassSkipped, relay.ClassPublished} {
			wantOutcome(t, outcomes[i], class)
		}
		if n := do(t, c, "XLEN", good); n != int64(2) {
			t.Errorf("%d entries are stored, want those of 1 and 4", n)
		}
	}
}

func unpublished(t testing.TB, batch []relay.Message, outcomes []relay.Outcome) []relay.Message {
	t.Helper()
	var rest []relay.Message
	for i, o := range outcomes {
		switch o.Class {
		case relay.ClassPublished:
		case relay.ClassUnavailable, relay.ClassSkipped:
			rest = append(rest, batch[i])
		default:
			t.Fatalf("message %d is %s: %v", i, o.Class, o.Err)
		}
	}
	return rest
}

// TestRefusedInAdvance names what cannot be sent.
func TestRefusedInAdvance(t *testing.T) {
	c := client(t, shared(t, "redis"))
	stream := newStream(t, c)
	plain := open(t, Config{Addresses: []string{shared(t, "redis")}})
	wantOutcome(t, publishOne(t, plain, relay.Message{EventID: "7"}), relay.ClassPermanent, "event 7", "no topic")
	odd := stream + "}{"
	t.Cleanup(func() { do(t, c, "DEL", odd) })
	wantOutcome(t, publishOne(t, plain, relay.Message{EventID: "7", Topic: odd}), relay.ClassPublished)

	once := open(t, Config{Addresses: []string{shared(t, "redis")}, IdempotentFor: time.Minute})
	wantOutcome(t, publishOne(t, once, relay.Message{EventID: "7", Topic: odd}), relay.ClassPermanent, odd, "hash slot")
	wantOutcome(t, publishOne(t, once, relay.Message{Topic: stream}), relay.ClassPermanent, stream, "no id")
	wantFinding(t, once.Check(testContext(t), []string{odd}), operator.LevelError, odd)
}

// TestFieldLimit has a server that takes less than the configuration allows.
func TestFieldLimit(t *testing.T) {
	s := launch(t, "redis")
	c := client(t, s.address())
	const limit = 1 << 20
	do(t, c, "CONFIG", "SET", "proto-max-bulk-len", limit)
	do(t, c, "ACL", "SETUSER", "blind", "on", ">secret", "~*", "+@all", "-config")
	payload := func(bytes int) []byte { return []byte(strings.Repeat("x", bytes)) }
	batch := []relay.Message{
		{EventID: "1", Key: "a", Topic: "events", Payload: payload(10)},
		{EventID: "2", Key: "b", Topic: "events", Payload: payload(limit + 1)},
		{EventID: "3", Key: "c", Topic: "events", Payload: payload(limit)},
		{EventID: "4", Key: "d", Topic: "events", Headers: []relay.Header{{Name: "X-Large", Value: string(payload(limit + 1))}}},
		{EventID: "5", Key: "e", Topic: "events", Payload: payload(20)},
	}
	outcomes := open(t, Config{Addresses: []string{s.address()}}).Publish(testContext(t), batch)
	for _, i := range []int{0, 2, 4} {
		wantOutcome(t, outcomes[i], relay.ClassPublished)
	}
	for _, i := range []int{1, 3} {
		wantOutcome(t, outcomes[i], relay.ClassPermanent, "events", "1048577", "proto-max-bulk-len of 1048576")
	}
	if stored := readAll(t, c, "events"); len(stored) != 3 {
		t.Errorf("%d entries are stored, want 3", len(stored))
	}

	blind := open(t, Config{Addresses: []string{s.address()}, User: "blind", Password: "secret"})
	wantFinding(t, blind.Check(testContext(t), nil), operator.LevelWarning, "settings cannot be read")
	outcomes = blind.Publish(testContext(t), batch[:2])
	wantOutcome(t, outcomes[0], relay.ClassPublished)
	// The server says why before it ends the connection; whether that can still be read is chance.
	if o := outcomes[1]; o.Class != relay.ClassPermanent && o.Class != relay.ClassUnavailable {
		t.Errorf("a payload over the server's limit is %s: %v", o.Class, o.Err)
	}
}
