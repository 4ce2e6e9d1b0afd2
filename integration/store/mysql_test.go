package store

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider/sqlstore"
	"github.com/postrider/postrider/storetest"
)

// mysqlServers are the two servers that speak MySQL's language.
var mysqlServers = map[string]string{"mariadb": "POSTRIDER_TEST_MARIADB", "mysql": "POSTRIDER_TEST_MYSQL"}

func eachMySQL(t *testing.T, test func(t *testing.T, d database)) {
	for name, server := range mysqlServers {
		t.Run(name, func(t *testing.T) { test(t, newMySQL(t, server)) })
	}
}

func TestMySQL(t *testing.T) {
	t.Parallel()
	for name, server := range mysqlServers {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness { return newHarness(t, newMySQL(t, server)) })
		})
	}
}

// newMySQL makes a database of its own on the server whose address the environment variable holds.
func newMySQL(t testing.TB, server string) database {
	t.Helper()
	address := os.Getenv(server)
	if address == "" {
		t.Fatalf("%s is not set: scripts/services starts the servers", server)
	}
	return newMySQLAt(t, address)
}

func newMySQLAt(t testing.TB, address string) database {
	t.Helper()
	name := fmt.Sprintf("test_%x", rand.Uint64())
	executeAt(t, address, "CREATE DATABASE "+name)
	t.Cleanup(func() { executeAt(t, address, "DROP DATABASE "+name) })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	dsn := withParameter(t, u.String(), "time_zone", "'-05:00'") // what is right only where the session is in UTC shows
	return database{dsn, connect(t, "mysql", mysqlDSN(t, dsn)), sqlstore.MySQL, name + ".outbox_events", insertMySQL,
		`INSERT INTO %s (aggregate_type, aggregate_id, event_type, payload)
		SELECT 'order', concat('order-', n %% 1000), 'OrderPlaced', '{"some": "payload"}'
		FROM JSON_TABLE(concat('[0', repeat(',0', ? - 1), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) numbers`}
}

// executeAt leaves no connection behind, which would be ended as an idle one.
func executeAt(t testing.TB, address, statement string) {
	t.Helper()
	db, err := sql.Open("mysql", mysqlDSN(t, address))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	execute(t, db, statement)
}

func mysqlDSN(t testing.TB, address string) string {
	t.Helper()
	dsn, err := sqlstore.MySQLDSN(address)
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

func insertMySQL(table string, columns map[string]any, e storetest.Event) (string, []any) {
	var names, values []string
	var args []any
	for name, value := range columns {
		args = append(args, value)
		names = append(names, name)
		values = append(values, "?")
	}
	if e.DueIn != 0 {
		args = append(args, e.DueIn.Microseconds())
		names = append(names, "next_attempt_at")
		values = append(values, "utc_timestamp(6) + INTERVAL ? MICROSECOND")
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON DUPLICATE KEY UPDATE id = id",
		table, strings.Join(names, ", "), strings.Join(values, ", ")), args
}
