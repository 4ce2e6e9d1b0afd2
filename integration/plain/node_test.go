package plain

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"os/exec"
	"strconv"
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

	waits := func(t *testing.T) int { return waitingSession(t, db.DB, name) }
	s := &stage{db: db.DB, waiting: waits, endIt: "KILL %d", sink: sink, topic: "/" + queue, command: func() *exec.Cmd {
		command := exec.Command("node", examples+"node/consumer.cjs")
		command.Env = append(os.Environ(), "NODE_PATH="+modules, "AMQP_URL="+rabbit, "QUEUE="+queue,
			"CONSUMER=node", "DATABASE_URL="+address.String())
		return command
	}}
	s.consumes(t, func() int { return depth(t, channel, queue+".dlt") })
	if n := depth(t, channel, queue); n != 0 {
		t.Errorf("%d messages are left in the queue", n)
	}
}

// waitingSession finds a session in the database whose effect has taken a second, or 0. A condition on the list's texts would
// have the server convert those of all sessions, which fails for some.
func waitingSession(t *testing.T, db *sql.DB, database string) int {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SHOW FULL PROCESSLIST")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values := make([]sql.NullString, len(columns)) // MariaDB has one more
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		id, in, seconds, statement := values[0], values[3], values[5], values[7]
		if in.String == database && seconds.String != "0" && strings.HasPrefix(statement.String, "INSERT INTO balances") {
			session, err := strconv.Atoi(id.String)
			if err != nil {
				t.Fatal(err)
			}
			return session
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return 0
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
