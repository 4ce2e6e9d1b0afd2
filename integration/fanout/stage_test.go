// Package fanout tests events that go to several sinks: each destination gets each event, whatever becomes of the others. The
// relays are processes of the real command, the servers are real.
package fanout_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/sinktest"
)

const soon = time.Minute

var binary string // the postrider command

func TestMain(m *testing.M) { daemon.Main(m, map[*string]string{&binary: "../../cmd/postrider"}) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newName() string { return "fanout_" + strings.ToLower(rand.Text()) }

// arrival is one message that a destination has got.
type arrival struct {
	ID  string `json:"id"`
	Key string `json:"key"`
	N   int    `json:"n"` // counts the events of the key
}

// receiver is where the events of a destination arrive, in their order.
type receiver struct {
	mu       sync.Mutex
	arrivals []arrival
}

func (r *receiver) take(id string, payload []byte) {
	a := arrival{ID: id}
	if err := json.Unmarshal(payload, &a); err != nil {
		a.Key = "unreadable: " + string(payload)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrivals = append(r.arrivals, a)
}

func (r *receiver) all() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.arrivals)
}

// stage is a database with an outbox whose events go to Kafka, RabbitMQ and a webhook.
type stage struct {
	db     *sql.DB
	config string
	admin  string

	kafka, topic string
	rabbit       receiver
	proxy        *sinktest.Proxy // before RabbitMQ
	hooks        receiver
	answer       func(a arrival) int // of the webhook, by the event
	answering    sync.Mutex
}

// threeSinks lets every event go to all three; %[1]s is the topic at Kafka, %[2]s that at RabbitMQ.
const threeSinks = `
relay: {lease: 4s, publish_timeout: 2s, shards: 8}
routes:
  - to:
      - {sink: main, topic: %[1]s}
      - {sink: rabbit, topic: %[2]s}
      - {sink: hooks, retry: {backoff: {initial: 100ms, max: 500ms, attempts: 1000}}}
`

// newStage makes a stage with settings such as threeSinks.
func newStage(t *testing.T, settings string) *stage {
	t.Helper()
	s := &stage{kafka: servers.Address(t, "POSTRIDER_TEST_KAFKA"), admin: fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t))}
	s.topic = broker.Topic(t, s.kafka, 1, nil)
	var dsn string
	dsn, s.db = newDatabase(t)
	rabbit, queue := s.newQueue(t)
	password, _ := rabbit.User.Password()
	user := rabbit.User.Username()
	rabbit.User = nil
	s.config = filepath.Join(t.TempDir(), "postrider.yaml")
	must(t, os.WriteFile(s.config, fmt.Appendf(nil, `
outbox: {dsn: %q}
sinks:
  main: {type: kafka, brokers: [%s]}
  rabbit: {type: rabbitmq, servers: [%q], user: %q, password: %q}
  hooks: {type: webhook, url: %q, allow_private: true}
admin: {listen: %q}
`+fmt.Sprintf(settings, s.topic, queue), dsn, s.kafka, rabbit, user, password, s.newHooks(t), s.admin), 0o600))
	s.command(t, 0, "init")
	return s
}

func newDatabase(t *testing.T) (dsn string, db *sql.DB) {
	t.Helper()
	address, name := servers.Address(t, "POSTRIDER_TEST_POSTGRES"), newName()
	admin, err := sql.Open("pgx", address)
	must(t, err)
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE "+name)
	must(t, err)
	u, err := url.Parse(address)
	must(t, err)
	u.Path = "/" + name
	db, err = sql.Open("pgx", u.String())
	must(t, err)
	t.Cleanup(func() {
		db.Close()
		if _, err := admin.ExecContext(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Log(err)
		}
		admin.Close()
	})
	return u.String(), db
}

// newQueue makes a queue that is emptied into s.rabbit, and the address of its server behind a proxy.
func (s *stage) newQueue(t *testing.T) (proxied *url.URL, topic string) {
	t.Helper()
	address := servers.Address(t, "POSTRIDER_TEST_RABBITMQ")
	conn, err := amqp.Dial(address)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	channel, err := conn.Channel()
	must(t, err)
	queue, err := channel.QueueDeclare(newName(), true, false, true, false, nil)
	must(t, err)
	deliveries, err := channel.Consume(queue.Name, "", true, true, false, false, nil)
	must(t, err)
	go func() {
		for d := range deliveries {
			s.rabbit.take(d.MessageId, d.Body)
		}
	}()
	u, err := url.Parse(address)
	must(t, err)
	s.proxy = sinktest.NewProxy(t, u.Host)
	u.Host = s.proxy.Addr
	return u, "/" + queue.Name
}

