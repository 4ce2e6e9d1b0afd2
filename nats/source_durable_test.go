package nats

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/await"
)

// newRetryReading reads NAME.a and its retry topics for a second and an hour.
func newRetryReading(t testing.TB, c jetstream.StreamConfig) reading {
	t.Helper()
	js := client(t, serverURL(t))
	stream := newStream(t, js, c)
	name := stream.CachedInfo().Config.Name
	main := name + ".a"
	subjects := []string{main, consumer.RetryTopic(main, time.Second), consumer.RetryTopic(main, time.Hour)}
	return reading{js, stream, SourceConfig{Servers: []string{serverURL(t)}, Stream: name, Subjects: subjects}}
}

// putRetry stores messages on the retry topic of a delay.
func (r reading) putRetry(t testing.TB, delay time.Duration, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		_, err := r.js.Publish(testContext(t), consumer.RetryTopic(r.config.Stream+".a", delay), []byte(body))
		must(t, err)
	}
}

// filters returns the subjects of the consumers of the stream, without the stream's name.
func (r reading) filters(t testing.TB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	list := r.stream.ListConsumers(testContext(t))
	for c := range list.Info() {
		all[c.Name] = strings.ReplaceAll(strings.Join(subjectsOf(c.Config), " "), r.config.Stream+".", "")
	}
	must(t, list.Err())
	return all
}

func TestSourceReadsRetryTopicsByConsumersOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRetryReading(t, jetstream.StreamConfig{})
	r.config.Subjects = append(r.config.Subjects, r.config.Stream+".b", consumer.RetryTopic(r.config.Stream+".b", time.Hour))
	s := openSource(t, r.config)
	defer s.Close()
	r.put(t, "1")
	r.putRetry(t, time.Second, "2")
	r.putRetry(t, time.Hour, "3")
	got, _ := fetch(t, s, 3)
	lanes := make(map[string]string)
	for _, d := range got {
		lanes[string(d.Message.Payload)] = d.Lane
	}
	if want := map[string]string{"1": "group", "2": "group-retry-1s", "3": "group-retry-1h"}; !maps.Equal(lanes, want) {
		t.Errorf("lanes %v, want %v", lanes, want)
	}
	want := map[string]string{"group": "a b", "group-retry-1s": "a.retry.1s", "group-retry-1h": "a.retry.1h b.retry.1h"}
	if filters := r.filters(t); !maps.Equal(filters, want) {
		t.Errorf("consumers %v, want %v", filters, want)
	}
}

// TestSourceSplitsAConsumer begins with one consumer that has the retry topics too, and of which part is acknowledged. Two members come
// at the same time, after one that ended in the middle.
func TestSourceSplitsAConsumer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retention jetstream.RetentionPolicy
		again     []string // comes although it was acknowledged
	}{
		"limits":     {jetstream.LimitsPolicy, []string{"acknowledged behind"}},
		"interest":   {jetstream.InterestPolicy, nil},
		"work queue": {jetstream.WorkQueuePolicy, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRetryReading(t, jetstream.StreamConfig{Retention: c.retention})
			whole := r.config.wanted(durable{"group", r.config.Subjects})
			whole.AckWait = testAckWait
			old, err := r.stream.CreateConsumer(testContext(t), whole)
			must(t, err)
			if c.retention != jetstream.WorkQueuePolicy {
				_, err := r.stream.CreateConsumer(testContext(t), r.config.wanted(durable{"group-retry-1s", r.config.Subjects[1:2]}))
				must(t, err)
			}
			r.put(t, "acknowledged")
			r.putRetry(t, time.Hour, "acknowledged", "in hand", "acknowledged behind")
			batch, err := old.Fetch(4)
			must(t, err)
			for m := range batch.Messages() {
				if string(m.Data()) != "in hand" {
					must(t, m.DoubleAck(testContext(t)))
				}
			}
			must(t, batch.Error())
			r.putRetry(t, time.Hour, "new retry")
			r.put(t, "new")
			r.putRetry(t, time.Second, "new short retry")

			var bodies []string
			first, second := openSource(t, r.config), openSource(t, r.config)
			defer first.Close()
			defer second.Close()
			await.True(t, time.Minute, "everything that is not acknowledged comes", func() bool {
				for _, s := range []*Source{first, second} {
					got := available(t, s)
					s.Finish(got...)
					for _, d := range got {
						bodies = append(bodies, string(d.Message.Payload))
					}
				}
				return r.idle(t)
			})
			slices.Sort(bodies)
			want := append(c.again, "in hand", "new", "new retry", "new short retry")
			wantBodies(t, slices.Compact(bodies), want...) // what was in hand may come by both consumers
			filters := map[string]string{"group": "a", "group-retry-1s": "a.retry.1s", "group-retry-1h": "a.retry.1h"}
			if got := r.filters(t); !maps.Equal(got, filters) {
				t.Errorf("consumers %v, want %v", got, filters)
			}
		})
	}
}

