package nats

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/nats/embedded"
	"github.com/postrider/postrider/relay"
)

// BenchmarkPublish sends events of 500 bytes, two of each key in a batch, to a server of its own process and to one
// embedded here, with and without a sync to disk before each acknowledgement.
func BenchmarkPublish(b *testing.B) {
	b.Run("server", func(b *testing.B) {
		address := serverURL(b)
		stream := newStream(b, client(b, address), jetstream.StreamConfig{})
		benchmarkPublish(b, Config{Servers: []string{address}}, stream.CachedInfo().Config.Name+".events")
	})
	for _, every := range []time.Duration{time.Second, 0} {
		b.Run(fmt.Sprintf("embedded/sync=%s", every), func(b *testing.B) {
			server, err := embedded.Start(context.Background(), embedded.Config{
				Dir: b.TempDir(), SyncEvery: every, Stream: "EVENTS", Subjects: []string{"events.>"},
			})
			if err != nil {
				b.Fatal(err)
			}
			defer server.Stop()
			benchmarkPublish(b, Config{InProcess: server}, "events.orders")
		})
	}
}

// BenchmarkPublishAgain sends one batch of 500 keys again and again: the stream has it.
func BenchmarkPublishAgain(b *testing.B) {
	address := serverURL(b)
	stream := newStream(b, client(b, address), jetstream.StreamConfig{})
	sink := open(b, Config{Servers: []string{address}})
	batch := newMessages(stream.CachedInfo().Config.Name+".events", 500)
	for range b.N {
		for i, o := range sink.Publish(context.Background(), batch) {
			if o.Class != relay.ClassPublished {
				b.Fatalf("message %d: %s: %v", i, o.Class, o.Err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "events/s")
}

func benchmarkPublish(b *testing.B, c Config, subject string) {
	const size = 500
	sink := open(b, c)
	payload := bytes.Repeat([]byte("x"), 500)
	batch := make([]relay.Message, size)
	b.ReportAllocs()
	for n := range b.N {
		for i := range batch {
			id := fmt.Sprintf("0190c7f0-7b7e-7cc3-98c4-%012x", n*size+i)
			batch[i] = relay.Message{
				EventID: id, Key: strconv.Itoa(i % (size / 2)), Topic: subject, Payload: payload,
				Headers: []relay.Header{{Name: "X-Event-Id", Value: id}, {Name: "X-Event-Type", Value: "order.created"}},
			}
		}
		for i, o := range sink.Publish(context.Background(), batch) {
			if o.Class != relay.ClassPublished {
				b.Fatalf("message %d: %s: %v", i, o.Class, o.Err)
			}
		}
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "events/s")
}
