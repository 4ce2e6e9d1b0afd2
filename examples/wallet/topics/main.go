// Topics creates the Kafka topics that are named as its arguments, unless they are there already.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions       = 6
	defaultOfBrokers = -1 // replicas
	timeout          = 30 * time.Second
)

func main() {
	if err := create(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func create(topics []string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA_BROKERS"), ",")...))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	answers, err := kadm.NewClient(client).CreateTopics(ctx, partitions, defaultOfBrokers, nil, topics...)
	if err != nil {
		return err
	}
	for _, topic := range answers.Sorted() {
		if topic.Err != nil && !errors.Is(topic.Err, kerr.TopicAlreadyExists) {
			err = errors.Join(err, topic.Err)
		}
	}
	return err
}
