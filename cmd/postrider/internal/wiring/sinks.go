package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/nats"
	"github.com/postrider/postrider/nats/embedded"
	"github.com/postrider/postrider/rabbitmq"
	"github.com/postrider/postrider/redis"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sink/stdout"
	"github.com/postrider/postrider/sink/webhook"
)

// Sinks are the sinks of a configuration, and the servers that run in this process for them.
type Sinks struct {
	Named   []relay.NamedSink
	servers []*embedded.Server
}

// OpenSinks opens sinks of a configuration. Servers elsewhere are not asked; embedded ones are started. Sinks
// of type stdout write to out; what a sink has to say beside its outcomes goes to log. The caller closes the sinks. The error is a *ConfigError when the configuration is to
// blame.
func OpenSinks(ctx context.Context, sinks []config.Sink, out io.Writer, log *slog.Logger) (*Sinks, error) {
	var opened Sinks
	for _, s := range sinks {
		sink, err := opened.open(ctx, s, out, log.With("sink", s.Name))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("sink %s: %w", s.Name, err), opened.Close())
		}
		opened.Named = append(opened.Named, relay.NamedSink{Name: s.Name, Type: string(s.Type), Sink: sink, Batch: s.Batch})
	}
	return &opened, nil
}

func (s *Sinks) open(ctx context.Context, c config.Sink, out io.Writer, log *slog.Logger) (relay.Sink, error) {
	switch c.Type {
	case config.SinkKafka:
		return blame(c)(openKafka(c.Kafka))
	case config.SinkNATS:
		if c.NATS.Embedded != nil {
			return s.startNATS(ctx, c.NATS)
		}
		return blame(c)(openNATS(c.NATS))
	case config.SinkRabbitMQ:
		return blame(c)(openRabbitMQ(c.RabbitMQ))
	case config.SinkRedis:
		return blame(c)(openRedis(c.Redis, log))
	case config.SinkWebhook:
		return blame(c)(openWebhook(c.Webhook))
	case config.SinkStdout:
		return stdout.New(out), nil
	default:
		return nil, fmt.Errorf("type %q is unknown to this version", c.Type)
	}
}

// blame makes an error one of the sink's configuration.
func blame(c config.Sink) func(relay.Sink, error) (relay.Sink, error) {
	return func(sink relay.Sink, err error) (relay.Sink, error) {
		if err != nil {
			return nil, &ConfigError{"sinks." + c.Name, err}
		}
		return sink, nil
	}
}

// Close closes the sinks and stops the servers. It is called once, after the relay has stopped.
func (s *Sinks) Close() error {
	var problems []error
	for _, named := range s.Named {
		problems = append(problems, named.Sink.Close())
	}
	for _, server := range s.servers {
		server.Stop()
	}
	return errors.Join(problems...)
}

func openKafka(c *config.Kafka) (relay.Sink, error) {
	settings, err := kafkaConfig(c)
	if err != nil {
		return nil, err
	}
	return kafka.Open(settings)
}

func kafkaConfig(c *config.Kafka) (kafka.Config, error) {
	tls, err := tlsConfig(c.TLS)
	if err != nil {
		return kafka.Config{}, err
	}
	settings := kafka.Config{
		Brokers:         c.Brokers,
		TLS:             tls,
		Compression:     kafka.Compression(c.Compression),
		MaxMessageBytes: c.MaxMessageBytes,
	}
	if c.SASL != nil {
		settings.SASL = kafka.SASL{
			Mechanism: kafka.Mechanism(strings.ToUpper(string(c.SASL.Mechanism))),
			User:      c.SASL.Username,
			Password:  c.SASL.Password.Reveal(),
		}
	}
	return settings, nil
}

func openNATS(c *config.NATS) (relay.Sink, error) {
	settings, err := natsConfig(c)
	if err != nil {
		return nil, err
	}
	return nats.Open(settings)
}

