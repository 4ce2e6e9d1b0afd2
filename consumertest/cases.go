package consumertest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/relay"
)

func fetchEndsWithItsContext(t *testing.T, f *fixture) {
	m := f.join()
	for _, wait := range []time.Duration{0, 300 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		start := time.Now()
		got, err := m.Source.Fetch(ctx, 10)
		if len(got) > 0 || !isContextError(err) {
			t.Errorf("Fetch of nothing returned %d deliveries and %v, want the error of its context", len(got), err)
		}
		if took := time.Since(start); took > wait+slack {
			t.Errorf("Fetch returned %v after it began, though its context ended after %v", took, wait)
		}
	}
	f.publish("key")
	m.fetch(1) // it can be called again
}

func limitIsKept(t *testing.T, f *fixture) {
	ids, _ := f.publish(oneKey(10)...)
	m := f.join()
	var got []string
	for len(got) < len(ids) {
		limit := min(3, len(ids)-len(got))
		deliveries, err := m.Source.Fetch(deadline(t), limit)
		if err != nil {
			t.Fatal(err)
		}
		checkFetched(t, deliveries, limit)
		got = append(got, idsOf(deliveries)...)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("got %q, want %q", got, ids)
	}
}

// deadline is a context that bounds a call that should not take long.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func messagesAreExact(t *testing.T, f *fixture) {
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	batch := []relay.Message{f.message("key"), f.message("key"), f.message("key"), f.message("schlüssel/ä b")}
	batch[0].Payload = everyByte
	batch[1].Payload = []byte{}
	batch[2].Payload = bytes.Repeat(everyByte, 256)
	batch[3].Headers = append(batch[3].Headers, relay.Header{Name: "X-Text", Value: "grüße, \"a=b; c\""})
	_, coordinates := f.publishAll(batch)
	want := make(map[string]int)
	for i, m := range batch {
		want[m.EventID] = i
	}
	for _, d := range f.join().fetch(len(batch)) {
		i, ok := want[idOf(d)]
		if !ok {
			t.Fatalf("no such message was published: %s", d.Message)
		}
		f.checkExact(batch[i], coordinates[i], d)
	}
}

func (f *fixture) checkExact(want relay.Message, coordinates string, d *consumer.Delivery) {
	f.t.Helper()
	got := d.Message
	if !bytes.Equal(got.Payload, want.Payload) {
		f.t.Errorf("%s: payload of %d bytes %.40q, want %d bytes %.40q", got, len(got.Payload), got.Payload, len(want.Payload), want.Payload)
	}
	if f.Key && got.Key != want.Key {
		f.t.Errorf("%s: key %q, want %q", got, got.Key, want.Key)
	}
	for _, h := range want.Headers { // a sink may add some of its own
		if !slices.Contains(got.Headers, header(h)) {
			f.t.Errorf("%s: no header %+v in %+v", got, h, got.Headers)
		}
	}
	if got.Topic != f.Topic {
		f.t.Errorf("%s: topic %q, want %q", got, got.Topic, f.Topic)
	}
	if got.Coordinates == "" || f.Coordinates && got.Coordinates != coordinates {
		f.t.Errorf("%s: coordinates %q, want %q", got, got.Coordinates, coordinates)
	}
	if age := time.Since(got.At); !got.At.IsZero() && (age > time.Hour || age < -time.Hour) {
		f.t.Errorf("%s: stored at %v", got, got.At)
	}
	if d.Deliveries > 1 {
		f.t.Errorf("%s: delivered %d times, want 1 or 0", got, d.Deliveries)
	}
	if d.Lane == "" || f.Positions != (d.Revoked != nil) {
		f.t.Errorf("%s: lane %q and Revoked %v, want a lane, with Revoked where there are positions", got, d.Lane, d.Revoked)
	}
}

func orderWithinALane(t *testing.T, f *fixture) {
	all := keys(1000)
	ids, _ := f.publish(all...)
	keyOf := make(map[string]string)
	want := make(map[string][]string)
	for i, id := range ids {
		keyOf[id] = all[i]
		want[all[i]] = append(want[all[i]], id)
	}
	got := make(map[string][]string)
	lanes := make(map[string]string)
	for _, d := range f.join().fetch(len(ids)) {
		key := keyOf[idOf(d)]
		got[key] = append(got[key], idOf(d))
		if lane, ok := lanes[key]; ok && lane != d.Lane {
			t.Fatalf("messages of key %s come in the lanes %s and %s", key, lane, d.Lane)
		}
		lanes[key] = d.Lane
	}
	for key := range want {
		if !slices.Equal(got[key], want[key]) {
			t.Errorf("messages of key %s come in another order than they were published", key)
		}
	}
}

