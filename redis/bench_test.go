package redis

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
)

// BenchmarkPublish sends events of 500 bytes, two of each key in a batch or all of one key, to both servers, with and
// without the idempotent mode.
func BenchmarkPublish(b *testing.B) {
	for _, kind := range kinds {
		for _, idempotentFor := range []time.Duration{0, time.Minute} {
			for _, keys := range []int{250, 1} {
				b.Run(fmt.Sprintf("%s/idempotent=%s/keys=%d", kind, idempotentFor, keys), func(b *testing.B) {
					address := shared(b, kind)
					stream := newStream(b, client(b, address))
					benchmarkPublish(b, open(b, Config{Addresses: []string{address}, IdempotentFor: idempotentFor}), stream, keys)
				})
			}
		}
	}
}

func benchmarkPublish(b *testing.B, sink *Sink, stream string, keys int) {
	const size = 500
	payload := bytes.Repeat([]byte("x"), 500)
	batch := make([]relay.Message, size)
	b.ReportAllocs()
	for n := range b.N {
		for i := range batch {
			id := fmt.Sprintf("%s-%d-%d", stream, n, i)
			batch[i] = relay.Message{
				EventID: id, Key: strconv.Itoa(i % keys), Topic: stream, Payload: payload,
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
