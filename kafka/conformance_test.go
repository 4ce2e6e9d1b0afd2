package kafka

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(t testing.TB) sinktest.Fixture {
		return newFixture(t, Config{Brokers: brokers(t)})
	})
}

// newFixture opens a sink to a new topic, through a proxy that stands in for every broker.
func newFixture(t testing.TB, c Config) sinktest.Fixture {
	t.Helper()
	const limit = 200_000
	topic := newTopic(t, 4, "max.message.bytes", fmt.Sprint(limit))
	proxy := sinktest.NewProxy(t, c.Brokers[0])
	sink, err := open(c, throughProxy(proxy))
	if err != nil {
		t.Fatal(err)
	}
	return sinktest.Fixture{
		Sink:    sink,
		Topic:   topic,
		Missing: topic + "-missing",
		Read:    func(t testing.TB) []sinktest.Stored { return readTopic(t, brokers(t), topic) },
		Fill:    func(m relay.Message) relay.Message { return fill(m, limit) },
		Proxy:   proxy,
		Keeps:   sinktest.Keeps{Key: true, HeaderOrder: true},
	}
}

func throughProxy(proxy *sinktest.Proxy) kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, proxy.Addr)
	})
}

// detour sends connections to one address somewhere else.
func detour(from, to string) func(ctx context.Context, network, host string) (net.Conn, error) {
	return func(ctx context.Context, network, host string) (net.Conn, error) {
		if host == from {
			host = to
		}
		var d net.Dialer
		return d.DialContext(ctx, network, host)
	}
}

// readTopic returns everything that is in the topic.
func readTopic(t testing.TB, addresses []string, topic string) []sinktest.Stored {
	t.Helper()
	ctx := testContext(t)
	reader, err := kgo.NewClient(kgo.SeedBrokers(addresses...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ends, err := kadm.NewClient(reader).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatalf("reading topic %s: %v", topic, err)
	}
	rest := int64(0)
	ends.Each(func(end kadm.ListedOffset) { rest += end.Offset })
	var all []sinktest.Stored
	for rest > 0 {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("reading topic %s: %v", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			all = append(all, stored(r))
			rest--
		})
	}
	return all
}

func stored(r *kgo.Record) sinktest.Stored {
	s := sinktest.Stored{
		Key:         string(r.Key),
		Payload:     r.Value,
		Coordinates: fmt.Sprintf("kafka:%s/%d@%d", r.Topic, r.Partition, r.Offset),
	}
	for _, h := range r.Headers {
		s.Headers = append(s.Headers, relay.Header{Name: h.Key, Value: string(h.Value)})
	}
	return s
}

// fill returns m with a payload that makes its record batch as large as the limit, as the protocol's own encoder
// measures it.
func fill(m relay.Message, limit int) relay.Message {
	for m.Payload = make([]byte, limit); batchSize(m) > limit; {
		m.Payload = m.Payload[:len(m.Payload)-1]
	}
	return m
}

func batchSize(m relay.Message) int {
	record := kmsg.Record{Key: []byte(m.Key), Value: m.Payload}
	for _, h := range m.Headers {
		record.Headers = append(record.Headers, kmsg.Header{Key: h.Name, Value: []byte(h.Value)})
	}
	record.Length = int32(len(record.AppendTo(nil)) - kbin.VarintLen(0))
	batch := kmsg.RecordBatch{Records: record.AppendTo(nil)}
	return len(batch.AppendTo(nil))
}
