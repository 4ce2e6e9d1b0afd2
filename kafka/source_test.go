package kafka

import (
	"testing"
	"time"

	"github.com/postrider/postrider/consumertest"
	"github.com/postrider/postrider/sinktest"
)

func TestSourceConformance(t *testing.T) {
	t.Parallel()
	consumertest.Run(t, consumertest.Harness{
		Open:        openGroup,
		Lanes:       true,
		Expiry:      shortestSession,
		Coordinates: true,
		Cuts:        true,
		Key:         true,
	})
}

// shortestSession is the shortest timeout that brokers take by default.
const shortestSession = 6 * time.Second

// openGroup gives each member a proxy of its own, that stands in for every broker.
func openGroup(t testing.TB) consumertest.Group {
	t.Helper()
	topic := newTopic(t, 4)
	sink, err := Open(Config{Brokers: brokers(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return consumertest.Group{Sink: sink, Topic: topic, Join: func(t testing.TB) consumertest.Member {
		proxy := sinktest.NewProxy(t, brokers(t)[0])
		source, err := openSource(SourceConfig{
			Brokers:          brokers(t),
			Group:            topic,
			Topics:           []string{topic},
			SessionTimeout:   shortestSession,
			RebalanceTimeout: 30 * time.Second,
		}, throughProxy(proxy))
		if err != nil {
			t.Fatal(err)
		}
		return consumertest.Member{Source: source, Proxy: proxy}
	}}
}
