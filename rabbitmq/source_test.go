package rabbitmq

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumertest"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/sinktest"
)

func TestSourceConformance(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		for _, kind := range []string{classic, quorum} {
			t.Run(kind, func(t *testing.T) {
				consumertest.Run(t, consumertest.Harness{
					Open:        func(t testing.TB) consumertest.Group { return openGroup(t, address, kind) },
					Expiry:      2 * time.Second, // the end of a connection is seen at once
					Coordinates: true,
					Cuts:        true,
				})
			})
		}
	})
}

func openGroup(t testing.TB, address, kind string) consumertest.Group {
	t.Helper()
	b := newBroker(t, address)
	q := b.newQueue(t, kind)
	retry := b.newQueueNamed(t, consumer.RetryTopic(q.name, consumertest.RetryDelay), kind)
	return consumertest.Group{Sink: open(t, Config{Servers: []string{address}}), Topic: "/" + q.name, Join: func(t testing.TB) consumertest.Member {
		proxy := sinktest.NewProxy(t, host(t, address))
		source := openSource(t, at(t, address, proxy.Addr, ""), consumertest.Prefetch, q.name, retry.name)
		return consumertest.Member{Source: source, Proxy: proxy}
	}}
}

// openSource opens one that the caller closes.
func openSource(t testing.TB, address string, prefetch int, queues ...string) *Source {
	t.Helper()
	s, err := OpenSource(SourceConfig{Servers: []string{address}, Queues: queues, Prefetch: prefetch})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fetch returns the next n deliveries, and takes errors of Fetch for passing.
func fetch(t testing.TB, s *Source, n int) (all []*consumer.Delivery) {
	t.Helper()
	ctx := testContext(t)
	for len(all) < n {
		got, err := s.Fetch(ctx, n-len(all))
		if ctx.Err() != nil {
			t.Fatalf("Fetch after %d of %d messages: %v", len(all), n, err)
		}
		all = append(all, got...)
	}
	return all
}

// nothingFor checks that nothing comes within the time.
func nothingFor(t testing.TB, s *Source, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if got, err := s.Fetch(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %d deliveries and %v, want none", len(got), err)
	}
}

// wantFailure calls Fetch until its error holds the texts.
func wantFailure(t testing.TB, s *Source, texts ...string) {
	t.Helper()
	ctx := testContext(t)
	for {
		_, err := s.Fetch(ctx, 1)
		if ctx.Err() != nil {
			t.Fatalf("no error with %q", texts)
		}
		missing := func(text string) bool { return err == nil || !strings.Contains(err.Error(), text) }
		if !slices.ContainsFunc(texts, missing) {
			return
		}
	}
}

// put stores messages with their numbers as ids, from first to last.
func (q *queue) put(t testing.TB, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		q.putMessage(t, amqp.Publishing{MessageId: strconv.Itoa(n)})
	}
}

func (q *queue) putMessage(t testing.TB, p amqp.Publishing) {
	t.Helper()
	p.DeliveryMode = amqp.Persistent
	confirm, err := q.broker.channel(t).PublishWithDeferredConfirm("", q.name, true, false, p)
	if err != nil {
		t.Fatal(err)
	}
	if acked, err := confirm.WaitContext(testContext(t)); !acked {
		t.Fatalf("message was not taken by queue %s: %v", q.name, err)
	}
}

func wantDeliveries(t testing.TB, got []*consumer.Delivery, ids ...string) {
	t.Helper()
	var have []string
	for _, d := range got {
		have = append(have, d.Message.EventID())
	}
	if !slices.Equal(have, ids) {
		t.Errorf("got %q, want %q", have, ids)
	}
}

func TestSourceReportsEveryMistake(t *testing.T) {
	_, err := OpenSource(SourceConfig{Servers: []string{"http://x"}, Queues: []string{"", "a", "a"}, Prefetch: 70000})
	for _, text := range []string{"server 1 is not an address", "queue 1 needs a name", `"a" is named twice`, "prefetch of 70000"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q in it", err, text)
		}
	}
	if _, err := OpenSource(SourceConfig{Servers: []string{"amqp://x"}}); err == nil || !strings.Contains(err.Error(), "no queues") {
		t.Errorf("error %v, want that there are no queues", err)
	}
}

func TestLedgerAcknowledgesSeveralOnlyBelowWhatIsOpen(t *testing.T) {
	for _, c := range []struct {
		finished, returned []uint64
		want               orders
	}{
		{nil, nil, orders{}},
		{[]uint64{1}, nil, orders{ack: []uint64{1}}},
		{[]uint64{3, 1, 2}, nil, orders{through: 3}},
		{[]uint64{2, 5, 1}, nil, orders{through: 2, ack: []uint64{5}}},
		{[]uint64{3, 2}, nil, orders{ack: []uint64{2, 3}}},
		{[]uint64{4, 3, 1}, []uint64{2}, orders{requeue: []uint64{2}, through: 4}},
		{[]uint64{1, 1, 5, 4, 3, 2}, []uint64{5}, orders{through: 5}},
		{nil, []uint64{5, 2, 4}, orders{requeue: []uint64{2, 4, 5}}},
	} {
		l := newLedger()
		for tag := range uint64(5) {
			l.add(tag + 1)
		}
		for _, tag := range c.finished {
			l.finish(tag)
		}
		for _, tag := range c.returned {
			l.giveBack(tag)
		}
		got := l.take()
		if !slices.Equal(got.requeue, c.want.requeue) || got.through != c.want.through || !slices.Equal(got.ack, c.want.ack) {
			t.Errorf("finished %d and returned %d of 1 to 5: %+v, want %+v", c.finished, c.returned, got, c.want)
		}
		if again := l.take(); len(again.requeue)+len(again.ack) > 0 || again.through > 0 {
			t.Errorf("told a second time: %+v", again)
		}
	}
}

