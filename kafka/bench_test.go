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

// BenchmarkFetch fetches and finishes what BenchmarkPublish sends, 500 at a time: one operation is one message. Rates under some ten
// thousand messages are those of joining the group.
func BenchmarkFetch(b *testing.B) {
	topic := newTopic(b, 12)
	sink := openSink(b, Config{Brokers: brokers(b)})
	for n := 0; n < b.N; {
		batch := make([]relay.Message, min(5000, b.N-n))
		for i := range batch {
			batch[i] = relay.Message{
				Key: strconv.Itoa(n), Topic: topic, Payload: bytes.Repeat([]byte("x"), 500),
				Headers: []relay.Header{{Name: "X-Event-Id", Value: "0190c7f0-7b7e-7cc3-98c4-dc0c0c07398f"}, {Name: "X-Event-Type", Value: "order.created"}},
			}
			n++
		}
		for _, o := range sink.Publish(context.Background(), batch) {
			if o.Class != relay.ClassPublished {
				b.Fatal(o.Err)
			}
		}
	}
	source := newSource(b, SourceConfig{Brokers: brokers(b), Group: topic, Topics: []string{topic}})
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		got, err := source.Fetch(context.Background(), 500)
		if err != nil {
			b.Fatal(err)
		}
		source.Finish(got...)
		n += len(got)
	}
	flush(b, source)
	b.StopTimer()
	closeSource(b, source)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
