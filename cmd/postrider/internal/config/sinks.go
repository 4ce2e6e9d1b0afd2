package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// Sink is one place that events go to.
type Sink struct {
	// Name is the sink's key in the file.
	Name string
	// Type says which of the fields below is set; stdout has none.
	Type SinkType
	// Batch bounds the events of one call of the sink. The default is that of
	// the relay; with webhook it is 4 times its concurrency, so that each
	// request of a call has time.
	Batch    int
	Kafka    *Kafka
	NATS     *NATS
	RabbitMQ *RabbitMQ
	Redis    *Redis
	Webhook  *Webhook
}

// SinkType is a kind of sink.
type SinkType string

// The kinds of sink.
const (
	SinkKafka    SinkType = "kafka"
	SinkNATS     SinkType = "nats"
	SinkRabbitMQ SinkType = "rabbitmq"
	SinkRedis    SinkType = "redis"
	SinkWebhook  SinkType = "webhook"
	SinkStdout   SinkType = "stdout"
)

var sinkTypes = []SinkType{SinkKafka, SinkNATS, SinkRabbitMQ, SinkRedis, SinkWebhook, SinkStdout}

// readSinks gives every sink that has a name, also those with mistakes, so
// that routes to them are not reported as well.
func readSinks(v value) []Sink {
	var sinks []Sink
	if !v.is(yaml.MappingNode) {
		return nil
	}
	v.pairs(func(key *yaml.Node, body value) {
		if _, wrong := parseName(key.Value); wrong != nil {
			v.r.add(key.Line, key.Column, body.path, fmt.Sprintf("%q %s", key.Value, wrong.message), wrong.hint)
		}
		sinks = append(sinks, readSink(key.Value, body))
	})
	if len(sinks) == 0 {
		v.problem("is empty", "name at least one sink: {main: {type: stdout}}")
	}
	return sinks
}

func readSink(name string, v value) Sink {
	sink := Sink{Name: name}
	v.object(func(o *object) {
		o.require("type", "write type: kafka, nats, rabbitmq, redis, webhook or stdout")
		choice(o, "type", &sink.Type, sinkTypes...)
		integer(o, "batch", &sink.Batch, 1, maxBatch)
		switch sink.Type {
		case SinkKafka:
			sink.Kafka = readKafka(o)
		case SinkNATS:
			sink.NATS = readNATS(o)
		case SinkRabbitMQ:
			sink.RabbitMQ = readRabbitMQ(o)
		case SinkRedis:
			sink.Redis = readRedis(o)
		case SinkWebhook:
			sink.Webhook = readWebhook(o)
			if !o.has("batch") {
				sink.Batch = roundsOfACall * sink.Webhook.Concurrency
			}
		case SinkStdout:
		default:
			o.dropAll()
		}
	})
	return sink
}

// roundsOfACall is how many requests one after the other a call of a webhook holds.
const roundsOfACall = 4

func findSink(sinks []Sink, name string) (Sink, bool) {
	i := slices.IndexFunc(sinks, func(s Sink) bool { return s.Name == name })
	if i < 0 {
		return Sink{}, false
	}
	return sinks[i], true
}

func sinkNames(sinks []Sink) []string {
	names := make([]string, len(sinks))
	for i, s := range sinks {
		names[i] = s.Name
	}
	return names
}
