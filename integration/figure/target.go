package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/internal/servers"
)

// target is where events are drained to.
type target struct {
	sink    string // in the configuration
	topic   string
	arrived func(context.Context) (int, error) // how many messages are there
}

// newTarget makes a target that ends with the host.
type newTarget func(t *host, name string) target

func toKafka(t *host, name string) target {
	address := server(t, "POSTRIDER_TEST_KAFKA")
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	t.must(err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(t.Context(), partitions, 1, nil, name)
	t.must(err)
	t.Cleanup(func() {
		_, err := admin.DeleteTopic(context.WithoutCancel(t.Context()), name)
		t.must(err)
	})
	return target{fmt.Sprintf("{type: kafka, brokers: [%q], compression: none}", address), name, func(ctx context.Context) (int, error) {
		ends, err := admin.ListEndOffsets(ctx, name)
		if err != nil {
			return 0, err
		}
		n := 0
		ends.Each(func(o kadm.ListedOffset) { n += int(o.Offset) })
		return n, ends.Error()
	}}
}

func toNATS(t *host, name string) target {
	address := server(t, "POSTRIDER_TEST_NATS")
	conn, err := nats.Connect(address)
	t.must(err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	t.must(err)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}, Storage: jetstream.FileStorage})
	t.must(err)
	t.Cleanup(func() { t.must(js.DeleteStream(context.WithoutCancel(t.Context()), name)) })
	return target{fmt.Sprintf("{type: nats, url: %q}", address), name, func(ctx context.Context) (int, error) {
		info, err := stream.Info(ctx)
		if err != nil {
			return 0, err
		}
		return int(info.State.Msgs), nil
	}}
}

// toRabbitMQ is a queue of a kind.
func toRabbitMQ(kind string) newTarget {
	return func(t *host, name string) target {
		address := server(t, "POSTRIDER_TEST_RABBITMQ4")
		conn, err := amqp.Dial(address)
		t.must(err)
		t.Cleanup(func() { t.must(conn.Close()) })
		channel, err := conn.Channel()
		t.must(err)
		queue := func() (int, error) {
			q, err := channel.QueueDeclare(name, true, false, false, false, amqp.Table{amqp.QueueTypeArg: kind})
			return q.Messages, err
		}
		_, err = queue()
		t.must(err)
		t.Cleanup(func() {
			_, err := channel.QueueDelete(name, false, false, false)
			t.must(err)
		})
		withoutLogin, err := url.Parse(address)
		t.must(err)
		withoutLogin.User = nil
		arrived := func(context.Context) (int, error) { return queue() }
		if kind == amqp.QueueTypeStream {
			arrived = readStream(t, channel, name)
		}
		return target{fmt.Sprintf("{type: rabbitmq, servers: [%q]}", withoutLogin), "/" + name, arrived}
	}
}

// readStream counts by reading, because a stream's own count is seconds old.
func readStream(t *host, channel *amqp.Channel, name string) func(context.Context) (int, error) {
	const ahead = 1000
	t.must(channel.Qos(2*ahead, 0, false))
	deliveries, err := channel.Consume(name, "", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
	t.must(err)
	var arrived atomic.Int64
	go func() {
		for d := range deliveries {
			if arrived.Add(1)%ahead == 0 && d.Ack(true) != nil {
				return // the channel has ended, and the measurement with it
			}
		}
	}()
	return func(context.Context) (int, error) { return int(arrived.Load()), nil }
}

// toRedis is a stream of a server that syncs its file so often.
func toRedis(fsync string) newTarget {
	return func(t *host, name string) target {
		address := fmt.Sprint("127.0.0.1:", servers.Launch(t, "redis", "REDIS_OPTIONS=--appendfsync "+fsync).Port())
		client := redis.NewClient(&redis.Options{Addr: address})
		t.Cleanup(func() { t.must(client.Close()) })
		return target{fmt.Sprintf("{type: redis, addresses: [%q]}", address), name, func(ctx context.Context) (int, error) {
			n, err := client.XLen(ctx, name).Result()
			return int(n), err
		}}
	}
}

// toWebhook is a receiver in this process that answers at once.
func toWebhook(t *host, name string) target {
	var arrived atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			arrived.Add(1)
		}
	}))
	t.Cleanup(receiver.Close)
	return target{fmt.Sprintf("{type: webhook, url: %q, allow_private: true}", receiver.URL), name, func(context.Context) (int, error) {
		return int(arrived.Load()), nil
	}}
}
