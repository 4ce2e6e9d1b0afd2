package rabbitmq

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// The versions of the server that the tests run against, as scripts/services names them.
var versions = []string{"rabbitmq", "rabbitmq4"}

// Kinds of queues.
const (
	classic = "classic"
	quorum  = "quorum"
	stream  = "stream"
)

// serverURL returns the real server that the tests run against.
func serverURL(t testing.TB, version string) string {
	t.Helper()
	variable := "POSTRIDER_TEST_" + strings.ToUpper(version)
	address := os.Getenv(variable)
	if address == "" {
		t.Fatalf("%s is not set: `scripts/services up %s` starts a server, `scripts/services env` prints its address", variable, version)
	}
	return address
}

// perVersion runs a test against each version of the server.
func perVersion(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { test(t, serverURL(t, version)) })
	}
}

func host(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// at returns the address with another host, and with another login unless that is empty.
func at(t testing.TB, address, host, user string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = host
	if user != "" {
		u.User = url.UserPassword(user, user)
	}
	return u.String()
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// broker is a client of its own, in confirm mode. It connects anew when the connection has ended.
type broker struct {
	address string
	conn    *amqp.Connection
	ch      *amqp.Channel
}

func newBroker(t testing.TB, address string) *broker {
	b := &broker{address: address}
	t.Cleanup(func() {
		if b.conn != nil {
			b.conn.Close()
		}
	})
	return b
}

func (b *broker) channel(t testing.TB) *amqp.Channel {
	t.Helper()
	if b.ch != nil && !b.ch.IsClosed() {
		return b.ch
	}
	var err error
	if b.conn == nil || b.conn.IsClosed() {
		if b.conn, err = amqp.Dial(b.address); err != nil {
			t.Fatal(err)
		}
	}
	if b.ch, err = b.conn.Channel(); err != nil {
		t.Fatal(err)
	}
	if err = b.ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return b.ch
}

func newName() string { return "test-" + strings.ToLower(rand.Text()[:12]) }

// newExchange declares a topic exchange of its own for the test.
func (b *broker) newExchange(t testing.TB) string {
	t.Helper()
	name := newName()
	if err := b.channel(t).ExchangeDeclare(name, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.channel(t).ExchangeDelete(name, false, false) })
	return name
}

// newQueue declares a queue of its own for the test. Arguments alternate name and value.
func (b *broker) newQueue(t testing.TB, kind string, arguments ...any) *queue {
	t.Helper()
	return b.newQueueNamed(t, newName(), kind, arguments...)
}

func (b *broker) newQueueNamed(t testing.TB, name, kind string, arguments ...any) *queue {
	t.Helper()
	q := &queue{broker: b, name: name, kind: kind}
	table := amqp.Table{amqp.QueueTypeArg: kind}
	for i := 0; i < len(arguments); i += 2 {
		table[arguments[i].(string)] = arguments[i+1]
	}
	if _, err := b.channel(t).QueueDeclare(q.name, true, false, false, false, table); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.channel(t).QueueDelete(q.name, false, false, false) })
	return q
}

func (b *broker) bind(t testing.TB, q *queue, exchange, key string) {
	t.Helper()
	if err := b.channel(t).QueueBind(q.name, key, exchange, false, nil); err != nil {
		t.Fatal(err)
	}
}

// queue is one that a test reads.
type queue struct {
	broker *broker
	name   string
	kind   string
	all    []amqp.Delivery // what was read, which classic and quorum queues no longer have
}

// read returns everything that has come so far. A message of the test's own tells where that ends.
func (q *queue) read(t testing.TB) []amqp.Delivery {
	t.Helper()
	ctx := testContext(t)
	ch := q.broker.channel(t)
	end := newName()
	confirm, err := ch.PublishWithDeferredConfirm("", q.name, true, false, amqp.Publishing{MessageId: end, DeliveryMode: amqp.Persistent})
	if err != nil {
		t.Fatal(err)
	}
	if acked, err := confirm.WaitContext(ctx); !acked {
		t.Fatalf("the end was not taken by queue %s: %v", q.name, err)
	}
	reader, err := q.broker.conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := reader.Qos(500, 0, false); err != nil {
		t.Fatal(err)
	}
	var arguments amqp.Table
	if q.kind == stream {
		arguments = amqp.Table{"x-stream-offset": "first"}
		q.all = nil
	}
	deliveries, err := reader.ConsumeWithContext(ctx, q.name, "", false, false, false, false, arguments)
	if err != nil {
		t.Fatal(err)
	}
	for d := range deliveries {
		if err := d.Ack(false); err != nil {
			t.Fatal(err)
		}
		if d.MessageId == end {
			return q.all
		}
		if !strings.HasPrefix(d.MessageId, "test-") { // the end of an earlier time
			q.all = append(q.all, d)
		}
	}
	t.Fatalf("queue %s ended before its end was read", q.name)
	return nil
}

// ids returns the message ids in the queue.
func (q *queue) ids(t testing.TB) []string {
	t.Helper()
	var ids []string
	for _, d := range q.read(t) {
		ids = append(ids, d.MessageId)
	}
	return ids
}

func stored(d amqp.Delivery) sinktest.Stored {
	s := sinktest.Stored{Payload: d.Body}
	for name, value := range d.Headers {
		if text, ok := value.(string); ok { // a stream adds its offset as a number
			s.Headers = append(s.Headers, relay.Header{Name: name, Value: text})
		}
	}
	return s
}

func open(t testing.TB, c Config) *Sink {
	t.Helper()
	sink, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return sink
}

// private is a server that one test owns.
type private struct{ *servers.Server }

// launch starts a server on a port and data of its own; environment are its variations. It ends with the test.
func launch(t testing.TB, version string, environment ...string) private {
	t.Helper()
	return private{servers.Launch(t, version, environment...)}
}

func (p private) address() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", p.Port()) }

// ctl runs the server's rabbitmqctl.
func (p private) ctl(t testing.TB, arguments ...string) {
	t.Helper()
	if output, err := exec.Command(p.File("ctl"), arguments...).CombinedOutput(); err != nil {
		t.Fatalf("ctl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// addUser adds a user whose password is the name and who may write to what matches.
func (p private) addUser(t testing.TB, name, write string) {
	t.Helper()
	p.ctl(t, "add_user", name, name)
	p.ctl(t, "set_permissions", name, "", write, ".*")
}
