package kafka_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"

	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/relay"
)

func ExampleOpen() {
	sink, err := kafka.Open(kafka.Config{
		Brokers:     []string{"broker-1:9093", "broker-2:9093"},
		TLS:         &tls.Config{},
		SASL:        kafka.SASL{Mechanism: kafka.MechanismScramSHA512, User: "orders", Password: "secret"},
		Compression: kafka.CompressionZstd,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sink.Close()
	for _, finding := range sink.Check(context.Background(), []string{"orders"}) {
		fmt.Println(finding.Level, finding.Subject, finding.Message)
	}
	outcomes := sink.Publish(context.Background(), []relay.Message{{Key: "42", Topic: "orders", Payload: []byte(`{"total":7}`)}})
	fmt.Println(outcomes[0].Class, outcomes[0].Coordinates)
}
