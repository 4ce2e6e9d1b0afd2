package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumertest"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/nats/embedded"
	"github.com/postrider/postrider/sinktest"
)

// testAckWait is how long the consumers of most tests wait for a member that has gone silent.
const testAckWait = 2 * time.Second

func TestSourceConformance(t *testing.T) {
	t.Parallel()
	consumertest.Run(t, consumertest.Harness{Expiry: testAckWait, Coordinates: true, Cuts: true, Open: func(t testing.TB) consumertest.Group {
		return newGroup(t, serverURL(t))
	}})
}

// TestSourceRestart runs the suite against servers that end and start again.
func TestSourceRestart(t *testing.T) {
	t.Parallel()
	consumertest.Run(t, consumertest.Harness{Expiry: testAckWait, Coordinates: true, Cuts: true, Open: func(t testing.TB) consumertest.Group {
		config := embedded.Config{Dir: t.TempDir(), SyncEvery: time.Second, Listen: freeAddress(t)}
		server := startEmbedded(t, config)
		t.Cleanup(func() { server.Stop() })
		group := newGroup(t, server.URL())
		group.Restart = func(t testing.TB) {
			server.Stop()
			server = startEmbedded(t, config)
		}
		return group
	}})
}

func startEmbedded(t testing.TB, c embedded.Config) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(testContext(t), c)
	must(t, err)
	return server
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func newGroup(t testing.TB, address string) consumertest.Group {
	t.Helper()
	stream := newStream(t, client(t, address), jetstream.StreamConfig{})
	name := stream.CachedInfo().Config.Name
	topic := name + ".events"
	subjects := []string{topic, consumer.RetryTopic(topic, consumertest.RetryDelay)}
	return consumertest.Group{Sink: open(t, Config{Servers: []string{address}}), Topic: topic, Join: func(t testing.TB) consumertest.Member {
		proxy := sinktest.NewProxy(t, host(t, address))
		return consumertest.Member{Proxy: proxy, Source: openSource(t, SourceConfig{
			Servers: []string{"nats://" + proxy.Addr}, Stream: name, Subjects: subjects, AckWait: testAckWait, Prefetch: consumertest.Prefetch,
		})}
	}}
}

// openSource opens one with the consumer named group. The caller closes it.
func openSource(t testing.TB, c SourceConfig) *Source {
	t.Helper()
	c.Consumer = "group"
	s, err := OpenSource(c)
	must(t, err)
	return s
}

// reading is a stream of its own for a test, and a client.
type reading struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	config SourceConfig
}

func newReading(t testing.TB) reading {
	t.Helper()
	js := client(t, serverURL(t))
	stream := newStream(t, js, jetstream.StreamConfig{})
	return reading{js, stream, SourceConfig{Servers: []string{serverURL(t)}, Stream: stream.CachedInfo().Config.Name}}
}

func (r reading) put(t testing.TB, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		_, err := r.js.Publish(testContext(t), r.config.Stream+".a", []byte(body))
		must(t, err)
	}
}

func (r reading) info(t testing.TB) *jetstream.ConsumerInfo {
	t.Helper()
	c, err := r.stream.Consumer(testContext(t), "group")
	must(t, err)
	return c.CachedInfo()
}

// fetch returns the payloads of the next n deliveries as well, and takes errors of Fetch for passing.
func fetch(t testing.TB, s *Source, n int) (all []*consumer.Delivery, bodies []string) {
	t.Helper()
	ctx := testContext(t)
	for len(all) < n {
		got, err := s.Fetch(ctx, n-len(all))
		if ctx.Err() != nil {
			t.Fatalf("Fetch after %d of %d messages: %v", len(all), n, err)
		}
		all = append(all, got...)
	}
	for _, d := range all {
		bodies = append(bodies, string(d.Message.Payload))
	}
	return all, bodies
}

func wantBodies(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
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

func TestSourceReportsEveryMistake(t *testing.T) {
	_, err := OpenSource(SourceConfig{Stream: "a.b", AckWait: time.Millisecond, Prefetch: -1})
	for _, text := range []string{"name either servers", `stream "a.b"`, `consumer ""`, "acknowledgements of 1ms", "prefetch of -1"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q in it", err, text)
		}
	}
}

func TestSourceCreatesAConsumerThatLosesNothing(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	r.put(t, "1", "2")
	r.config.Subjects = []string{r.config.Stream + ".a"}
	for range 2 { // the second time it exists
		s := openSource(t, r.config)
		_, bodies := fetch(t, s, 2)
		wantBodies(t, bodies, "1", "2")
		s.Close()
	}
	c := r.info(t).Config
	if c.AckPolicy != jetstream.AckExplicitPolicy || c.MaxDeliver != -1 || c.AckWait != defaultAckWait || c.MaxAckPending != -1 || c.FilterSubject != r.config.Subjects[0] && !slices.Equal(c.FilterSubjects, r.config.Subjects) {
		t.Errorf("created %+v", c)
	}
}

func TestSourceRefusesConsumersThatLoseMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config jetstream.ConsumerConfig
		texts  []string
	}{
		"policy":   {jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy}, []string{"by policy", "explicit"}},
		"all":      {jetstream.ConsumerConfig{AckPolicy: jetstream.AckAllPolicy}, []string{"by policy", "explicit"}},
		"deliver":  {jetstream.ConsumerConfig{MaxDeliver: 3}, []string{"after 3 deliveries", "max_deliver"}},
		"headers":  {jetstream.ConsumerConfig{HeadersOnly: true}, []string{"headers_only"}},
		"subjects": {jetstream.ConsumerConfig{FilterSubject: "%s.b"}, []string{"it gets the subjects", ".b", ".a"}},
		"push":     {jetstream.ConsumerConfig{DeliverSubject: "somewhere"}, []string{"pull"}},
		"groups":   {jetstream.ConsumerConfig{PriorityPolicy: jetstream.PriorityPolicyPinned, PriorityGroups: []string{"g"}, PinnedTTL: time.Minute}, []string{"priority groups"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReading(t)
			r.config.Subjects = []string{r.config.Stream + ".a"}
			c.config.Durable = "group"
			if c.config.FilterSubject == "" {
				c.config.FilterSubject = "%s.a"
			}
			c.config.FilterSubject = fmt.Sprintf(c.config.FilterSubject, r.config.Stream)
			var err error
			if c.config.DeliverSubject == "" {
				_, err = r.stream.CreateConsumer(testContext(t), c.config)
			} else {
				_, err = r.stream.CreatePushConsumer(testContext(t), c.config)
			}
			must(t, err)
			r.put(t, "1")
			s := openSource(t, r.config)
			defer s.Close()
			wantFailure(t, s, append(c.texts, "consumer group of stream "+r.config.Stream)...)
		})
	}
}

func TestSourceWaitsForStreamAndConsumer(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	s := openSource(t, SourceConfig{Servers: r.config.Servers, Stream: r.config.Stream + "-missing"})
	defer s.Close()
	wantFailure(t, s, r.config.Stream+"-missing", "does not exist", "create it")

	s = openSource(t, r.config)
	defer s.Close()
	r.put(t, "1")
	fetch(t, s, 1)
	must(t, r.stream.DeleteConsumer(testContext(t), "group"))
	wantFailure(t, s, "consumer group", "was deleted", "create it")
	_, err := r.stream.CreateConsumer(testContext(t), jetstream.ConsumerConfig{Durable: "group", DeliverPolicy: jetstream.DeliverNewPolicy})
	must(t, err)
	r.put(t, "2")
	_, bodies := fetch(t, s, 1)
	wantBodies(t, bodies, "2")
}

// TestSourceForgetsAStreamThatIsGone finishes a message of a stream that was made anew meanwhile: that is none of the new one's.
func TestSourceForgetsAStreamThatIsGone(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	s := openSource(t, r.config)
	defer s.Close()
	r.put(t, "old 1", "old 2")
	old, _ := fetch(t, s, 2)
	must(t, r.js.DeleteStream(testContext(t), r.config.Stream))
	wantFailure(t, s, "does not exist")
	_, err := r.js.CreateStream(testContext(t), r.stream.CachedInfo().Config)
	must(t, err)
	r.put(t, "new 1", "new 2")
	_, bodies := fetch(t, s, 2)
	wantBodies(t, bodies, "new 1", "new 2")
	s.Finish(old...)
	must(t, s.Flush(testContext(t)))
	if info := r.info(t); info.NumAckPending != 2 {
		t.Errorf("%d messages are unacknowledged, want both new ones", info.NumAckPending)
	}
}

func TestSourceReadsForeignMessages(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	publish := func(headers nats.Header) {
		_, err := r.js.PublishMsg(testContext(t), &nats.Msg{Subject: r.config.Stream + ".x", Header: headers})
		must(t, err)
	}
	publish(nats.Header{"Nats-Msg-Id": {"id-1"}, "b": {"1", "2"}, "a": {""}})
	publish(nats.Header{"Nats-Msg-Id": {"id"}, "X-Event-Id": {"id-2"}})
	publish(nil)
	s := openSource(t, r.config)
	defer s.Close()
	got, _ := fetch(t, s, 3)
	for i, want := range [][]inbox.Header{
		{{Name: "a"}, {Name: "b", Value: "1"}, {Name: "b", Value: "2"}, {Name: "X-Event-Id", Value: "id-1"}},
		{{Name: "X-Event-Id", Value: "id-2"}},
		nil,
	} {
		m := got[i].Message
		if !slices.Equal(m.Headers, want) {
			t.Errorf("headers %+v, want %+v", m.Headers, want)
		}
		if m.Topic != r.config.Stream+".x" || m.Partition != r.config.Stream || m.Offset != fmt.Sprint(i+1) || m.At.IsZero() || got[i].Deliveries != 1 {
			t.Errorf("message is %+v, delivered %d times", m, got[i].Deliveries)
		}
	}
}

