package destination

import (
	"context"
	"testing"

	driver "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/redis"
	"github.com/postrider/postrider/sinktest"
)

// newRedis has a stream and a user of its own. The errors that it answers are those of a key that holds no stream
// (WRONGTYPE).
func newRedis(t testing.TB) Destination {
	t.Helper()
	server := address(t, "REDIS").Host
	client := driver.NewClient(&driver.Options{Addr: server})
	stream := newName()
	aside, login := stream+".aside", stream
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		must(t, client.Del(ctx, stream, aside).Err())
		must(t, client.ACLDelUser(ctx, login).Err())
		must(t, client.Close())
	})
	setPassword := func(t testing.TB, secret string) {
		must(t, client.ACLSetUser(t.Context(), login, "on", "resetpass", ">"+secret, "~*", "+@all").Err())
	}
	setPassword(t, password)
	must(t, client.XAdd(t.Context(), &driver.XAddArgs{Stream: stream, ID: "0-1", Values: []string{"only", "so that the stream exists"}}).Err())
	proxy := sinktest.NewProxy(t, server)
	return Destination{
		Name:  "redis",
		Topic: stream,
		Sink:  opened[*redis.Sink](t)(redis.Open(redis.Config{Addresses: []string{proxy.Addr}, User: login, Password: password})),
		Troubles: append(network(proxy),
			Trouble{
				Name: "answers errors",
				Begin: func(t testing.TB) {
					_, err := client.TxPipelined(t.Context(), func(p driver.Pipeliner) error {
						p.Rename(t.Context(), stream, aside)
						p.Set(t.Context(), stream, "no stream", 0)
						return nil
					})
					must(t, err)
				},
				End:    func(t testing.TB) { must(t, client.Rename(t.Context(), aside, stream).Err()) },
				Spends: true,
			},
			refused(proxy, setPassword)),
		Arrived: func(t testing.TB) (payloads []string) {
			entries, err := client.XRange(t.Context(), stream, "0-2", "+").Result()
			must(t, err)
			for _, e := range entries {
				payloads = append(payloads, e.Values["payload"].(string))
			}
			return payloads
		},
	}
}
