package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/nats"
	"github.com/postrider/postrider/rabbitmq"
	"github.com/postrider/postrider/redis"
)

// OpenDeadLetters opens a dead-letter topic at the broker of a sink. The caller closes it. The error is a *ConfigError when the
// configuration or the topic is to blame.
func OpenDeadLetters(c config.Sink, topic string) (dlt.Topic, error) {
	opened, err := openDeadLetters(elsewhere(c), topic)
	if err != nil {
		return nil, &ConfigError{"sinks." + c.Name, err}
	}
	return opened, nil
}

func openDeadLetters(c config.Sink, topic string) (dlt.Topic, error) {
	switch c.Type {
	case config.SinkKafka:
		settings, err := kafkaConfig(c.Kafka)
		if err != nil {
			return nil, err
		}
		return kafka.OpenDeadLetters(settings, topic)
	case config.SinkNATS:
		if c.NATS.Embedded != nil {
			return nil, errors.New("its server runs within the relay: set listen of embedded, so that others reach it")
		}
		settings, err := natsConfig(c.NATS)
		if err != nil {
			return nil, err
		}
		return nats.OpenDeadLetters(settings, topic)
	case config.SinkRabbitMQ:
		settings, err := rabbitMQConfig(c.RabbitMQ)
		if err != nil {
			return nil, err
		}
		return rabbitmq.OpenDeadLetters(settings, topic)
	case config.SinkRedis:
		settings, err := redisConfig(c.Redis)
		if err != nil {
			return nil, err
		}
		return redis.OpenDeadLetters(settings, topic)
	default:
		return nil, fmt.Errorf("a sink of type %s has no dead-letter topics", c.Type)
	}
}

// OpenSinkElsewhere opens a sink whose server another process runs, also where the relay would run it. The caller closes it.
func OpenSinkElsewhere(ctx context.Context, c config.Sink) (*Sinks, error) {
	return OpenSinks(ctx, []config.Sink{elsewhere(c)}, nil, slog.New(slog.DiscardHandler))
}

// elsewhere leads to an embedded server from outside of its process, if it listens.
func elsewhere(c config.Sink) config.Sink {
	if c.Type == config.SinkNATS && c.NATS.Embedded != nil && c.NATS.Embedded.Listen != "" {
		c.NATS = &config.NATS{Servers: []string{"nats://" + c.NATS.Embedded.Listen}, Stream: c.NATS.Stream}
	}
	return c
}