func finishedIsOver(t *testing.T, f *fixture) {
	f.publish(keys(100)...)
	m := f.join()
	m.fetch(100)
	m.finishAll()
	m.close()
	f.onlyComes(nil)
}

func unfinishedComesAgainAfterClose(t *testing.T, f *fixture) {
	ids, _ := f.publish(keys(100)...)
	m := f.join()
	m.fetch(100)
	m.close()
	f.onlyComes(ids)
}

func unfinishedComesAgainAfterACut(t *testing.T, f *fixture) {
	ids, _ := f.publish(keys(100)...)
	m := f.join()
	m.fetch(100)
	m.Proxy.Cut()
	f.onlyComes(ids)
}

// unfinishedInTheMiddle finishes the first and the third of five.
func unfinishedInTheMiddle(t *testing.T, f *fixture) {
	ids, _ := f.publish(oneKey(5)...)
	m := f.join()
	got := m.fetch(5)
	for _, i := range []int{3, 0, 2} { // the last one lies behind the gap
		m.Source.Finish(got[i])
	}
	m.flush() // does not wait for the second
	m.close()
	if f.Positions {
		f.onlyComes(ids[1:])
	} else {
		f.onlyComes([]string{ids[1], ids[4]})
	}
}

// keptWhileTheSourceLives holds messages for longer than the broker waits for a member that has gone silent.
func keptWhileTheSourceLives(t *testing.T, f *fixture) {
	f.publish(keys(40)...)
	m := f.join()
	m.fetch(40)
	if f.Positions { // another member would have lanes revoked
		time.Sleep(3 * f.Expiry)
	} else {
		other := f.join()
		if others := other.fetchFor(3 * f.Expiry); len(others) > 0 {
			t.Errorf("%d messages went to another member while the source lives", len(others))
		}
		other.close()
	}
	m.finishAll()
	m.close()
	f.onlyComes(nil)
}

// returnedComesAgain has a lone member get again what it returned, and later ones of a lane as well.
func returnedComesAgain(t *testing.T, f *fixture) {
	ids, _ := f.publish(oneKey(5)...)
	m := f.join()
	got := m.fetch(5)
	m.Source.Finish(got[:2]...)
	m.Source.Return(got[2:]...)
	m.mine = nil
	checkSame(t, idsOf(m.fetch(3)), ids[2:])
	m.finishAll()
	m.close()
	f.onlyComes(nil)
}

func returnedGoesToOthers(t *testing.T, f *fixture) {
	ids, _ := f.publish(keys(40)...)
	m := f.join()
	m.Source.Return(m.fetch(40)...)
	m.close()
	f.onlyComes(ids)
}

// membersShareTheWork publishes until both of two members have got something.
func membersShareTheWork(t *testing.T, f *fixture) {
	start := func() *loop {
		m := f.join()
		return m.run(true, func(d *consumer.Delivery) { m.Source.Finish(d) })
	}
	a, b := start(), start()
	var ids []string
	await.True(t, patience, "both members get something", func() bool {
		more, _ := f.publish(keys(80)...)
		ids = append(ids, more...)
		return len(ids) > 400 && len(a.ids()) > 0 && len(b.ids()) > 0
	})
	waitFor(t, ids, a, b)
	a.stop()
	b.stop()
	a.member.flush()
	b.member.flush()
	checkSame(t, append(a.ids(), b.ids()...), ids)
	a.member.close()
	b.member.close()
	f.onlyComes(nil)
}

// revokedLanesWait has a member hold everything while another one joins. Of each lane that goes, half is finished and the rest
// returned: only then, and only that, comes to the other.
func revokedLanesWait(t *testing.T, f *fixture) {
	ids, _ := f.publish(keys(200)...)
	m := f.join()
	held := m.fetch(len(ids))
	holder := m.run(true, func(d *consumer.Delivery) { t.Errorf("%s came again to its holder", d.Message) })
	other := f.join()
	heir := other.run(true, func(d *consumer.Delivery) { other.Source.Finish(d) })
	var going, staying map[string][]*consumer.Delivery
	await.True(t, patience, "a lane is revoked", func() bool {
		going, staying = byRevocation(held)
		return len(going) > 0
	})
	time.Sleep(time.Second) // a lane that does not wait goes at once
	if early := heir.ids(); len(early) > 0 {
		t.Errorf("%d messages went to the other member while they were in hand", len(early))
	}
	going, staying = byRevocation(held)
	var returned []string
	for _, lane := range going {
		half := len(lane) / 2
		m.Source.Finish(lane[:half]...)
		m.Source.Return(lane[half:]...)
		returned = append(returned, idsOf(lane[half:])...)
	}
	waitFor(t, returned, heir)
	for _, lane := range staying {
		m.Source.Finish(lane...)
	}
	holder.stop()
	heir.stop()
	m.flush()
	other.flush()
	checkSame(t, heir.ids(), returned)
	m.close()
	other.close()
	f.onlyComes(nil)
}