func TestSourceKeepsItsPrefetch(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	r.put(t, "1", "2", "3", "4", "5", "6", "7", "8")
	r.config.Prefetch = 5
	s := openSource(t, r.config)
	defer s.Close()
	got, _ := fetch(t, s, 5)
	nothingFor(t, s, 500*time.Millisecond)
	if pending := r.info(t).NumAckPending; pending != 5 {
		t.Errorf("%d messages are in hand, want 5", pending)
	}
	s.Finish(got[:2]...)
	_, bodies := fetch(t, s, 2)
	wantBodies(t, bodies, "6", "7")
	nothingFor(t, s, 500*time.Millisecond)
}

// TestSourceGivesUpWhatItHas has a consumer that waits for long for members that have gone silent.
func TestSourceGivesUpWhatItHas(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	r.put(t, "1", "2")
	r.config.AckWait = 10 * time.Minute
	s := openSource(t, r.config)
	fetch(t, s, 1)
	await.True(t, time.Minute, "the second waits in the source", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.readers[0].held) == 2
	})
	must(t, s.Close())
	s = openSource(t, r.config)
	defer s.Close()
	got, bodies := fetch(t, s, 2)
	wantBodies(t, bodies, "1", "2")
	if got[0].Deliveries != 2 {
		t.Errorf("counted %d deliveries, want 2", got[0].Deliveries)
	}
	s.Return(got[0])
	_, bodies = fetch(t, s, 1)
	wantBodies(t, bodies, "1")
}

// TestSourceFlushedIsAcknowledged looks at what the server knows right after Flush.
func TestSourceFlushedIsAcknowledged(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	s := openSource(t, r.config)
	defer s.Close()
	for range 20 {
		r.put(t, "1", "2", "3")
		got, _ := fetch(t, s, 3)
		s.Finish(got...)
		must(t, s.Flush(testContext(t)))
		if pending := r.info(t).NumAckPending; pending != 0 {
			t.Fatalf("%d messages are not acknowledged after Flush", pending)
		}
	}
}

// TestSourceOutlastsALostConnection loses the connection for longer than the server waits. What the source has is delivered
// again, and not lent again, and what is finished is acknowledged in the end.
func TestSourceOutlastsALostConnection(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	r.put(t, "1", "2", "3")
	proxy := sinktest.NewProxy(t, host(t, serverURL(t)))
	r.config.Servers, r.config.AckWait = []string{"nats://" + proxy.Addr}, testAckWait
	s := openSource(t, r.config)
	defer s.Close()
	got, _ := fetch(t, s, 3)
	proxy.Cut()
	s.Finish(got[0])
	wantFailure(t, s, "no connection")
	time.Sleep(2 * testAckWait) // the time is what the server waits
	proxy.Heal()
	await.True(t, time.Minute, "what was finished is acknowledged, and the rest delivered again", func() bool {
		info := r.info(t)
		return info.NumAckPending == 2 && info.NumRedelivered == 2
	})
	s.Finish(got[1:]...)
	must(t, s.Flush(testContext(t)))
	if pending := r.info(t).NumAckPending; pending != 0 {
		t.Errorf("%d messages are not acknowledged", pending)
	}
	r.put(t, "4")
	_, bodies := fetch(t, s, 1)
	wantBodies(t, bodies, "4")
}

// TestSourceSendsAcknowledgementsAgain has the connection end before the server gets them.
func TestSourceSendsAcknowledgementsAgain(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	r.put(t, "1", "2", "3")
	proxy := sinktest.NewProxy(t, host(t, serverURL(t)))
	r.config.Servers = []string{"nats://" + proxy.Addr}
	s := openSource(t, r.config)
	defer s.Close()
	got, _ := fetch(t, s, 3)
	cut := proxy.CutAfter(0)
	s.Finish(got...)
	<-cut
	proxy.Heal()
	must(t, s.Flush(testContext(t)))
	if pending := r.info(t).NumAckPending; pending != 0 {
		t.Errorf("%d messages are not acknowledged", pending)
	}
}
