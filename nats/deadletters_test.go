package nats

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/dlt/dlttest"
)

// TestDeadLetters has a work queue as well, which lets nobody read without consuming but by number.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	for name, retention := range map[string]jetstream.RetentionPolicy{"limits": jetstream.LimitsPolicy, "work queue": jetstream.WorkQueuePolicy} {
		t.Run(name, func(t *testing.T) {
			dlttest.Run(t, func(t testing.TB) dlttest.Broker {
				address := serverURL(t)
				stream := newStream(t, client(t, address), jetstream.StreamConfig{Retention: retention, Duplicates: time.Minute})
				name := stream.CachedInfo().Config.Name
				return dlttest.Broker{
					Sink:   open(t, Config{Servers: []string{address}}),
					Origin: name + ".orders", Letter: name + ".orders.dlt", None: "none-" + name,
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
}
