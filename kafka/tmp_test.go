package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
)

func TestTmp(t *testing.T) {
	c := newCluster(t)
	a := time.Now()
	sink := openSink(t, Config{Brokers: c.ListenAddrs()})
	for i, topic := range []string{payments, payments, orders, orders, "missing", "missing", orders} {
		sink.Publish(testContext(t), []relay.Message{message(topic, "a", "a1")})
		fmt.Println(i, topic, time.Since(a))
		a = time.Now()
	}
	sink.Close()
	fmt.Println("close", time.Since(a))
	a = time.Now()
	c.Close()
	fmt.Println("close", time.Since(a))
}
