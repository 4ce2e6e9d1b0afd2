package consumertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/relay"
)

// patience bounds every wait of the suite, so that a source that never returns fails instead of hanging.
const patience = 2 * time.Minute

// slack is how late Fetch may be after its context has ended, on a machine that is busy.
const slack = 5 * time.Second

const idHeader = "X-Event-Id"

var lastID atomic.Int64

// fixture is what a case works with.
type fixture struct {
	t testing.TB
	Harness
	Group
}

// join opens a member, which is closed at the end unless the case does so.
func (f *fixture) join() *member {
	f.t.Helper()
	m := &member{t: f.t, Member: f.Join(f.t)}
	f.t.Cleanup(func() {
		if !m.closed {
			_ = m.Source.Close() // of a connection that was cut it may tell so
		}
	})
	return m
}

// publish stores messages in their order, and returns their ids and where the sink says they are.
func (f *fixture) publish(keys ...string) (ids, coordinates []string) {
	f.t.Helper()
	return f.publishAll(f.messages(f.Topic, keys))
}

// publishRetries stores messages on the retry topic that are due after a while.
func (f *fixture) publishRetries(after time.Duration, keys ...string) (ids []string) {
	f.t.Helper()
	batch := f.messages(consumer.RetryTopic(f.Topic, RetryDelay), keys)
	for i := range batch {
		due := relay.Header{Name: consumer.HeaderRetryAt, Value: time.Now().Add(after).Format(time.RFC3339)}
		batch[i].Headers = append(batch[i].Headers, due)
	}
	ids, _ = f.publishAll(batch)
	return ids
}

func (f *fixture) messages(topic string, keys []string) []relay.Message {
	batch := make([]relay.Message, len(keys))
	for i, key := range keys {
		batch[i] = f.message(key)
		batch[i].Topic = topic
	}
	return batch
}

func (f *fixture) message(key string) relay.Message {
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", time.Now().Unix()&0xffffffff, lastID.Add(1))
	return relay.Message{
		EventID: id,
		Key:     key,
		Topic:   f.Topic,
		Headers: []relay.Header{{Name: idHeader, Value: id}, {Name: "X-Event-Type", Value: "tested"}},
		Payload: []byte(`{"id":"` + id + `"}`),
	}
}

func (f *fixture) publishAll(batch []relay.Message) (ids, coordinates []string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, outcome := range f.Sink.Publish(ctx, batch) {
		if outcome.Class != relay.ClassPublished {
			f.t.Fatalf("message %d was not published: %s: %v", i, outcome.Class, outcome.Err)
		}
		ids, coordinates = append(ids, batch[i].EventID), append(coordinates, outcome.Coordinates)
	}
	return ids, coordinates
}

// keys returns n keys of which every lane of the topic has some.
func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = "key-" + strconv.Itoa(i%40)
	}
	return all
}

// manyKeys returns n different keys.
func manyKeys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = "key-" + strconv.Itoa(i)
	}
	return all
}

// oneKey returns the same key n times: what it names is in one lane.
func oneKey(n int) []string { return slices.Repeat([]string{"key"}, n) }

// onlyComes has a new member read on, until the broker has had the time to give it everything that is not finished. What
// the member gets must be want, in any order.
func (f *fixture) onlyComes(want []string) {
	f.t.Helper()
	heir := f.join()
	markers, _ := f.publish(keys(40)...)
	want = append(slices.Clone(want), markers...)
	got := idsOf(heir.fetch(len(want)))
	if !f.Positions { // what is behind a marker in a lane was published after it; elsewhere only time tells
		got = append(got, idsOf(heir.fetchFor(f.Expiry*3/2))...)
	}
	checkSame(f.t, got, want)
	heir.finishAll()
}

// member is a source in the hands of a case.
type member struct {
	Member
	t      testing.TB
	closed bool
	mine   []*consumer.Delivery // fetched by fetch
}

// fetch returns exactly n deliveries.
func (m *member) fetch(n int) []*consumer.Delivery {
	m.t.Helper()
	var all []*consumer.Delivery
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for len(all) < n {
		got, err := m.Source.Fetch(ctx, n-len(all))
		if err != nil {
			m.t.Fatalf("Fetch after %d of %d messages: %v", len(all), n, err)
		}
		checkFetched(m.t, got, n-len(all))
		all = append(all, got...)
	}
	m.mine = append(m.mine, all...)
	return all
}

