package neighbours_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"
	driver "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/kafka"
	natssink "github.com/postrider/postrider/nats"
	"github.com/postrider/postrider/rabbitmq"
	"github.com/postrider/postrider/redis"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sink/webhook"
	"github.com/postrider/postrider/sinktest"
)

func address(t *testing.T, server string) string {
	t.Helper()
	name := "POSTRIDER_TEST_" + server
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: scripts/services starts the servers", name)
	}
	return value
}

// opened fails the test when a sink could not be opened.
func opened[S relay.Sink](t *testing.T) func(S, error) relay.Sink {
	return func(s S, err error) relay.Sink {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newName(kind string) string { return kind + strings.ToLower(rand.Text()) }

// ids are the events that have arrived; a repetition counts once.
type ids struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (i *ids) add(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen == nil {
		i.seen = make(map[string]bool)
	}
	i.seen[id] = true
}

func (i *ids) count(*testing.T) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.seen)
}

// newKafka never fails here: its clients go to the address that the broker tells, past any proxy.
func newKafka(t *testing.T) neighbour {
	t.Helper()
	brokers := address(t, "KAFKA")
	topic := broker.Topic(t, brokers, 4, nil)
	return neighbour{
		name:  "kafka",
		sink:  opened[*kafka.Sink](t)(kafka.Open(kafka.Config{Brokers: []string{brokers}})),
		topic: topic,
		count: func(t *testing.T) int {
			arrived := &ids{}
			for _, m := range broker.Messages(t, brokers, topic) {
				arrived.add(m.Header(relay.HeaderEventID))
			}
			return arrived.count(t)
		},
	}
}

// newNATS fails by keeping its connections without a word.
func newNATS(t *testing.T) neighbour {
	t.Helper()
	server := address(t, "NATS")
	conn, err := nats.Connect(server)
	must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(t, err)
	name := newName("neighbours")
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}})
	must(t, err)
	proxy := sinktest.NewProxy(t, hostOf(t, server))
	return neighbour{
		name:    "nats",
		sink:    opened[*natssink.Sink](t)(natssink.Open(natssink.Config{Servers: []string{"nats://" + proxy.Addr}})),
		topic:   name,
		trouble: proxy.Freeze,
		heal:    proxy.Heal,
		count: func(t *testing.T) int {
			info, err := stream.Info(t.Context())
			must(t, err)
			return int(info.State.Msgs)
		},
	}
}

// newRabbitMQ fails by losing its connections.
func newRabbitMQ(t *testing.T) neighbour {
	t.Helper()
	server := address(t, "RABBITMQ")
	conn, err := amqp.Dial(server)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	channel, err := conn.Channel()
	must(t, err)
	queue, err := channel.QueueDeclare(newName("neighbours"), true, false, true, false, nil)
	must(t, err)
	deliveries, err := channel.Consume(queue.Name, "", true, true, false, false, nil)
	must(t, err)
	arrived := &ids{}
	go func() {
		for d := range deliveries {
			arrived.add(d.MessageId)
		}
	}()
	u, err := url.Parse(server)
	must(t, err)
	proxy := sinktest.NewProxy(t, u.Host)
	u.Host = proxy.Addr
	return neighbour{
		name:    "rabbitmq",
		sink:    opened[*rabbitmq.Sink](t)(rabbitmq.Open(rabbitmq.Config{Servers: []string{u.String()}})),
		topic:   "/" + queue.Name,
		trouble: proxy.Cut,
		heal:    proxy.Heal,
		count:   arrived.count,
	}
}

// newRedis fails by keeping its connections without a word.
func newRedis(t *testing.T) neighbour {
	t.Helper()
	server := hostOf(t, address(t, "REDIS"))
	client := driver.NewClient(&driver.Options{Addr: server})
	t.Cleanup(func() { client.Close() })
	stream := newName("neighbours")
	t.Cleanup(func() { client.Del(t.Context(), stream) })
	proxy := sinktest.NewProxy(t, server)
	return neighbour{
		name:    "redis",
		sink:    opened[*redis.Sink](t)(redis.Open(redis.Config{Addresses: []string{proxy.Addr}})),
		topic:   stream,
		trouble: proxy.Freeze,
		heal:    proxy.Heal,
		count: func(t *testing.T) int {
			arrived := &ids{}
			entries, err := client.XRange(t.Context(), stream, "-", "+").Result()
			must(t, err)
			for _, e := range entries {
				arrived.add(e.Values["id"].(string))
			}
			return arrived.count(t)
		},
	}
}

// newWebhook fails by refusing the login.
func newWebhook(t *testing.T) neighbour {
	t.Helper()
	arrived, refuses := &ids{}, atomic.Bool{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		arrived.add(r.Header.Get("webhook-id"))
	}))
	t.Cleanup(receiver.Close)
	return neighbour{
		name:    "webhook",
		sink:    opened[*webhook.Sink](t)(webhook.Open(webhook.Config{URL: receiver.URL, AllowPrivate: true})),
		topic:   "hooks",
		trouble: func() { refuses.Store(true) },
		heal:    func() { refuses.Store(false) },
		count:   arrived.count,
	}
}

func hostOf(t *testing.T, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err == nil && u.Host != "" {
		return u.Host
	}
	return server
}
