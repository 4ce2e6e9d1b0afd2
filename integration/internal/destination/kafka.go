package destination

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/sinktest"
)

const partitions = 6

// newKafka is a broker of its own, which tells clients the address of the proxy. The errors that it answers are those of a
// topic that the login may not write to (TOPIC_AUTHORIZATION_FAILED).
func newKafka(t testing.TB) Destination {
	t.Helper()
	port := servers.FreePort(t)
	proxy := sinktest.NewProxy(t, loopback(port))
	servers.LaunchAt(t, port, "kafka", "KAFKA_SASL=scram", "KAFKA_ACLS=1", "KAFKA_ADVERTISED="+proxy.Addr)
	topic := newName()
	inside := []kgo.Opt{kgo.SeedBrokers(net.JoinHostPort("127.0.0.2", strconv.Itoa(port+1)))} // needs no login
	client, err := kgo.NewClient(inside...)
	must(t, err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(t.Context(), partitions, 1, nil, topic)
	must(t, err)
	setPassword := func(t testing.TB, secret string) {
		changed, err := admin.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: user, Mechanism: kadm.ScramSha256, Iterations: 4096, Password: secret}})
		must(t, err)
		must(t, changed.Error())
	}
	setPassword(t, password)
	config := kafka.Config{Brokers: []string{proxy.Addr}, SASL: kafka.SASL{Mechanism: kafka.MechanismScramSHA256, User: user, Password: password}}
	may := mayWrite(t, admin, topic, proxy.Addr)
	return Destination{
		Name:  "kafka",
		Topic: topic,
		Sink:  opened[*kafka.Sink](t)(kafka.Open(config)),
		Troubles: append(network(proxy),
			Trouble{
				Name:   "answers errors",
				Begin:  func(t testing.TB) { may(t, false) },
				End:    func(t testing.TB) { may(t, true) },
				Spends: true,
			},
			refused(proxy, setPassword)),
		Arrived: func(t testing.TB) []string { return readTopic(t, admin, topic, inside) },
	}
}

// mayWrite returns what lets the user of the sink use the topic, or not, and waits until the broker obeys.
func mayWrite(t testing.TB, admin *kadm.Client, topic, broker string) func(t testing.TB, allowed bool) {
	t.Helper()
	login := scram.Auth{User: user, Pass: password}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.SASL(login.AsSha256Mechanism()))
	must(t, err)
	t.Cleanup(client.Close)
	denial := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpAll).Deny("User:" + user).DenyHosts("*")
	return func(t testing.TB, allowed bool) {
		if allowed {
			_, err = admin.DeleteACLs(t.Context(), denial)
		} else {
			_, err = admin.CreateACLs(t.Context(), denial)
		}
		must(t, err)
		await.True(t, time.Minute, "kafka obeys", func() bool {
			topics, err := kadm.NewClient(client).ListTopics(t.Context(), topic)
			return (err == nil && topics[topic].Err == nil) == allowed
		})
	}
}

func readTopic(t testing.TB, admin *kadm.Client, topic string, options []kgo.Opt) (payloads []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ends, err := admin.ListEndOffsets(ctx, topic)
	must(t, err)
	missing := int64(0)
	ends.Each(func(o kadm.ListedOffset) { missing += o.Offset })
	reader, err := kgo.NewClient(append(options, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	must(t, err)
	defer reader.Close()
	for missing > 0 {
		fetches := reader.PollFetches(ctx)
		must(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			payloads = append(payloads, string(r.Value))
			missing--
		})
	}
	return payloads
}

func loopback(port int) string { return fmt.Sprint("127.0.0.1:", port) }