// newHooks makes a webhook that takes down in s.hooks what it accepts.
func (s *stage) newHooks(t *testing.T) (address string) {
	t.Helper()
	s.answer = always(http.StatusOK)
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		var a arrival
		if json.NewDecoder(r.Body).Decode(&body) != nil || json.Unmarshal(body, &a) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.answering.Lock()
		answer := s.answer
		s.answering.Unlock()
		if status := answer(a); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
		s.hooks.take(r.Header.Get("webhook-id"), body)
	}))
	t.Cleanup(hooks.Close)
	return hooks.URL
}

// hooksAnswer sets what the webhook answers from now on.
func (s *stage) hooksAnswer(answer func(a arrival) int) {
	s.answering.Lock()
	defer s.answering.Unlock()
	s.answer = answer
}

func always(status int) func(arrival) int { return func(arrival) int { return status } }

func (s *stage) command(t *testing.T, code int, arguments ...string) string {
	t.Helper()
	r := daemon.Run(t, binary, append(arguments, "-c", s.config)...)
	if r.Code != code {
		t.Fatalf("postrider %s: exit code %d, want %d\n%s%s", strings.Join(arguments, " "), r.Code, code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// start starts the daemon and waits until it has all shards of all its outboxes.
func (s *stage) start(t *testing.T) *daemon.Process {
	t.Helper()
	p := daemon.Start(t, binary, s.config, s.admin)
	await.True(t, soon, "the daemon is ready and has its shards", func() bool {
		h, _, ok := p.Health()
		return ok && h.Ready && h.Shards > 0
	})
	return p
}

// add commits the events first to last of each key, in transactions of one event for each key.
func (s *stage) add(t *testing.T, keys []string, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		_, err := s.db.ExecContext(t.Context(), `INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, aggregate_version, payload)
			SELECT 'order', key, 'Changed', $2, json_build_object('key', key, 'n', $2::bigint) FROM json_array_elements_text($1) key`,
			string(encode(t, keys)), n)
		must(t, err)
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	return text
}

func keysOf(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("key-%d", i))
	}
	return keys
}

func (s *stage) count(t *testing.T, query string, arguments ...any) (n int) {
	t.Helper()
	must(t, s.db.QueryRowContext(t.Context(), query, arguments...).Scan(&n))
	return n
}

func (s *stage) inState(t *testing.T, table, state string) int {
	t.Helper()
	return s.count(t, "SELECT count(*) FROM "+table+" WHERE status = $1", state)
}

const toRabbit = "outbox_events_to_rabbit"

// published waits until an outbox has published that many.
func (s *stage) published(t *testing.T, table string, n int) {
	t.Helper()
	await.True(t, soon, fmt.Sprintf("%s has published %d", table, n), func() bool { return s.inState(t, table, "PUBLISHED") == n })
}

func (s *stage) kafkaArrivals(t *testing.T) []arrival {
	t.Helper()
	var r receiver
	for _, m := range broker.Messages(t, s.kafka, s.topic) {
		r.take(m.Header("X-Event-Id"), m.Payload)
	}
	return r.arrivals
}

// checkOnce fails the test unless each of the events first to last of each key has arrived once, in their order.
func checkOnce(t *testing.T, where string, arrivals []arrival, keys []string, last int) {
	t.Helper()
	if repeated := check(t, where, arrivals, keys, last); repeated > 0 {
		t.Errorf("%s got %d events more than once", where, repeated)
	}
}

// check is checkOnce that lets events come again, and counts how often they did.
func check(t *testing.T, where string, arrivals []arrival, keys []string, last int) (repeated int) {
	t.Helper()
	next, seen := make(map[string]int), make(map[string]bool)
	for _, a := range arrivals {
		if seen[a.ID] {
			repeated++
			continue
		}
		seen[a.ID] = true
		if next[a.Key]++; a.N != next[a.Key] {
			t.Fatalf("%s got event %d of %s in place of %d", where, a.N, a.Key, next[a.Key])
		}
	}
	for _, key := range keys {
		if next[key] != last {
			t.Errorf("%s got %d events of %s, want %d", where, next[key], key, last)
		}
	}
	return repeated
}