func TestSourceReadsForeignMessages(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		q := newBroker(t, address).newQueue(t, classic)
		at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
		q.putMessage(t, amqp.Publishing{
			MessageId: "id-1", Type: "created", ContentType: "text/plain", ContentEncoding: "gzip", Timestamp: at,
			Headers: amqp.Table{
				"text": "ä", "yes": true, "int": int64(-7), "byte": byte(7), "float": 1.5, "none": nil, "at": at,
				"price": amqp.Decimal{Scale: 2, Value: -5}, "bytes": []byte("ok"), "binary": []byte{0xff, 0},
				"table": amqp.Table{"a": "b"}, "array": []any{"a"},
			},
		})
		q.putMessage(t, amqp.Publishing{
			MessageId: "other", Type: "other", ContentType: "other",
			Headers: amqp.Table{"X-Event-Id": "id-2", "x-event-type": "paid", "Content-Type": "application/json"},
		})
		q.putMessage(t, amqp.Publishing{Headers: amqp.Table{"id": "id-3"}})
		q.putMessage(t, amqp.Publishing{})
		s := openSource(t, address, 10, q.name)
		defer s.Close()
		got := fetch(t, s, 4)
		want := []inbox.Header{
			{Name: "at", Value: "2026-02-03T04:05:06Z"}, {Name: "binary", Value: "ff00"}, {Name: "byte", Value: "7"},
			{Name: "bytes", Value: "ok"}, {Name: "float", Value: "1.5"}, {Name: "int", Value: "-7"}, {Name: "none"},
			{Name: "price", Value: "-0.05"}, {Name: "text", Value: "ä"}, {Name: "yes", Value: "true"},
			{Name: "X-Event-Id", Value: "id-1"}, {Name: "X-Event-Type", Value: "created"},
			{Name: "content-type", Value: "text/plain"}, {Name: "content-encoding", Value: "gzip"},
		}
		if m := got[0].Message; !slices.Equal(m.Headers, want) || !m.At.Equal(at) || m.Coordinates != "rabbitmq:/"+q.name+"@id-1" {
			t.Errorf("got %+v at %v from %s, want %+v", m.Headers, m.At, m.Coordinates, want)
		}
		if m := got[1].Message; m.EventID() != "id-2" || m.EventType() != "paid" || len(m.Headers) != 3 {
			t.Errorf("properties were put before or beside headers: %+v", m.Headers)
		}
		if m := got[2].Message; m.Coordinates != "rabbitmq:/"+q.name+"@id-3" {
			t.Errorf("coordinates %q of a message with an id in its headers", m.Coordinates)
		}
		if m := got[3].Message; m.Coordinates != "rabbitmq:/"+q.name+"@delivery-4" || len(m.Headers) > 0 {
			t.Errorf("coordinates %q and headers %+v of a message without anything", m.Coordinates, m.Headers)
		}
	})
}

func TestSourceWaitsForAMissingQueue(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		there, missing := b.newQueue(t, classic), b.newQueue(t, classic)
		remove := func() {
			if _, err := b.channel(t).QueueDelete(missing.name, false, false, false); err != nil {
				t.Fatal(err)
			}
		}
		remove()
		s := openSource(t, address, 10, missing.name, there.name)
		defer s.Close()
		wantFailure(t, s, missing.name, "does not exist", "declare it")
		there.put(t, 1, 1)
		wantDeliveries(t, fetch(t, s, 1), "1") // the other queue goes on
		declare := func() {
			if _, err := b.channel(t).QueueDeclare(missing.name, true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		declare()
		missing.put(t, 2, 2)
		wantDeliveries(t, fetch(t, s, 1), "2")
		remove() // which the server tells its consumers
		wantFailure(t, s, missing.name, "the server has ended the subscription")
		declare()
		missing.put(t, 3, 3)
		wantDeliveries(t, fetch(t, s, 1), "3")
	})
}

func TestSourceRefusesStreams(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		q := newBroker(t, address).newQueue(t, stream)
		s := openSource(t, address, 10, q.name)
		defer s.Close()
		wantFailure(t, s, q.name, "stream")
	})
}

func TestSourceTellsThatItCannotConnect(t *testing.T) {
	t.Parallel()
	s := openSource(t, "amqp://127.0.0.1:1", 10, "a", "b")
	defer s.Close()
	wantFailure(t, s, "no connection")
}