func byRevocation(held []*consumer.Delivery) (going, staying map[string][]*consumer.Delivery) {
	going, staying = make(map[string][]*consumer.Delivery), make(map[string][]*consumer.Delivery)
	for _, d := range held {
		select {
		case <-d.Revoked:
			going[d.Lane] = append(going[d.Lane], d)
		default:
			staying[d.Lane] = append(staying[d.Lane], d)
		}
	}
	return going, staying
}

// othersGoOnWhileALaneWaits has a member hold what it has of the lanes that go. Those that stay are served meanwhile, and Fetch ends
// with its context.
func othersGoOnWhileALaneWaits(t *testing.T, f *fixture) {
	first, _ := f.publish(keys(40)...)
	m := f.join()
	held := m.fetch(len(first))
	laneOf := make([]string, len(first)) // by place among the keys
	for _, d := range held {
		laneOf[slices.Index(first, idOf(d))] = d.Lane
	}
	other := f.join()
	heir := other.run(true, func(d *consumer.Delivery) { other.Source.Finish(d) })
	var going map[string][]*consumer.Delivery
	await.True(t, patience, "a lane is revoked", func() bool {
		going, _ = byRevocation(held)
		return len(going) > 0
	})
	second, _ := f.publish(keys(40)...)
	var mine, others []string
	for i, id := range second {
		if _, goes := going[laneOf[i]]; goes {
			others = append(others, id)
		} else {
			mine = append(mine, id)
		}
	}
	checkSame(t, idsOf(m.fetchFor(5*time.Second)), mine)
	m.finishAll()
	waitFor(t, others, heir)
	heir.stop()
	other.flush()
	m.close()
	other.close()
	f.onlyComes(nil)
}

// pausedLanesWait pauses a lane from which part of what there is was fetched: the rest, and what is published later, waits, whether the
// source has read it already or not. Other lanes go on.
func pausedLanesWait(t *testing.T, f *fixture) {
	m := f.join()
	all := keys(40)
	publish := func() []string { // to both topics, in one order
		ids, _ := f.publish(all...)
		return append(ids, f.publishRetries(0, all...)...)
	}
	first := publish()
	laneOf := make([]string, len(first)) // by place in that order
	for _, d := range m.fetch(len(first)) {
		laneOf[slices.Index(first, idOf(d))] = d.Lane
	}
	m.finishAll()
	paused := laneOf[len(first)-1] // of the retry topic
	split := func(ids []string) (waiting, going []string) {
		for i, id := range ids {
			if laneOf[i] == paused {
				waiting = append(waiting, id)
			} else {
				going = append(going, id)
			}
		}
		return waiting, going
	}
	waiting := f.publishRetries(0, keysOf(all, laneOf[len(all):], paused)...)
	got := m.fetch(1)
	m.Source.Pause(paused)
	if early := m.fetchFor(time.Second); len(early) > 0 {
		t.Errorf("%d messages that were there came from a lane that is paused", len(early))
	}
	m.Source.Return(got...)
	later, going := split(publish())
	checkSame(t, idsOf(m.fetch(len(going))), going)
	if early := m.fetchFor(time.Second); len(early) > 0 {
		t.Errorf("%d messages came from a lane that is paused", len(early))
	}
	m.Source.Resume(paused)
	checkSame(t, idsOf(m.fetch(len(waiting)+len(later))), append(waiting, later...))
	m.finishAll()
	m.close()
	f.onlyComes(nil)
}

// keysOf returns the keys whose messages come in a lane.
func keysOf(keys, laneOf []string, lane string) (all []string) {
	for i, key := range keys {
		if laneOf[i] == lane {
			all = append(all, key)
		}
	}
	return all
}

