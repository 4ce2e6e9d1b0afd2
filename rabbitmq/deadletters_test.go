package rabbitmq

import (
	"strings"
	"testing"

	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/dlt/dlttest"
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
