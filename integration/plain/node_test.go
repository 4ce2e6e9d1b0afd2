package plain

import (
	"crypto/rand"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/rabbitmq"
)

func TestNodeConsumerAppliesEachEventOnce(t *testing.T) {
	for _, server := range []string{"MARIADB", "MYSQL"} {
		t.Run(server, func(t *testing.T) { nodeConsumer(t, "POSTRIDER_TEST_"+server) })
	}
}

func nodeConsumer(t *testing.T, server string) {
	modules := fetch(t, "node")
	db := testdb.MySQL(t, server, nil)
	schema(t, db.DB, "node")
	var name string
	if err := db.QueryRowContext(t.Context(), "SELECT database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(os.Getenv(server))
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/" + name

	rabbit := os.Getenv("POSTRIDER_TEST_RABBITMQ")
	channel := openChannel(t, rabbit)
	queue := "t" + strings.ToLower(rand.Text())
	for _, q := range []string{queue, queue + ".dlt"} {
		if _, err := channel.QueueDeclare(q, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := channel.QueueDelete(q, false, false, false); err != nil {
				t.Errorf("queue %s stays: %v", q, err)
			}
		})
	}
	sink, err := rabbitmq.Open(rabbitmq.Config{Servers: []string{rabbit}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })

	const waiting = "SELECT coalesce(max(id), 0) FROM information_schema.processlist " +
		"WHERE db = database() AND info LIKE 'INSERT INTO balances%' AND time >= 1"
	s := &stage{db: db.DB, waiting: waiting, endIt: "KILL %d", sink: sink, topic: "/" + queue, command: func() *exec.Cmd {
		command := exec.Command("node", examples+"node/consumer.cjs") //nolint:noctx // the test ends it by signals
		command.Env = append(os.Environ(), "NODE_PATH="+modules, "AMQP_URL="+rabbit, "QUEUE="+queue,
			"CONSUMER=node", "DATABASE_URL="+address.String())
		return command
	}}
	s.consumes(t, func() int { return depth(t, channel, queue+".dlt") })
	if n := depth(t, channel, queue); n != 0 {
		t.Errorf("%d messages are left in the queue", n)
	}
}

func openChannel(t *testing.T, address string) *amqp.Channel {
	t.Helper()
	connection, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return channel
}

func depth(t *testing.T, channel *amqp.Channel, queue string) int {
	t.Helper()
	q, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q.Messages
}
