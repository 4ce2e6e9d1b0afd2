package kafka

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/postrider/postrider/relay"
)

// BenchmarkPublish sends events of 500 bytes with the headers that the relay adds, to a topic of 12 partitions.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{100, 500, 5000} {
		for _, callers := range []int{1, 2} {
			b.Run(fmt.Sprintf("batch=%d/callers=%d", size, callers), func(b *testing.B) { benchmarkPublish(b, size, callers) })
		}
	}
}

func benchmarkPublish(b *testing.B, size, callers int) {
	sink, err := Open(Config{Brokers: brokers(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	topic := newTopic(b, 12)
	payload := bytes.Repeat([]byte("x"), 500)
	batchOf := func(caller int) []relay.Message {
		batch := make([]relay.Message, size)
		for i := range batch {
			batch[i] = relay.Message{
				EventID: "0190c7f0-7b7e-7cc3-98c4-dc0c0c07398f", Key: strconv.Itoa(caller*size + i%(size/2)), Topic: topic, Payload: payload,
				Headers: []relay.Header{{Name: "X-Event-Id", Value: "0190c7f0-7b7e-7cc3-98c4-dc0c0c07398f"}, {Name: "X-Event-Type", Value: "order.created"}},
			}
		}
		return batch
	}
	b.ReportAllocs()
	batches := make([][]relay.Message, callers)
	for caller := range batches {
		batches[caller] = batchOf(caller)
		sink.Publish(context.Background(), batches[caller])
	}
	b.ResetTimer()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for range b.N {
				for i, o := range sink.Publish(context.Background(), batches[caller]) {
					if o.Class != relay.ClassPublished {
						b.Errorf("message %d: %s: %v", i, o.Class, o.Err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N*size*callers)/b.Elapsed().Seconds(), "events/s")
}
