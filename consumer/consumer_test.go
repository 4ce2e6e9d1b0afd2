package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
)

var errBusy = errors.New("busy")

// failID fails the message with the id.
func failID(id string, err error) func(inbox.Message) error {
	return func(m inbox.Message) error {
		if m.EventID() == id {
			return err
		}
		return nil
	}
}

// inBubble runs test with the clock of synctest.
func inBubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func header(m relay.Message, name string) string {
	for _, h := range m.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

func TestNewReportsAllMistakesTogether(t *testing.T) {
	_, err := consumer.New(consumer.Config{
		Workers: -1, Policy: consumer.Policy{Retry: "never", Delays: []time.Duration{1}},
		Policies: map[string]consumer.Policy{"Made": {Retry: consumer.RetryPark, Schedule: relay.RetryPolicy{Attempts: 2}}},
	})
	for _, want := range []string{
		"Name is missing", "Source is missing", "Handler is missing", "Workers is -1", `Policy.Retry is "never"`, "Policy.Delays[0] is 1ns",
		"Sink is missing", `Parking is missing, but Policies["Made"]`, `Policies["Made"].Schedule needs`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not tell: %s", err, want)
		}
	}
}

func TestPeopleMayGiveUpWhatIsParkedSoThatASinkIsNeeded(t *testing.T) {
	_, err := consumer.New(consumer.Config{Policy: consumer.Policy{Retry: consumer.RetryPark, Permanent: consumer.EndDrop, Malformed: consumer.EndDrop}})
	if err == nil || !strings.Contains(err.Error(), "Sink is missing") {
		t.Error(err)
	}
}

func TestKeysAreAppliedInOrderAndAcknowledged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{}
		perKey := map[string][]string{}
		for i := range 500 {
			key, id := fmt.Sprint("k", i%7), fmt.Sprint(i)
			b.send("orders", key, id)
			perKey[key] = append(perKey[key], id)
		}
		c, stop := run(t, b, consumer.Config{Handler: l.handle, Batch: 20})
		after(time.Second)
		stop()
		got := map[string][]string{}
		for _, id := range l.applied {
			var i int
			fmt.Sscan(id, &i)
			key := fmt.Sprint("k", i%7)
			got[key] = append(got[key], id)
		}
		for key, want := range perKey {
			if !slices.Equal(got[key], want) {
				t.Errorf("key %s: %v, want %v", key, got[key], want)
			}
		}
		if n := b.unfinished("orders"); n != 0 || !b.flushed {
			t.Errorf("%d not acknowledged, flushed %v", n, b.flushed)
		}
		if s := c.Stats(); s.Applied != 500 || s.Fetched != 500 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAFailureInPlaceHoldsItsKeyOnlyAndEndsAsADeadLetter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: failID("a1", errBusy)}
		for _, id := range []string{"a0", "a1", "a2", "b0", "b1"} {
			b.send("orders", id[:1], id)
		}
		c, _ := run(t, b, consumer.Config{
			Handler: l.handle, Workers: 1,
			Policy: consumer.Policy{Schedule: relay.RetryPolicy{Schedule: []time.Duration{time.Second, time.Minute}}},
		})
		after(30 * time.Second)
		l.wantsAnyOrder(t, "a0", "b0", "b1")
		if s := c.Stats(); s.Blocked != 1 || s.InFlight != 2 || s.Failures != 2 {
			t.Errorf("%+v", s)
		}
		after(32 * time.Second)
		l.wantsAnyOrder(t, "a0", "a2", "b0", "b1")
		letters := b.letters("orders.dlt")
		if len(letters) != 1 || b.unfinished("orders") != 0 {
			t.Fatalf("%d letters, %d not acknowledged", len(letters), b.unfinished("orders"))
		}
		dead := letters[0]
		for name, want := range map[string]string{
			"X-Event-Id": "a1", "X-Origin-Topic": "orders", "X-Origin-Partition": "0", "X-Origin-Offset": "1", "X-Failure-Consumer": "billing",
			"X-Failure-Class": "retry", "X-Failure-Message": "busy", "X-Failure-Attempts": "3",
			"X-Failure-First-At": "2000-01-01T00:00:00.000Z", "X-Failure-Last-At": "2000-01-01T00:01:01.000Z", "X-Retry-At": "",
		} {
			if got := header(dead, name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if string(dead.Payload) != "a1" || dead.Key != "a" || dead.EventID != "a1:dlt:billing:memory:orders/0@1" {
			t.Errorf("dead letter %q of key %q with id %q", dead.Payload, dead.Key, dead.EventID)
		}
	})
}

func TestPermanentAndMalformedLeaveAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{}
		l.fail = func(m inbox.Message) error {
			switch m.EventID() {
			case "a0":
				return inbox.Permanent(errBusy)
			case "b0":
				return inbox.Malformed(errBusy)
			}
			return nil
		}
		for _, id := range []string{"a0", "a1", "b0", "b1"} {
			b.send("orders", id[:1], id)
		}
		c, _ := run(t, b, consumer.Config{Handler: l.handle, Workers: 1, Policy: consumer.Policy{Malformed: consumer.EndDrop}})
		after(time.Millisecond)
		l.wantsAnyOrder(t, "a1", "b1")
		if letters := b.letters("orders.dlt"); len(letters) != 1 || header(letters[0], "X-Failure-Class") != "permanent" {
			t.Errorf("dead letters %+v", letters)
		}
		if s := c.Stats(); s.Dropped != 1 || s.DeadLettered != 1 || b.unfinished("orders") != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnUnknownTypeIsMalformed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{}
		b.send("orders", "a", "a0")
		run(t, b, consumer.Config{Handler: l.handle, Types: []string{"Other"}})
		after(time.Millisecond)
		l.wants(t)
		if letters := b.letters("orders.dlt"); len(letters) != 1 || header(letters[0], "X-Failure-Class") != "malformed" {
			t.Errorf("dead letters %+v", letters)
		}
	})
}

func TestRetryTopicsLetTheKeyGoOnAndCountOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: failID("a0", errBusy)}
		b.send("orders", "a", "a0")
		b.send("orders", "a", "a1")
		run(t, b, consumer.Config{Handler: l.handle, Policy: consumer.Policy{Retry: consumer.RetryTopics}})
		after(time.Millisecond)
		l.wants(t, "a1")
		want := time.Second
		for i, topic := range []string{"orders.retry.1s", "orders.retry.30s", "orders.retry.5m"} {
			letters := b.letters(topic)
			if len(letters) != 1 {
				t.Fatalf("%d letters on %s", len(letters), topic)
			}
			for _, h := range letters[0].Headers {
				if n := len(slices.DeleteFunc(slices.Clone(letters[0].Headers), func(o relay.Header) bool { return o.Name != h.Name })); n != 1 {
					t.Errorf("%s: header %s stands %d times", topic, h.Name, n)
				}
			}
			if a := header(letters[0], "X-Failure-Attempts"); a != fmt.Sprint(i+1) || header(letters[0], "X-Origin-Offset") != "0" {
				t.Errorf("%s: attempts %s, origin %s", topic, a, header(letters[0], "X-Origin-Offset"))
			}
			after(want - 2*time.Millisecond)
			if n := b.unfinished(topic); n != 1 {
				t.Errorf("%s was read before its delay", topic)
			}
			after(2 * time.Millisecond)
			if n := b.unfinished(topic); n != 0 {
				t.Errorf("%s was not read after its delay", topic)
			}
			want = []time.Duration{30 * time.Second, 5 * time.Minute, 0}[i]
		}
		letters := b.letters("orders.dlt")
		if len(letters) != 1 || header(letters[0], "X-Failure-Attempts") != "4" || header(letters[0], "X-Retry-At") != "" ||
			header(letters[0], "X-Failure-First-At") != "2000-01-01T00:00:00.000Z" {
			t.Errorf("dead letters %+v", letters)
		}
	})
}

