package plain

import (
	"net/url"
	"os"
	"os/exec"
	"testing"

	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/kafka"
)

func TestPythonConsumerAppliesEachEventOnce(t *testing.T) {
	packages := fetch(t, "python")
	db := testdb.Postgres(t, "pgx")
	schema(t, db.DB, "python")
	var name string
	if err := db.QueryRowContext(t.Context(), "SELECT current_schema()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(os.Getenv("POSTRIDER_TEST_POSTGRES"))
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("options", "-csearch_path="+name)
	address.RawQuery = query.Encode()

	brokers := os.Getenv("POSTRIDER_TEST_KAFKA")
	topic := broker.Topic(t, brokers, 4, nil)
	broker.CreateTopic(t, brokers, topic+".dlt", 1, nil)
	sink, err := kafka.Open(kafka.Config{Brokers: []string{brokers}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })

	// Longer than the client takes to send a position in the background.
	const waiting = "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0 AND " +
		"query LIKE '%INTO balances%' AND query_start < now() - interval '2 seconds'"
	waits := func(t *testing.T) int { return number(t, db.DB, waiting) }
	s := &stage{db: db.DB, waiting: waits, endIt: "SELECT pg_terminate_backend(%d)", sink: sink, topic: topic, command: func() *exec.Cmd {
		command := exec.Command("python3", examples+"python/consumer.py")
		command.Env = append(os.Environ(), "PYTHONPATH="+packages, "KAFKA_BROKERS="+brokers, "TOPIC="+topic,
			"CONSUMER=python-"+topic, "DATABASE_URL="+address.String())
		return command
	}}
	s.consumes(t, func() int { return len(broker.Messages(t, brokers, topic+".dlt")) })
}
