package once_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/kafka"
)

// TestConsumersThatComeAndGoUnderLoadApplyEachEventOnce has members join, leave in order, and die, while the partitions move between
// them and messages keep coming.
func TestConsumersThatComeAndGoUnderLoadApplyEachEventOnce(t *testing.T) {
	t.Parallel()
	rounds := 4 * kills() // of new events
	address := servers.Address(t, "POSTRIDER_TEST_KAFKA")
	topic := broker.Topic(t, address, 6, nil)
	sink, err := kafka.Open(kafka.Config{Brokers: []string{address}})
	opened(t, sink, err)
	db := testdb.Postgres(t, "pgx")
	prepare(t, db)
	o := orders{Driver: db.Driver, DSN: db.DSN, Dialect: db.Dialect, Broker: "kafka", Address: address, Topic: topic}

	var sent []string
	add := func() { sent = append(sent, publish(t, sink, topic, len(sent))...) }
	applied := func(n int) {
		t.Helper()
		await.True(t, limit, fmt.Sprintf("%d events have their effects", n), func() bool { return len(effects(t, db)) >= n })
	}
	add()
	members := []*child{start(t, o)}
	applied(fresh / 2)
	for round := range rounds {
		add()
		switch round % 6 {
		case 1, 3:
			members = append(members, start(t, o))
		case 4: // in the middle of what it does
			if err := members[0].command.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			members[0].dies(t)
			members = members[1:]
		case 5:
			members[0].stops(t)
			members = members[1:]
		}
		applied(round * fresh / 2)
	}
	applied(len(sent))
	for _, m := range members {
		m.stops(t)
	}
	check(t, effects(t, db), sent)
}
