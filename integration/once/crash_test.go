package once_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/consumer/parking"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/internal/uuid"
	"github.com/postrider/postrider/kafka"
	"github.com/postrider/postrider/rabbitmq"
	"github.com/postrider/postrider/relay"
)

const (
	keys  = 12
	fresh = 120 // events before each kill, more than a process gets through before it dies
	limit = 2 * time.Minute
)

func kills() int {
	if os.Getenv("POSTRIDER_FULL") == "1" {
		return 50
	}
	return 5
}

func TestKilledAtAnyPointEachEventHasItsEffectOnceKafkaPostgreSQL(t *testing.T) {
	t.Parallel()
	address := servers.Address(t, "POSTRIDER_TEST_KAFKA")
	for _, p := range points {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			topic := broker.Topic(t, address, 3, nil)
			sink, err := kafka.Open(kafka.Config{Brokers: []string{address}})
			run(t, p, testdb.Postgres(t, "pgx"), opened(t, sink, err), orders{Broker: "kafka", Address: address, Topic: topic, Instance: "one"})
		})
	}
}

func TestKilledAtAnyPointEachEventHasItsEffectOnceRabbitMQMariaDB(t *testing.T) {
	t.Parallel()
	address := servers.Address(t, "POSTRIDER_TEST_RABBITMQ4")
	for _, p := range points {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			sink, err := rabbitmq.Open(rabbitmq.Config{Servers: []string{address}})
			run(t, p, testdb.MySQL(t, "POSTRIDER_TEST_MARIADB", nil), opened(t, sink, err),
				orders{Broker: "rabbitmq", Address: address, Topic: "/" + newQueue(t, address)})
		})
	}
}

// TestKilledWhileAKeyIsParkedEachEventHasItsEffectOnce has a key whose events fail, and are parked, until the last process runs. The
// processes before it die in the middle of their tries.
func TestKilledWhileAKeyIsParkedEachEventHasItsEffectOnce(t *testing.T) {
	t.Parallel()
	address := servers.Address(t, "POSTRIDER_TEST_RABBITMQ4")
	for name, open := range map[string]func(t *testing.T) testdb.Database{
		"PostgreSQL": func(t *testing.T) testdb.Database { return testdb.Postgres(t, "pgx") },
		"MariaDB":    func(t *testing.T) testdb.Database { return testdb.MySQL(t, "POSTRIDER_TEST_MARIADB", nil) },
	} {
		for _, p := range []point{beforeReceipt, afterReceipt, afterCommit} {
			t.Run(name+" "+string(p), func(t *testing.T) {
				t.Parallel()
				sink, err := rabbitmq.Open(rabbitmq.Config{Servers: []string{address}})
				run(t, p, open(t), opened(t, sink, err), orders{Broker: "rabbitmq", Address: address, Topic: "/" + newQueue(t, address), Parks: true})
			})
		}
	}
}

func opened(t *testing.T, sink relay.Sink, err error) relay.Sink {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return sink
}

func newQueue(t *testing.T, address string) string {
	t.Helper()
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	name := "once-" + rand.Text()
	if _, err := channel.QueueDeclare(name, true, false, false, false, amqp.Table{
		amqp.QueueTypeArg:  amqp.QueueTypeQuorum,
		"x-delivery-limit": -1, // RabbitMQ 4 drops what has come 20 times, unless it is told otherwise
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { channel.QueueDelete(name, false, false, false) })
	return name
}

// run has processes die at the point, each with new events to get at, and one that lives, and compares effects with events.
func run(t *testing.T, p point, db testdb.Database, sink relay.Sink, o orders) {
	prepare(t, db)
	o.Driver, o.DSN, o.Dialect = db.Driver, db.DSN, db.Dialect
	var sent []string
	for n := range kills() {
		sent = append(sent, publish(t, sink, o.Topic, len(sent))...)
		o.Point, o.Hit = p, int64(n%4+1)
		if o.Parks {
			o.Hit += 20 * int64(n%4) // tries of what is parked among them
		}
		start(t, o).dies(t)
	}
	o.Point = ""
	c := start(t, o)
	defer func() {
		if t.Failed() {
			t.Logf("%d effects of %d events sent; the last process:\n%s", len(effects(t, db)), len(sent), c.output.String())
		}
	}()
	if o.Parks {
		cure(t, db, sent)
	}
	await.True(t, limit, "every event has its effect", func() bool {
		c.alive(t)
		return len(effects(t, db)) >= len(sent)
	})
	c.stops(t)

	check(t, effects(t, db), sent)
}

// cure lets the poisoned key through, once all others are.
func cure(t *testing.T, db testdb.Database, sent []string) {
	t.Helper()
	others := len(sent) - len(sent)/keys
	await.True(t, limit, "every event of the other keys has its effect", func() bool { return len(effects(t, db)) >= others })
	for _, id := range effects(t, db) {
		if slices.Index(sent, id)%keys == 0 {
			t.Errorf("event %s of the poisoned key has its effect before it was cured", id)
		}
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO cures (id) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
}

// check wants one effect for each event, those of a key in the order of its events.
func check(t *testing.T, got, sent []string) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(got))
	if n := len(slices.Compact(sorted)); len(got) != len(sent) || n != len(sent) {
		t.Errorf("%d effects of %d events, for %d events sent", len(got), n, len(sent))
	}
	checkOrder(t, got, sent)
}