// retriesLeaveRoom has more messages wait for their time than a source and a consumer may have in hand. What comes on the topic is handled
// all the same.
func retriesLeaveRoom(t *testing.T, f *fixture) {
	const room = 200
	waiting := f.publishRetries(RetryDelay, manyKeys(Prefetch*3/2)...)
	m := f.join()
	handled := make(chan string, len(waiting)+40)
	c, err := consumer.New(consumer.Config{
		Name: "tested", Source: m.Source, Sink: f.Sink, MaxInFlight: room, Batch: 20, RetryBuffer: 10,
		Policy: consumer.Policy{Retry: consumer.RetryTopics, Delays: []time.Duration{RetryDelay}},
		Handler: func(_ context.Context, batch []inbox.Message) []inbox.Result {
			for _, message := range batch {
				handled <- message.Header(idHeader)
			}
			return make([]inbox.Result, len(batch))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	await.True(t, patience, "the retry topic is paused", func() bool { return c.Stats().PausedLanes > 0 })
	news, _ := f.publish(keys(40)...)
	published := time.Now()
	var got []string
	for len(got) < len(news) {
		select {
		case id := <-handled:
			got = append(got, id)
		case <-time.After(patience):
			t.Errorf("%d of %d messages were handled while others wait for their time: %+v", len(got), len(news), c.Stats())
			stop()
			<-ended
			return
		}
	}
	checkSame(t, got, news)
	if took := time.Since(published); took > slack {
		t.Errorf("the messages that need not wait were handled %v after they were published", took)
	}
	if s := c.Stats(); s.InFlight > room || s.Waiting == 0 {
		t.Errorf("%d messages are in hand and %d wait for their time, want %d at most and some", s.InFlight, s.Waiting, room)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	m.close()
	heir := f.join()
	l := heir.run(true, func(d *consumer.Delivery) { heir.Source.Finish(d) })
	waitFor(t, waiting, l)
	l.stop()
	heir.flush()
	checkSame(t, l.ids(), waiting)
}

// brokerAwayAndBack cuts the network of the member for longer than it takes to see that.
func brokerAwayAndBack(t *testing.T, f *fixture) {
	m := f.join()
	f.goesOn(m, func() {
		m.Proxy.Cut()
		f.publish(keys(10)...)
		m.Source.Finish(m.mine...) // does not block
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = m.Source.Flush(ctx) // nothing is left to wait for when the source has lost its lanes; else it ends with ctx
	}, m.Proxy.Heal, 10)
}

func brokerRestarted(t *testing.T, f *fixture) {
	m := f.join()
	f.goesOn(m, func() { m.Source.Finish(m.mine...) }, func() { f.Restart(t) }, 0)
}

// goesOn checks that a member goes on after a trouble, with what was published meanwhile as well. What trouble finishes may come
// again, if the broker did not hear of it.
func (f *fixture) goesOn(m *member, trouble, end func(), meanwhile int) {
	before, _ := f.publish(keys(40)...)
	m.fetch(len(before))
	m.finishAll()
	inHand, _ := f.publish(keys(40)...)
	m.fetch(len(inHand))
	trouble()
	m.mine = nil
	end()
	l := m.run(false, func(d *consumer.Delivery) { m.Source.Finish(d) })
	after, _ := f.publish(keys(40)...)
	waitFor(f.t, after, l)
	await.True(f.t, patience, "what was published in the trouble comes", func() bool {
		return len(without(l.ids(), append(inHand, after...))) >= meanwhile
	})
	l.stop()
	m.flush()
	for _, id := range l.ids() {
		if slices.Contains(before, id) {
			f.t.Errorf("%s came again, though it was finished before the trouble", id)
		}
	}
	m.close()
	f.onlyComes(nil)
}

// concurrentUse has several goroutines fetch, return each message once, and finish it, with every other method called meanwhile.
func concurrentUse(t *testing.T, f *fixture) {
	m := f.join()
	var mu sync.Mutex
	returned := make(map[string]bool)
	finished := make(map[string]bool)
	lane := ""
	take := func(d *consumer.Delivery) {
		mu.Lock()
		defer mu.Unlock()
		id := idOf(d)
		lane = d.Lane
		if !returned[id] && strings.HasSuffix(id, "0") {
			returned[id] = true
			m.Source.Return(d)
			return
		}
		finished[id] = true
		m.Source.Finish(d)
	}
	loops := []*loop{m.run(true, take), m.run(true, take), m.run(true, take)}
	var ids []string
	for range 10 {
		more, _ := f.publish(keys(100)...)
		ids = append(ids, more...)
		m.flush()
		mu.Lock()
		name := lane
		mu.Unlock()
		m.Source.Pause(name)
		m.Source.Resume(name)
	}
	await.True(t, patience, "every message is finished", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if !finished[id] {
				return false
			}
		}
		return true
	})
	for _, l := range loops {
		l.stop()
	}
	m.flush()
	m.close()
	f.onlyComes(nil)
}
