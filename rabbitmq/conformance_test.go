package rabbitmq

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		for _, kind := range []string{classic, quorum, stream} {
			t.Run(kind, func(t *testing.T) {
				sinktest.Run(t, func(t testing.TB) sinktest.Fixture { return newFixture(t, address, kind) })
			})
		}
	})
}

// TestCrash runs the suite against a server that is killed and started again.
func TestCrash(t *testing.T) {
	t.Parallel()
	for version, kinds := range map[string][]string{
		"rabbitmq":  {classic, quorum}, // returns as unroutable what comes for a stream in the first seconds after its start
		"rabbitmq4": {classic, quorum, stream},
	} {
		t.Run(version, func(t *testing.T) {
			server := launch(t, version)
			for kind, fixtures := range newStock(t, server, kinds) {
				t.Run(kind, func(t *testing.T) {
					sinktest.Run(t, func(t testing.TB) sinktest.Fixture {
						f := <-fixtures
						f.Sink.(*witness).Sink = open(t, Config{Servers: []string{server.address()}})
						f.Crash = func(t testing.TB) {
							server.Stop(t, syscall.SIGKILL)
							server.Start(t)
						}
						return f
					})
				})
			}
		})
	}
}

// newStock declares in advance what the cases of the suite need, by kind of queue, and restarts the server. One that is
// killed within seconds after a quorum queue was declared forgets where the queue's messages are.
func newStock(t *testing.T, server private, kinds []string) map[string]chan sinktest.Fixture {
	t.Helper()
	const cases = 20
	stock := make(map[string]chan sinktest.Fixture)
	b := newBroker(t, server.address())
	for _, kind := range kinds {
		stock[kind] = make(chan sinktest.Fixture, cases)
		for range cases {
			exchange, q := b.newExchange(t), b.newQueue(t, kind)
			b.bind(t, q, exchange, "#")
			sink := &witness{unsure: make(map[string]bool)}
			stock[kind] <- sinktest.Fixture{
				Sink:  sink,
				Topic: exchange,
				Read:  func(t testing.TB) []sinktest.Stored { return sink.firstCopies(q.read(t)) },
			}
		}
	}
	server.End(t)
	server.Start(t)
	return stock
}

// newFixture opens a sink to a new exchange with a queue that gets everything.
func newFixture(t testing.TB, address, kind string) sinktest.Fixture {
	t.Helper()
	const limit = 100_000
	b := newBroker(t, address)
	exchange := b.newExchange(t)
	q := b.newQueue(t, kind)
	b.bind(t, q, exchange, "#")
	proxy := sinktest.NewProxy(t, host(t, address))
	sink := &witness{Sink: open(t, Config{Servers: []string{at(t, address, proxy.Addr, "")}, MaxMessageBytes: limit}), unsure: make(map[string]bool)}
	return sinktest.Fixture{
		Sink:    sink,
		Topic:   exchange,
		Missing: exchange + "-missing",
		Read:    func(t testing.TB) []sinktest.Stored { return sink.firstCopies(q.read(t)) },
		Fill:    func(m relay.Message) relay.Message { return fill(m, limit) },
		Proxy:   proxy,
	}
}

// fill returns m with a payload that makes it as large as the limit with its header frame.
func fill(m relay.Message, limit int) relay.Message {
	header := 14 + 8 + 1 + 1 + len(m.EventID) + 4 // fixed part, timestamp, mode, message id, length of the table
	for _, h := range m.Headers {
		header += 1 + len(h.Name) + 5 + len(h.Value)
		if h.Name == relay.HeaderEventType {
			header += 1 + len(h.Value) // the type
		}
	}
	m.Payload = []byte(strings.Repeat("x", limit-header))
	return m
}

// witness remembers the messages of which the sink has said that their whereabouts are unknown. Only these may be there
// twice: RabbitMQ does not recognize repetitions.
type witness struct {
	*Sink
	mu     sync.Mutex
	unsure map[string]bool
}

func (w *witness) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	outcomes := w.Sink.Publish(ctx, batch)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, o := range outcomes {
		if o.Class == relay.ClassUnavailable {
			w.unsure[batch[i].EventID] = true
		}
	}
	return outcomes
}

// firstCopies leaves out what a consumer recognizes as repeated, if it may be.
func (w *witness) firstCopies(deliveries []amqp.Delivery) []sinktest.Stored {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[string]bool)
	var first []sinktest.Stored
	for _, d := range deliveries {
		if !seen[d.MessageId] || !w.unsure[d.MessageId] {
			first = append(first, stored(d))
		}
		seen[d.MessageId] = true
	}
	return first
}
