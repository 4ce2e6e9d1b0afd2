package redis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/dlt/dlttest"
)

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			dlttest.Run(t, func(t testing.TB) dlttest.Broker {
				address := shared(t, kind)
				c := client(t, address)
				return dlttest.Broker{
					Sink:   open(t, Config{Addresses: []string{address}, IdempotentFor: time.Minute}),
					Origin: createdStream(t, c), Letter: createdStream(t, c), None: newStream(t, c), Key: true,
					Open: func(t testing.TB, topic string) dlt.Topic {
						d, err := OpenDeadLetters(Config{Addresses: []string{address}}, topic)
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

// createdStream returns an empty stream.
func createdStream(t testing.TB, c redis.UniversalClient) string {
	t.Helper()
	stream := newStream(t, c)
	do(t, c, "XGROUP", "CREATE", stream, "any", "0", "MKSTREAM")
	return stream
}