// available returns what can be fetched at once.
func available(t testing.TB, s *Source) []*consumer.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	got, err := s.Fetch(ctx, 100)
	if ctx.Err() == nil {
		must(t, err)
	}
	return got
}

// idle reports whether the consumers of a source have nothing to deliver, and nothing that is not acknowledged.
func (r reading) idle(t testing.TB) bool {
	t.Helper()
	list, consumers := r.stream.ListConsumers(testContext(t)), 0
	idle := true
	for c := range list.Info() {
		consumers++
		idle = idle && c.NumPending == 0 && c.NumAckPending == 0
	}
	must(t, list.Err())
	return idle && consumers == 3
}

// TestSourceLeavesConsumersAloneThatCannotBeUsed has one that could lose messages, and has the retry topics too.
func TestSourceLeavesConsumersAloneThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	r := newRetryReading(t, jetstream.StreamConfig{})
	whole := r.config.wanted(durable{"group", r.config.Subjects})
	whole.MaxDeliver = 3
	_, err := r.stream.CreateConsumer(testContext(t), whole)
	must(t, err)
	s := openSource(t, r.config)
	defer s.Close()
	wantFailure(t, s, "consumer group of stream", "after 3 deliveries")
	if got := r.filters(t)["group"]; got != "a a.retry.1s a.retry.1h" {
		t.Errorf("the consumer has the subjects %s", got)
	}
}

// TestSourcePausesALane has messages in the source for longer than the server waits for them, and others left to another member.
func TestSourcePausesALane(t *testing.T) {
	t.Parallel()
	r := newRetryReading(t, jetstream.StreamConfig{})
	r.config.AckWait, r.config.Prefetch = testAckWait, 2
	s := openSource(t, r.config)
	defer s.Close()
	r.putRetry(t, time.Hour, "1", "2", "3", "4")
	got, _ := fetch(t, s, 1)
	s.Pause(got[0].Lane)
	s.Finish(got...) // which makes room
	must(t, s.Flush(testContext(t)))
	nothingFor(t, s, 2*testAckWait) // the time is what the server waits
	other := openSource(t, r.config)
	defer other.Close()
	_, bodies := fetch(t, other, 2)
	wantBodies(t, bodies, "3", "4")
	s.Resume(got[0].Lane)
	got, bodies = fetch(t, s, 1)
	wantBodies(t, bodies, "2")
	if got[0].Deliveries != 1 {
		t.Errorf("the message that waited was delivered %d times", got[0].Deliveries)
	}
}

// TestSourcePausesALaneOfAWildcard has the retry topics come by the same consumer as everything else, which goes on as far as Prefetch
// reaches.
func TestSourcePausesALaneOfAWildcard(t *testing.T) {
	t.Parallel()
	r := newRetryReading(t, jetstream.StreamConfig{})
	r.config.Subjects, r.config.Prefetch = nil, 10
	r.putRetry(t, time.Hour, "1", "2", "3", "4", "5", "6", "7", "8")
	s := openSource(t, r.config)
	defer s.Close()
	got, _ := fetch(t, s, 1)
	s.Pause("group-retry-1h")
	r.put(t, "a", "b", "c")
	for _, want := range []string{"a", "b", "c"} {
		news, bodies := fetch(t, s, 1)
		wantBodies(t, bodies, want)
		s.Finish(news...)
	}
	nothingFor(t, s, 500*time.Millisecond)
	s.Resume(got[0].Lane)
	_, bodies := fetch(t, s, 7)
	wantBodies(t, bodies, "2", "3", "4", "5", "6", "7", "8")
}

func TestSourceRefusesSubjectsThatOverlapARetryTopic(t *testing.T) {
	for _, c := range []struct {
		main, retry string
		want        bool
	}{
		{"orders", "orders.retry.1s", false},
		{"orders.*", "orders.retry.1s", false},
		{"orders.>", "orders.retry.1s", true},
		{">", "orders.retry.1s", true},
		{"orders.*.*", "orders.retry.1s", true},
		{"orders.retry.*", "orders.retry.1s", true},
		{"orders.a.*.*", "orders.*.retry.1s", true},
		{"orders.a.*", "orders.*.retry.1s", false},
		{"payments.>", "orders.*.retry.1s", false},
		{"orders.retry.1s.>", "orders.retry.1s", false},
	} {
		_, err := SourceConfig{Servers: []string{"nats://x"}, Stream: "s", Consumer: "c", Subjects: []string{c.main, c.retry}}.withDefaults()
		if refused := err != nil && strings.Contains(err.Error(), c.main) && strings.Contains(err.Error(), c.retry); refused != c.want {
			t.Errorf("%s and %s: %v", c.main, c.retry, err)
		}
	}
}
