package kafka

import (
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumertest"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/sinktest"
)

func TestSourceConformance(t *testing.T) {
	t.Parallel()
	consumertest.Run(t, consumertest.Harness{
		Open:        openGroup,
		OpenPrivate: openPrivateGroup,
		Positions:   true,
		Expiry:      shortestSession,
		Coordinates: true,
		Cuts:        true,
		Key:         true,
	})
}

// shortestSession is the shortest timeout that brokers take by default.
const shortestSession = 6 * time.Second

// openGroup is one at the broker that the tests share.
func openGroup(t testing.TB) consumertest.Group {
	t.Helper()
	topic := newTopic(t, 4)
	createTopic(t, consumer.RetryTopic(topic, consumertest.RetryDelay), 1)
	return groupAt(t, brokers(t), topic)
}

// groupAt is the group of a topic's name. Each member has a proxy of its own, that stands in for every broker.
func groupAt(t testing.TB, addresses []string, topic string) consumertest.Group {
	t.Helper()
	sink := openSink(t, Config{Brokers: addresses})
	return consumertest.Group{Sink: sink, Topic: topic, Join: func(t testing.TB) consumertest.Member {
		proxy := sinktest.NewProxy(t, addresses[0])
		source, err := openSource(SourceConfig{
			Brokers:          addresses,
			Group:            topic,
			Topics:           []string{topic, consumer.RetryTopic(topic, consumertest.RetryDelay)},
			SessionTimeout:   shortestSession,
			RebalanceTimeout: 30 * time.Second,
		}, throughProxy(proxy))
		if err != nil {
			t.Fatal(err)
		}
		return consumertest.Member{Source: source, Proxy: proxy}
	}}
}

// openPrivateGroup is one at a broker that can be killed.
func openPrivateGroup(t testing.TB) consumertest.Group {
	t.Helper()
	server := servers.Launch(t, "kafka")
	addresses := []string{loopback(server.Port())}
	client, err := kgo.NewClient(kgo.SeedBrokers(addresses...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for topic, partitions := range map[string]int32{orders: 4, consumer.RetryTopic(orders, consumertest.RetryDelay): 1} {
		if _, err := kadm.NewClient(client).CreateTopic(testContext(t), partitions, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	group := groupAt(t, addresses, orders)
	group.Restart = func(t testing.TB) {
		server.Stop(t, syscall.SIGKILL)
		server.Start(t)
	}
	return group
}
