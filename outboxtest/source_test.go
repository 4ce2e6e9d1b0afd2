package outboxtest_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumertest"
	"github.com/postrider/postrider/outboxtest"
)

func TestBrokerConformsAsSource(t *testing.T) {
	consumertest.Run(t, consumertest.Harness{
		Positions: true, Coordinates: true, Key: true, Expiry: 10 * time.Millisecond,
		Open: func(testing.TB) consumertest.Group {
			b := outboxtest.NewBroker(outboxtest.BrokerConfig{})
			return consumertest.Group{
				Sink: b.Sink(), Topic: "orders",
				Join: func(testing.TB) consumertest.Member {
					return consumertest.Member{Source: b.Source("g", "orders", consumer.RetryTopic("orders", consumertest.RetryDelay))}
				},
			}
		},
	})
}