// checkOrder compares the order of each key's effects with that of its events. An event's place tells its key.
func checkOrder(t *testing.T, got, sent []string) {
	t.Helper()
	place := make(map[string]int)
	for i, id := range sent {
		place[id] = i
	}
	last := make(map[int]int)
	for _, id := range got {
		i := place[id]
		if before, seen := last[i%keys]; seen && i <= before {
			t.Errorf("event %d of key %d had its effect after event %d", i, i%keys, before)
		}
		last[i%keys] = i
	}
}

func prepare(t *testing.T, db testdb.Database) {
	t.Helper()
	in, err := inbox.New(inbox.Config{Dialect: db.Dialect, Consumer: "once"})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Init(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	parked, err := parking.New(db.DB, parking.Config{Dialect: db.Dialect})
	if err != nil {
		t.Fatal(err)
	}
	if err := parked.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := "bigint GENERATED ALWAYS AS IDENTITY"
	if db.Dialect == postrider.MySQL {
		id = "bigint AUTO_INCREMENT"
	}
	for _, table := range []string{"effects (id " + id + " PRIMARY KEY, event_id varchar(36), event_key varchar(36))", "cures (id int)"} {
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE "+table); err != nil {
			t.Fatal(err)
		}
	}
}

// publish sends new events, those of all keys in turn; first is how many there were before.
func publish(t *testing.T, sink relay.Sink, topic string, first int) (ids []string) {
	t.Helper()
	var messages []relay.Message
	for i := range fresh {
		id, key := uuid.NewV7(), fmt.Sprint("key-", (first+i)%keys)
		ids = append(ids, id)
		messages = append(messages, relay.Message{
			EventID: id, Key: key, Topic: topic, Payload: []byte(`{}`),
			Headers: []relay.Header{{Name: relay.HeaderEventID, Value: id}, {Name: relay.HeaderAggregateID, Value: key}},
		})
	}
	for _, o := range sink.Publish(t.Context(), messages) {
		if o.Class != relay.ClassPublished {
			t.Fatalf("%s: %v", o.Class, o.Err)
		}
	}
	return ids
}

func effects(t *testing.T, db testdb.Database) (ids []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT event_id FROM effects ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// child is a process that consumes.
type child struct {
	command *exec.Cmd
	output  bytes.Buffer
	ended   chan struct{}
	err     error // once it has ended
}

func start(t *testing.T, o orders) *child {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{command: exec.Command(os.Args[0]), ended: make(chan struct{})}
	c.command.Env = append(os.Environ(), childVariable+"="+string(text))
	c.command.Stdout, c.command.Stderr = &c.output, &c.output
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.err = c.command.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.command.Process.Kill() // fails when it has ended
		<-c.ended
	})
	return c
}

func (c *child) wait(t *testing.T) {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(limit):
		_ = c.command.Process.Kill()
		<-c.ended
		t.Fatalf("the process has not ended within %v\n%s", limit, c.output.String())
	}
}

// dies waits until the process has killed itself.
func (c *child) dies(t *testing.T) {
	t.Helper()
	c.wait(t)
	var exit *exec.ExitError
	if !errors.As(c.err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended otherwise: %v\n%s", c.err, c.output.String())
	}
}

func (c *child) alive(t *testing.T) {
	t.Helper()
	select {
	case <-c.ended:
		t.Fatalf("the process has ended: %v\n%s", c.err, c.output.String())
	default:
	}
}

func (c *child) stops(t *testing.T) {
	t.Helper()
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.wait(t)
	if c.err != nil {
		t.Fatalf("the process did not end in order: %v\n%s", c.err, c.output.String())
	}
}