// fetchFor returns what comes within that time.
func (m *member) fetchFor(d time.Duration) (all []*consumer.Delivery) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	start := time.Now()
	for {
		got, err := m.Source.Fetch(ctx, 100)
		if late := time.Since(start) - d; late > slack {
			m.t.Errorf("Fetch returned %v after its context had ended", late)
		}
		if ctx.Err() != nil && err != nil {
			m.mine = append(m.mine, all...)
			return all
		}
		if err != nil {
			m.t.Fatalf("Fetch: %v", err)
		}
		all = append(all, got...)
	}
}

func (m *member) finishAll() {
	m.t.Helper()
	m.Source.Finish(m.mine...)
	m.mine = nil
	m.flush()
}

func (m *member) flush() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Source.Flush(ctx); err != nil {
		m.t.Fatalf("Flush: %v", err)
	}
}

func (m *member) close() {
	m.t.Helper()
	m.closed = true
	if err := m.Source.Close(); err != nil {
		m.t.Errorf("Close: %v", err)
	}
}

// loop is a member that fetches in the background, and hands each delivery to take.
type loop struct {
	member *member
	stop   func() // ends the loop and waits for it; may be called again

	mu  sync.Mutex
	got []string
}

// run begins a loop. Errors of Fetch do not end it: they are told only if tells is set.
func (m *member) run(tells bool, take func(d *consumer.Delivery)) *loop {
	ctx, cancel := context.WithCancel(context.Background())
	l := &loop{member: m}
	var running sync.WaitGroup
	l.stop = func() {
		cancel()
		running.Wait()
	}
	running.Go(func() {
		for ctx.Err() == nil {
			got, err := m.Source.Fetch(ctx, 100)
			if err != nil && ctx.Err() == nil {
				if tells {
					m.t.Errorf("Fetch: %v", err)
				}
				time.Sleep(20 * time.Millisecond) // a source may tell at once, again and again
			}
			for _, d := range got {
				l.mu.Lock()
				l.got = append(l.got, idOf(d))
				l.mu.Unlock()
				take(d)
			}
		}
	})
	m.t.Cleanup(l.stop)
	return l
}

func (l *loop) ids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}

// waitFor waits until all ids have come to one of the loops.
func waitFor(t testing.TB, ids []string, loops ...*loop) {
	t.Helper()
	var missing int
	await.True(t, patience, "every message comes", func() bool {
		var got []string
		for _, l := range loops {
			got = append(got, l.ids()...)
		}
		missing = len(without(ids, got))
		return missing == 0
	})
}

func checkFetched(t testing.TB, got []*consumer.Delivery, limit int) {
	t.Helper()
	if len(got) == 0 || len(got) > limit {
		t.Fatalf("Fetch returned %d deliveries and no error; want between 1 and %d", len(got), limit)
	}
}

func idOf(d *consumer.Delivery) string { return d.Message.Header(idHeader) }

func idsOf(deliveries []*consumer.Delivery) []string {
	ids := make([]string, len(deliveries))
	for i, d := range deliveries {
		ids[i] = idOf(d)
	}
	return ids
}

// checkSame compares without regard to the order. Every one must be there as often as it is wanted.
func checkSame(t testing.TB, got, want []string) {
	t.Helper()
	if missing := without(want, got); len(missing) > 0 {
		t.Errorf("%d of %d messages did not come: %.3q", len(missing), len(want), missing)
	}
	if extra := without(got, want); len(extra) > 0 {
		t.Errorf("%d messages came that should not, or too often: %.3q", len(extra), extra)
	}
}

// without returns what is in all and not in some, each as often as it is there more.
func without(all, some []string) (rest []string) {
	count := make(map[string]int)
	for _, id := range some {
		count[id]++
	}
	for _, id := range all {
		if count[id]--; count[id] < 0 {
			rest = append(rest, id)
		}
	}
	return rest
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func header(h relay.Header) inbox.Header { return inbox.Header{Name: h.Name, Value: h.Value} }