func TestARetryTopicOfAnotherConsumerIsPassedOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{}
		retryAt := inbox.Header{Name: "X-Retry-At", Value: "2000-01-01T00:00:00.000Z"}
		b.send("orders.retry.1s", "a", "a0", retryAt, inbox.Header{Name: "X-Failure-Consumer", Value: "shipping"})
		b.send("orders.retry.1s", "a", "a1", retryAt, inbox.Header{Name: "X-Failure-Consumer", Value: "billing"})
		c, _ := run(t, b, consumer.Config{Handler: l.handle})
		after(time.Millisecond)
		l.wants(t, "a1")
		if s := c.Stats(); s.Foreign != 1 || b.unfinished("orders.retry.1s") != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestNoRetryHeaderMakesAMessageWaitForEver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{}
		b.send("orders", "a", "a0", inbox.Header{Name: "X-Retry-At", Value: "9999-01-01T00:00:00.000Z"})
		run(t, b, consumer.Config{Handler: l.handle})
		after(5*time.Minute + time.Millisecond)
		l.wants(t, "a0")
	})
}

func TestAnOutageOfTheDatabaseSpendsNoAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: func(inbox.Message) error { return inbox.Unavailable(errBusy) }}
		for i := range 50 {
			b.send("orders", fmt.Sprint(i), fmt.Sprint(i))
		}
		c, _ := run(t, b, consumer.Config{Handler: l.handle, Policy: consumer.Policy{Schedule: relay.RetryPolicy{Attempts: 1, Initial: 1, Ceiling: 1}}})
		after(time.Hour)
		if h := c.Health(); h.Ready || len(h.Reasons) != 1 || !strings.Contains(h.Reasons[0], "busy") {
			t.Errorf("%+v", h)
		}
		if l.calls > 300 {
			t.Errorf("%d calls in an hour", l.calls)
		}
		l.failWith(nil)
		after(time.Minute)
		if s := c.Stats(); s.Applied != 50 || s.DeadLettered != 0 || !c.Health().Ready {
			t.Errorf("%+v", c.Health())
		}
	})
}

func TestAPanicIsTheFailureOfItsMessage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{}
		for _, id := range []string{"a0", "b0", "b1", "c0"} {
			b.send("orders", id[:1], id)
		}
		run(t, b, consumer.Config{
			Workers: 1, Policy: consumer.Policy{Schedule: relay.RetryPolicy{Attempts: 1, Initial: 1, Ceiling: 1}},
			Handler: func(ctx context.Context, batch []inbox.Message) []inbox.Result {
				for _, m := range batch {
					if m.EventID() == "b0" {
						panic("no stock")
					}
				}
				return l.handle(ctx, batch)
			},
		})
		after(time.Second)
		l.wantsAnyOrder(t, "a0", "b1", "c0")
		if letters := b.letters("orders.dlt"); len(letters) != 1 || !strings.HasPrefix(header(letters[0], "X-Failure-Message"), "panic: no stock") {
			t.Errorf("dead letters %+v", letters)
		}
	})
}

func TestNothingIsAcknowledgedBeforeItsLetterIsDurable(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: failID("a0", inbox.Permanent(errBusy))}
		down := relay.Unavailable(errors.New("no broker"))
		b.refuseAs(func(relay.Message) *relay.Outcome { return &down })
		for _, id := range []string{"a0", "a1", "b0"} {
			b.send("orders", id[:1], id)
		}
		c, _ := run(t, b, consumer.Config{Handler: l.handle})
		after(time.Hour)
		l.wants(t, "b0")
		if n, h := b.unfinished("orders"), c.Health(); n != 2 || h.Ready || h.Stats.Letters != 1 {
			t.Errorf("%d not acknowledged, %+v", n, h)
		}
		b.refuseAs(nil)
		after(15 * time.Second)
		l.wantsAnyOrder(t, "a1", "b0")
		if n := b.unfinished("orders"); n != 0 || len(b.letters("orders.dlt")) != 1 || !c.Health().Ready {
			t.Errorf("%d not acknowledged, %+v", n, c.Health())
		}
	})
}

