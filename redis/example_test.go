package redis_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/postrider/postrider/redis"
	"github.com/postrider/postrider/relay"
)

func ExampleOpen() {
	sink, err := redis.Open(redis.Config{
		Addresses:     []string{"redis-1:6379"},
		User:          "orders",
		Password:      "secret",
		IdempotentFor: 24 * time.Hour,
		Trim:          redis.TrimSafe,
		MaxEntries:    1_000_000,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sink.Close()
	for _, finding := range sink.Check(context.Background(), []string{"orders"}) {
		fmt.Println(finding.Level, finding.Subject, finding.Message)
	}
	outcomes := sink.Publish(context.Background(), []relay.Message{{EventID: "0190c7f0", Key: "42", Topic: "orders", Payload: []byte(`{"total":7}`)}})
	fmt.Println(outcomes[0].Class, outcomes[0].Coordinates)
}
