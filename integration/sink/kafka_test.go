// Package sink_test runs sinks against servers that the tests own, so that these can be killed, stopped and secured.
package sink_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func kafkaAddress(s *servers.Server) string { return fmt.Sprintf("127.0.0.1:%d", s.Port()) }

func openKafka(t testing.TB, c kafka.Config) *kafka.Sink {
	t.Helper()
	sink, err := kafka.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

// newKafkaTopic creates a topic with a name that no other has. opts are what a client needs to connect.
func newKafkaTopic(t testing.TB, opts ...kgo.Opt) string {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.MetadataMinAge(10*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin, ctx, name := kadm.NewClient(client), testContext(t), "t"+strings.ToLower(rand.Text())
	if _, err := admin.CreateTopic(ctx, 4, 1, nil, name); err != nil {
		t.Fatalf("creating topic %s: %v", name, err)
	}
	for visible := false; !visible; {
		topics, err := admin.ListTopics(ctx, name)
		if err != nil {
			t.Fatalf("waiting for topic %s: %v", name, err)
		}
		visible = topics[name].Err == nil
	}
	return name
}

func readKafka(t testing.TB, topic string, opts ...kgo.Opt) []sinktest.Stored {
	t.Helper()
	ctx := testContext(t)
	reader, err := kgo.NewClient(append(opts, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	rest := int64(0)
	endOffsets(ctx, t, reader, topic).Each(func(end kadm.ListedOffset) { rest += end.Offset })
	var all []sinktest.Stored
	for rest > 0 {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("reading topic %s: %v", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			s := sinktest.Stored{Key: string(r.Key), Payload: r.Value, Coordinates: fmt.Sprintf("kafka:%s/%d@%d", r.Topic, r.Partition, r.Offset)}
			for _, h := range r.Headers {
				s.Headers = append(s.Headers, relay.Header{Name: h.Key, Value: string(h.Value)})
			}
			all = append(all, s)
			rest--
		})
	}
	return all
}

// endOffsets waits for the partitions' leaders: a broker that was away elects them anew.
func endOffsets(ctx context.Context, t testing.TB, client *kgo.Client, topic string) kadm.ListedOffsets {
	t.Helper()
	admin := kadm.NewClient(client)
	const pause = 100 * time.Millisecond
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err == nil {
			err = ends.Error()
		}
		switch {
		case err == nil:
			return ends
		case ctx.Err() != nil, !errors.Is(err, kerr.LeaderNotAvailable) && !errors.Is(err, kerr.NotLeaderForPartition):
			t.Fatalf("reading topic %s: %v", topic, err)
		}
		<-ticks.C
	}
}

// TestKafkaThatCrashes kills the broker while messages are on their way.
func TestKafkaThatCrashes(t *testing.T) {
	server := servers.Launch(t, "kafka")
	seed := kgo.SeedBrokers(kafkaAddress(server))
	sinktest.Run(t, func(t2 testing.TB) sinktest.Fixture {
		topic := newKafkaTopic(t2, seed)
		return sinktest.Fixture{
			Sink:  openKafka(t2, kafka.Config{Brokers: []string{kafkaAddress(server)}}),
			Topic: topic,
			Read:  func(t testing.TB) []sinktest.Stored { return readKafka(t, topic, seed) },
			Crash: func(testing.TB) {
				server.Stop(t, syscall.SIGKILL)
				server.Start(t)
			},
			Keeps: sinktest.Keeps{Key: true, HeaderOrder: true},
		}
	})
}

// TestKafkaThatHangs stops the broker's process for longer than the sink waits for an answer, so that the sink repeats
// what it has sent.
func TestKafkaThatHangs(t *testing.T) {
	server := servers.Launch(t, "kafka")
	seed := kgo.SeedBrokers(kafkaAddress(server))
	topic := newKafkaTopic(t, seed)
	sink := openKafka(t, kafka.Config{Brokers: []string{kafkaAddress(server)}})
	defer sink.Close()
	publish := func(ctx context.Context, payload string) relay.Outcome {
		return sink.Publish(ctx, []relay.Message{{Key: "a", Topic: topic, Payload: []byte(payload)}})[0]
	}
	if o := publish(testContext(t), "first"); o.Class != relay.ClassPublished {
		t.Fatalf("%s: %v", o.Class, o.Err)
	}
	server.Hang(t)
	resumed := make(chan struct{})
	time.AfterFunc(20*time.Second, func() {
		defer close(resumed)
		server.Resume(t)
	})
	defer func() { <-resumed }() // before the server is ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	o := publish(ctx, "second")
	if o.Class == relay.ClassUnavailable {
		o = publish(testContext(t), "second")
	}
	if o.Class != relay.ClassPublished {
		t.Fatalf("%s: %v", o.Class, o.Err)
	}
	var payloads []string
	for _, s := range readKafka(t, topic, seed) {
		payloads = append(payloads, string(s.Payload))
	}
	if got := strings.Join(payloads, " "); got != "first second" {
		t.Errorf("the topic has %q, want each message once", got)
	}
}

// TestKafkaWithLogin meets a broker with TLS and a login.
func TestKafkaWithLogin(t *testing.T) {
	for mechanism, kind := range map[kafka.Mechanism]string{kafka.MechanismPlain: "plain", kafka.MechanismScramSHA256: "scram"} {
		t.Run(kind, func(t *testing.T) {
			server := servers.Launch(t, "kafka", "KAFKA_TLS=1", "KAFKA_SASL="+kind)
			good := kafka.Config{
				Brokers: []string{kafkaAddress(server)},
				TLS:     &tls.Config{RootCAs: authority(t, server.File("ca.pem"))},
				SASL:    kafka.SASL{Mechanism: mechanism, User: "postrider", Password: "postrider"},
			}
			sink := openKafka(t, good)
			defer sink.Close()
			missing := []relay.Message{{Key: "a", Topic: "missing"}}
			if o := sink.Publish(testContext(t), missing)[0]; o.Class != relay.ClassRetry {
				t.Errorf("with a good login the outcome is %s (%v), want retry because the topic does not exist", o.Class, o.Err)
			}
			if f := sink.Check(testContext(t), nil); f[0].Level != operator.LevelOK {
				t.Errorf("Check found %+v", f)
			}
			for name, change := range map[string]func(*kafka.Config){
				"wrong password":    func(c *kafka.Config) { c.SASL.Password = "hidden" },
				"no login":          func(c *kafka.Config) { c.SASL = kafka.SASL{} },
				"wrong mechanism":   func(c *kafka.Config) { c.SASL.Mechanism = kafka.MechanismScramSHA512 },
				"no TLS":            func(c *kafka.Config) { c.TLS = nil },
				"unknown authority": func(c *kafka.Config) { c.TLS = &tls.Config{} },
			} {
				c := good
				change(&c)
				bad := openKafka(t, c)
				o := bad.Publish(testContext(t), missing)[0]
				bad.Close()
				if o.Class != relay.ClassUnavailable || strings.Contains(o.Err.Error(), "hidden") {
					t.Errorf("%s: the outcome is %s (%v), want unavailable without the password", name, o.Class, o.Err)
				}
				t.Logf("%s: %v", name, o.Err)
			}
		})
	}
}

func authority(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("%s holds no certificate", file)
	}
	return pool
}
