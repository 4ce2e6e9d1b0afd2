package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/postrider/postrider/relay"
)

// BenchmarkPublish sends signed events of 500 bytes, two of each key in a batch, to a receiver in this process that
// keeps nothing.
func BenchmarkPublish(b *testing.B) {
	for name, encrypted := range map[string]bool{"http1": false, "tls-http2": true} {
		b.Run(name, func(b *testing.B) {
			ca := newAuthority(b)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
			}))
			if encrypted {
				server.EnableHTTP2, server.TLS = true, ca.serverConfig(b)
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			benchmarkPublish(b, open(b, Config{URL: server.URL, TLS: ca.clientConfig(), Secrets: []string{oldSecret}}))
		})
	}
}

func benchmarkPublish(b *testing.B, sink *Sink) {
	const size = 500
	payload := bytes.Repeat([]byte("x"), 500)
	batch := make([]relay.Message, size)
	b.ReportAllocs()
	for n := range b.N {
		for i := range batch {
			id := fmt.Sprintf("0190c7f0-7b7e-7cc3-98c4-%012x", n*size+i)
			batch[i] = relay.Message{
				EventID: id, Key: strconv.Itoa(i % (size / 2)), Topic: "orders", Payload: payload,
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