func TestALetterThatIsRefusedForGoodLosesItsErrorAndThenBlocksItsKeyOnly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: func(m inbox.Message) error {
			if m.Key != "c" {
				return inbox.Permanent(errBusy)
			}
			return nil
		}}
		tooLarge := relay.Permanent(errors.New("too large"))
		b.refuseAs(func(m relay.Message) *relay.Outcome {
			if m.Key == "a" || header(m, "X-Failure-Message") != "" {
				return &tooLarge
			}
			return nil
		})
		var refused []string
		for _, id := range []string{"a0", "b0", "c0"} {
			b.send("orders", id[:1], id)
		}
		c, _ := run(t, b, consumer.Config{Handler: l.handle, Hooks: consumer.Hooks{
			Refused: func(m inbox.Message, topic string, err error) { refused = append(refused, m.EventID()+" "+topic) },
		}})
		after(30 * time.Second)
		b.send("orders", "c", "c1")
		synctest.Wait()
		l.wants(t, "c0", "c1")
		if letters := b.letters("orders.dlt"); len(letters) != 1 || letters[0].Key != "b" {
			t.Errorf("dead letters %+v", letters)
		}
		h := c.Health()
		if h.Ready || len(h.Reasons) != 1 || !strings.Contains(h.Reasons[0], "too large") || h.Stats.Refused != 1 || b.unfinished("orders") != 1 {
			t.Errorf("%+v", h)
		}
		if !slices.Equal(refused, []string{"a0 orders.dlt"}) {
			t.Errorf("refused %v", refused)
		}
		b.refuseAs(nil)
		after(time.Minute)
		if n := b.unfinished("orders"); n != 0 || !c.Health().Ready {
			t.Errorf("%d not acknowledged, %+v", n, c.Health())
		}
	})
}

func TestALaneThatIsStuckDoesNotStarveOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: func(m inbox.Message) error {
			if m.Key == "stuck" {
				return errBusy
			}
			return nil
		}}
		for i := range 1000 {
			b.send("orders", "stuck", fmt.Sprint("s", i))
			b.send("users", fmt.Sprint(i), fmt.Sprint("u", i))
		}
		c, _ := run(t, b, consumer.Config{
			Handler: l.handle, MaxInFlight: 100, LaneBuffer: 40, Batch: 10,
			Policy: consumer.Policy{Schedule: relay.RetryPolicy{Initial: time.Hour, Ceiling: time.Hour, Attempts: 9}},
		})
		after(time.Minute)
		if n, s := b.unfinished("users"), c.Stats(); n != 0 || s.PausedLanes != 1 || s.InFlight > 100 {
			t.Errorf("%d of the other lane are left, %+v", n, s)
		}
	})
}

func TestWhatWaitsOnARetryTopicTakesLittleRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{}
		for i := range 200 {
			b.send("orders.retry.5m", fmt.Sprint(i), fmt.Sprint("r", i), inbox.Header{Name: "X-Retry-At", Value: "2000-01-01T00:01:00.000Z"})
		}
		for i := range 200 {
			b.send("orders", fmt.Sprint(i), fmt.Sprint("o", i))
		}
		c, _ := run(t, b, consumer.Config{Handler: l.handle, MaxInFlight: 100, LaneBuffer: 100, RetryBuffer: 50, Batch: 10})
		after(30 * time.Second)
		if n, s := b.unfinished("orders"), c.Stats(); n != 0 || s.Applied != 200 || s.PausedLanes != 1 {
			t.Errorf("%d are left, %+v", n, s)
		}
		after(31 * time.Second)
		if n := b.unfinished("orders.retry.5m"); n != 0 {
			t.Errorf("%d retries are left", n)
		}
	})
}