func natsConfig(c *config.NATS) (nats.Config, error) {
	tls, err := tlsConfig(c.TLS)
	if err != nil {
		return nats.Config{}, err
	}
	return nats.Config{
		Servers:   c.Servers,
		User:      c.User,
		Password:  c.Password.Reveal(),
		Token:     c.Token.Reveal(),
		CredsFile: c.CredentialsFile,
		TLS:       tls,
		Stream:    c.Stream,
	}, nil
}

// startNATS starts the embedded server of a sink.
func (s *Sinks) startNATS(ctx context.Context, c *config.NATS) (relay.Sink, error) {
	server, err := embedded.Start(ctx, embedded.Config{
		Dir:      c.Embedded.Dir,
		Listen:   c.Embedded.Listen,
		Stream:   c.Stream,
		Subjects: c.Embedded.Subjects,
	})
	if err != nil {
		return nil, err
	}
	s.servers = append(s.servers, server)
	return nats.Open(nats.Config{InProcess: server, Stream: c.Stream})
}

func openRabbitMQ(c *config.RabbitMQ) (relay.Sink, error) {
	settings, err := rabbitMQConfig(c)
	if err != nil {
		return nil, err
	}
	return rabbitmq.Open(settings)
}

func rabbitMQConfig(c *config.RabbitMQ) (rabbitmq.Config, error) {
	tls, err := tlsConfig(c.TLS)
	if err != nil {
		return rabbitmq.Config{}, err
	}
	settings := rabbitmq.Config{
		Servers:         c.Servers,
		User:            c.User,
		Password:        c.Password.Reveal(),
		TLS:             tls,
		Unroutable:      rabbitmq.Unroutable(c.Unroutable),
		UnroutableBy:    make(map[string]rabbitmq.Unroutable),
		MaxMessageBytes: c.MaxMessageBytes,
	}
	for exchange, unroutable := range c.UnroutableBy {
		settings.UnroutableBy[exchange] = rabbitmq.Unroutable(unroutable)
	}
	for _, exchange := range c.Declare {
		settings.Declare = append(settings.Declare, rabbitmq.Exchange(exchange))
	}
	return settings, nil
}

// quietRedis lets the client's own log, which is one for the whole process and goes to standard error, say nothing: what it
// tells is in the outcomes as well.
var quietRedis = sync.OnceFunc(func() { goredis.SetLogger(noLog{}) })

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func openRedis(c *config.Redis, log *slog.Logger) (relay.Sink, error) {
	settings, err := redisConfig(c)
	if err != nil {
		return nil, err
	}
	settings.Logger = log
	return redis.Open(settings)
}

func redisConfig(c *config.Redis) (redis.Config, error) {
	quietRedis()
	tls, err := tlsConfig(c.TLS)
	if err != nil {
		return redis.Config{}, err
	}
	return redis.Config{
		Addresses:        c.Addresses,
		Cluster:          c.Cluster,
		Master:           c.Master,
		User:             c.User,
		Password:         c.Password.Reveal(),
		SentinelUser:     c.SentinelUser,
		SentinelPassword: c.SentinelPassword.Reveal(),
		DB:               c.DB,
		TLS:              tls,
		MaxMessageBytes:  c.MaxMessageBytes,
		IdempotentFor:    c.IdempotentFor,
		Replicas:         c.Replicas,
		Fsync:            c.Fsync,
		Trim:             redis.Trim(c.Trim),
		MaxEntries:       int64(c.MaxEntries),
	}, nil
}

func openWebhook(c *config.Webhook) (relay.Sink, error) {
	tls, err := tlsConfig(c.TLS)
	if err != nil {
		return nil, err
	}
	settings := webhook.Config{
		URL:          c.URL.Reveal(),
		TLS:          tls,
		Concurrency:  c.Concurrency,
		Timeout:      c.Timeout,
		AllowPrivate: c.AllowPrivate,
	}
	for _, secret := range c.Secrets {
		settings.Secrets = append(settings.Secrets, secret.Reveal())
	}
	return webhook.Open(settings)
}
