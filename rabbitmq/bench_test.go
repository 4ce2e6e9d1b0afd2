package rabbitmq

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/postrider/postrider/relay"
)

// BenchmarkPublish sends events of 500 bytes, two of each key in a batch, to each kind of queue of each version.
func BenchmarkPublish(b *testing.B) {
	for _, version := range versions {
		for _, kind := range []string{classic, quorum, stream} {
			b.Run(version+"/"+kind, func(b *testing.B) { benchmarkPublish(b, serverURL(b, version), kind) })
		}
	}
}

func benchmarkPublish(b *testing.B, address, kind string) {
	const size = 500
	topic := "/" + newBroker(b, address).newQueue(b, kind).name
	sink := open(b, Config{Servers: []string{address}})
	payload := bytes.Repeat([]byte("x"), 500)
	batch := make([]relay.Message, size)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i := range batch {
			batch[i] = event(fmt.Sprintf("0190c7f0-7b7e-7cc3-98c4-%012x", n*size+i), strconv.Itoa(i%(size/2)), topic)
			batch[i].Payload = payload
		}
		for i, o := range sink.Publish(context.Background(), batch) {
			if o.Class != relay.ClassPublished {
				b.Fatalf("message %d: %s: %v", i, o.Class, o.Err)
			}
		}
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "events/s")
}
