package rabbitmq

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/dlt/dlttest"
	"github.com/postrider/postrider/relay"
)

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		for _, kind := range []string{classic, quorum} {
			t.Run(kind, func(t *testing.T) {
				dlttest.Run(t, func(t testing.TB) dlttest.Broker {
					b := newBroker(t, address)
					return dlttest.Broker{
						Sink:   open(t, Config{Servers: []string{address}}),
						Origin: "/" + b.newQueue(t, kind).name, Letter: "/" + b.newQueue(t, kind).name, None: "/none",
						Open: func(t testing.TB, topic string) dlt.Topic {
							d, err := OpenDeadLetters(Config{Servers: []string{address}}, topic)
							if err != nil {
								t.Fatal(err)
							}
							return d
						},
					}
				})
			})
		}
	})
}

func TestDeadLettersNeedAQueue(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"", "/", "orders.dlt"} {
		if _, err := OpenDeadLetters(Config{Servers: []string{"amqp://localhost"}}, topic); err == nil || !strings.Contains(err.Error(), "names no queue") {
			t.Errorf("topic %q: %v, want that it names no queue", topic, err)
		}
	}
}

func openLetters(t testing.TB, address string, q *queue) *DeadLetters {
	t.Helper()
	d, err := OpenDeadLetters(Config{Servers: []string{address}}, "/"+q.name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fillLetters publishes n letters whose origin is the queue itself.
func fillLetters(t testing.TB, sink *Sink, q *queue, n int) {
	t.Helper()
	batch := make([]relay.Message, n)
	for i := range batch {
		batch[i] = relay.Message{EventID: fmt.Sprint(i), Topic: "/" + q.name, Headers: []relay.Header{{Name: consumer.HeaderOriginTopic, Value: "/" + q.name}}}
	}
	for _, o := range sink.Publish(testContext(t), batch) {
		wantOutcome(t, o, relay.ClassPublished)
	}
}

// TestRedriveLeavesWhatComesMeanwhile has every letter fail again at once: it comes behind those that are there, and into the room that settled ones
// make.
func TestRedriveLeavesWhatComesMeanwhile(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		for _, kind := range []string{classic, quorum} {
			const letters = 700 // more than a page
			q := newBroker(t, address).newQueue(t, kind)
			sink := open(t, Config{Servers: []string{address}})
			fillLetters(t, sink, q, letters)
			d := openLetters(t, address, q)
			result, err := dlt.Redrive{Topic: d, Sink: sink, KeepHeaders: true}.Run(testContext(t))
			if err != nil || result != (dlt.Result{Redriven: letters}) {
				t.Errorf("%s: Run returned %+v and %v, want %d redriven", kind, result, err, letters)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if n := len(q.read(t)); n != letters {
				t.Errorf("the %s queue has %d letters, want %d", kind, n, letters)
			}
		}
	})
}

// TestDroppedLettersAreTold has a queue that keeps nothing that is given back.
func TestDroppedLettersAreTold(t *testing.T) {
	t.Parallel()
	perVersion(t, func(t *testing.T, address string) {
		q := newBroker(t, address).newQueue(t, quorum, "x-delivery-limit", 0)
		fillLetters(t, open(t, Config{Servers: []string{address}}), q, 3)
		d := openLetters(t, address, q)
		if err := d.Scan(testContext(t), func(dlt.Letter) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err == nil || !strings.Contains(err.Error(), q.name+": 3 letters that were read are not back") {
			t.Errorf("Close returned %v, want that 3 letters are not back", err)
		}
	})
}
