package destination

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	driver "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/nats"
	"github.com/postrider/postrider/sinktest"
)

// newNATS is a server of its own. The errors that it answers are those of a full stream.
func newNATS(t testing.TB) Destination {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.conf")
	writeUsers := func(t testing.TB, secret string) {
		must(t, os.WriteFile(file, fmt.Appendf(nil, "authorization {users: [{user: admin, password: admin}, {user: %s, password: %s}]}", user, secret), 0o600))
	}
	writeUsers(t, password)
	server := servers.Launch(t, "nats", "NATS_CONFIG="+file)
	login := func(user, password string) (*driver.Conn, error) {
		return driver.Connect(fmt.Sprintf("nats://%s:%s@%s", user, password, loopback(server.Port())))
	}
	conn, err := login("admin", "admin")
	must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(t, err)
	config := jetstream.StreamConfig{Name: newName(), Discard: jetstream.DiscardNew, MaxMsgs: -1}
	config.Subjects = []string{config.Name}
	stream, err := js.CreateStream(t.Context(), config)
	must(t, err)
	limit := func(t testing.TB, messages int64) {
		config.MaxMsgs = messages
		_, err := js.UpdateStream(t.Context(), config)
		must(t, err)
	}
	proxy := sinktest.NewProxy(t, loopback(server.Port()))
	return Destination{
		Name:  "nats",
		Topic: config.Name,
		Sink:  opened[*nats.Sink](t)(nats.Open(nats.Config{Servers: []string{"nats://" + proxy.Addr}, User: user, Password: password})),
		Troubles: append(network(proxy),
			Trouble{
				Name: "answers errors",
				Begin: func(t testing.TB) {
					info, err := stream.Info(t.Context())
					must(t, err)
					limit(t, max(1, int64(info.State.Msgs)))
				},
				End: func(t testing.TB) { limit(t, -1) },
			},
			refused(proxy, func(t testing.TB, secret string) {
				writeUsers(t, secret)
				server.Reload(t)
				await.True(t, time.Minute, "nats takes the new password", func() bool {
					conn, err := login(user, secret)
					if err == nil {
						conn.Close()
					}
					return err == nil
				})
			})),
		Arrived: func(t testing.TB) []string { return readStream(t, stream) },
	}
}

func readStream(t testing.TB, stream jetstream.Stream) (payloads []string) {
	t.Helper()
	info, err := stream.Info(t.Context())
	must(t, err)
	consumer, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	must(t, err)
	for missing := int(info.State.Msgs); missing > 0; {
		messages, err := consumer.Fetch(min(missing, 5000), jetstream.FetchMaxWait(30*time.Second))
		must(t, err)
		for m := range messages.Messages() {
			payloads = append(payloads, string(m.Data()))
			missing--
		}
		must(t, messages.Error())
	}
	return payloads
}