func TestARevokedLaneEndsWhatRunsAndGivesTheRestBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: failID("b0", errBusy)}
		begun, release := make(chan struct{}), make(chan struct{})
		for _, id := range []string{"b0", "a0", "a1", "a2"} {
			b.send("orders", id[:1], id)
		}
		run(t, b, consumer.Config{Workers: 1, Batch: 1, MaxInFlight: 100, Handler: func(ctx context.Context, batch []inbox.Message) []inbox.Result {
			if batch[0].EventID() == "a0" {
				close(begun)
				<-release
			}
			return l.handle(ctx, batch)
		}})
		<-begun
		synctest.Wait()
		b.revoke("orders")
		synctest.Wait()
		if lane := b.lanes["orders"]; len(lane.out) != 1 || lane.returned != 3 {
			t.Errorf("%d out, %d returned while a0 is handled", len(lane.out), lane.returned)
		}
		close(release)
		synctest.Wait()
		l.wants(t, "a0")
		if lane := b.lanes["orders"]; len(lane.out) != 0 || !lane.finished[1] {
			t.Errorf("%d out, finished %v", len(lane.out), lane.finished)
		}
	})
}

func TestWhatFailsAfterItsLaneWasRevokedIsReturned(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: func(inbox.Message) error { return errBusy }}
		b.send("orders", "a", "a0")
		run(t, b, consumer.Config{Handler: func(ctx context.Context, batch []inbox.Message) []inbox.Result {
			b.revoke("orders")
			time.Sleep(time.Millisecond)
			return l.handle(ctx, batch)
		}})
		after(10 * time.Millisecond)
		if lane := b.lanes["orders"]; len(lane.out) != 0 || lane.returned != 1 {
			t.Errorf("%d out, %d returned", len(lane.out), lane.returned)
		}
	})
}

func TestAStopReturnsWhatTheSinkDoesNotTakeInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: failID("a0", inbox.Permanent(errBusy))}
		b.refuseAs(func(relay.Message) *relay.Outcome {
			time.Sleep(time.Minute)
			return nil
		})
		b.send("orders", "a", "a0")
		c, err := consumer.New(consumer.Config{Name: "billing", Source: b, Sink: b, Grace: time.Second, Handler: l.handle})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Run(ctx); err == nil {
			t.Error("no error")
		}
		if lane := b.lanes["orders"]; len(lane.out) != 0 || lane.returned != 1 {
			t.Errorf("%d out, %d returned", len(lane.out), lane.returned)
		}
		after(time.Minute) // the sink answers, and nothing is finished twice
	})
}

func TestAStopEndsWhatRunsAndReturnsTheRest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b, l := newMemory(), &ledger{fail: failID("b0", errBusy)}
		begun := make(chan struct{})
		for _, id := range []string{"b0", "a0", "a1", "c0"} {
			b.send("orders", id[:1], id)
		}
		c, stop := run(t, b, consumer.Config{Workers: 1, Batch: 1, MaxInFlight: 100, Handler: func(ctx context.Context, batch []inbox.Message) []inbox.Result {
			if batch[0].EventID() == "a0" {
				close(begun)
				time.Sleep(5 * time.Second)
			}
			return l.handle(ctx, batch)
		}})
		<-begun
		synctest.Wait()
		stop()
		l.wants(t, "a0")
		lane := b.lanes["orders"]
		if len(lane.out) != 0 || len(lane.finished) != 1 || lane.returned != 3 || !b.flushed {
			t.Errorf("%+v", lane)
		}
		if h := c.Health(); h.Ready {
			t.Error("ready after the stop")
		}
	})
}

func TestAStopDoesNotWaitForAHandlerThatNeverReturns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newMemory()
		b.send("orders", "a", "a0")
		told := false
		c, err := consumer.New(consumer.Config{Name: "billing", Source: b, Sink: b, Grace: time.Second,
			Policy: consumer.Policy{Exhausted: consumer.EndDrop, Schedule: relay.RetryPolicy{Attempts: 1, Initial: 1, Ceiling: 1}},
			Handler: func(ctx context.Context, _ []inbox.Message) []inbox.Result {
				<-ctx.Done()
				told = true
				return []inbox.Result{{Err: ctx.Err()}}
			}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Errorf("%v although the handler has ended when it was told", err)
		}
		if lane := b.lanes["orders"]; !told || lane.returned != 1 {
			t.Errorf("told %v, %+v: a message that was told to end has not failed", told, lane)
		}
	})
}
