package nats

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/consumer"
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