func TestSourceCountsDeliveries(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		for kind, want := range map[string][]int{classic: {1, 2, 2, 2}, quorum: {1, 2, 3, 4}} {
			q := newBroker(t, address).newQueue(t, kind)
			q.put(t, 1, 1)
			s := openSource(t, address, 10, q.name)
			defer s.Close()
			var got []int
			for range want {
				d := fetch(t, s, 1)[0]
				got = append(got, d.Deliveries)
				if names := len(d.Message.Headers); names != 1 {
					t.Errorf("%s: headers %+v, want the id only", kind, d.Message.Headers)
				}
				s.Return(d)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: counted %d, want %d", kind, got, want)
			}
		}
	})
}

func TestSourceKeepsItsPrefetch(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		for _, kind := range []string{classic, quorum} {
			q := newBroker(t, address).newQueue(t, kind)
			q.put(t, 1, 8)
			s, other := openSource(t, address, 5, q.name), openSource(t, address, 5, q.name+"-missing")
			other.Close()
			got := fetch(t, s, 5)
			nothingFor(t, s, 500*time.Millisecond)
			other = openSource(t, address, 5, q.name)
			fetch(t, other, 3) // what is over its prefetch goes to others
			other.Close()
			s.Finish(got[:2]...)
			fetch(t, s, 2)
			nothingFor(t, s, 500*time.Millisecond)
			s.Close()
		}
	})
}

// TestSourceForgetsWhatALostConnectionBrought has messages wait in the source when the connection is lost.
func TestSourceForgetsWhatALostConnectionBrought(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		q := newBroker(t, address).newQueue(t, quorum)
		q.put(t, 1, 5)
		proxy := sinktest.NewProxy(t, host(t, address))
		s := openSource(t, at(t, address, proxy.Addr, ""), 10, q.name)
		defer s.Close()
		old := fetch(t, s, 1)
		await.True(t, time.Minute, "the others wait", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.readers[0].shelf.Ready) == 4
		})
		proxy.Cut()
		await.True(t, time.Minute, "the subscription has ended", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.readers[0].current == nil
		})
		proxy.Heal()
		got := fetch(t, s, 5)
		wantDeliveries(t, got, "1", "2", "3", "4", "5")
		s.Finish(old...) // its number is that of another delivery by now
		nothingFor(t, s, 500*time.Millisecond)
		s.Return(got...)
		wantDeliveries(t, fetch(t, s, 5), "1", "2", "3", "4", "5")
	})
}

// TestSourceOfASingleActiveConsumer has two members of a queue that has one at a time.
func TestSourceOfASingleActiveConsumer(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		q := newBroker(t, address).newQueue(t, quorum, "x-single-active-consumer", true)
		q.put(t, 1, 10)
		first := openSource(t, address, 3, q.name)
		wantDeliveries(t, fetch(t, first, 3), "1", "2", "3")
		second := openSource(t, address, 10, q.name)
		defer second.Close()
		nothingFor(t, second, time.Second)
		first.Close()
		wantDeliveries(t, fetch(t, second, 10), "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
	})
}

// TestSourceAfterACrash kills the server while a source has messages.
func TestSourceAfterACrash(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			server := launch(t, version)
			b := newBroker(t, server.address())
			queues := []*queue{b.newQueue(t, classic), b.newQueue(t, quorum)}
			server.End(t) // one that is killed within seconds after a quorum queue was declared can forget it
			server.Start(t)
			for _, q := range queues {
				q.put(t, 1, 20)
				s := openSource(t, server.address(), 100, q.name)
				defer s.Close()
				got := fetch(t, s, 20)
				s.Finish(got[:10]...)
				if err := s.Flush(testContext(t)); err != nil {
					t.Fatal(err)
				}
				server.Stop(t, syscall.SIGKILL)
				s.Finish(got[10:12]...) // the server does not learn of it
				server.Start(t)
				missing := make(map[string]bool)
				for _, d := range got[10:] {
					missing[d.Message.EventID()] = true
				}
				for len(missing) > 0 { // it may have forgotten acknowledgements as well
					for _, d := range fetch(t, s, 1) {
						delete(missing, d.Message.EventID())
						s.Finish(d)
					}
				}
			}
		})
	}
}

// TestSourceFlushEndsWithItsContext has a server that no longer answers.
func TestSourceFlushEndsWithItsContext(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		q := newBroker(t, address).newQueue(t, classic)
		q.put(t, 1, 1)
		proxy := sinktest.NewProxy(t, host(t, address))
		s := openSource(t, at(t, address, proxy.Addr, ""), 10, q.name)
		got := fetch(t, s, 1)
		proxy.Freeze()
		s.Finish(got...)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		if err := s.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush returned %v, want the error of its context", err)
		}
		start := time.Now()
		s.Close()
		if took := time.Since(start); took > 4*patience {
			t.Errorf("Close took %v", took)
		}
		await.True(t, time.Minute, "the message comes again", func() bool {
			heir := openSource(t, address, 10, q.name)
			defer heir.Close()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			again, _ := heir.Fetch(ctx, 1)
			return len(again) == 1
		})
	})
}
