package store

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"
)

// asUser returns the table as a user of its own sees it, who may do everything in a database of the side tables and has the
// given rights on the table. owner is the connection of the one who made them.
func (m mapped) asUser(t testing.TB, rights string) (mine mapped, owner *sql.DB) {
	t.Helper()
	schema, _, _ := strings.Cut(m.table, ".")
	owner = m.db
	user, side := "'"+schema+"'@'127.0.0.1'", schema+"_side"
	execute(t, owner, "CREATE DATABASE "+side)
	t.Cleanup(func() { execute(t, owner, "DROP DATABASE "+side) })
	execute(t, owner, "CREATE USER "+user+" IDENTIFIED BY 'secret'")
	t.Cleanup(func() { execute(t, owner, "DROP USER "+user) })
	execute(t, owner, "GRANT ALL ON "+side+".* TO "+user)
	if rights != "" {
		execute(t, owner, "GRANT "+rights+" ON "+m.table+" TO "+user)
	}
	u, err := url.Parse(m.dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(schema, "secret"), "/"+side
	m.mapping.SideSchema = side
	m.db = connect(t, "mysql", mysqlDSN(t, u.String()))
	return m, owner
}

func TestAUserOfMySQLWhoMaySelectAndUpdateIsEnough(t *testing.T) {
	eachPreset(t, "event-outbox", "event-outbox.sql", func(t *testing.T, m mapped) {
		for range 5 {
			execute(t, m.db, "INSERT INTO event_outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', '1', 'E', '{}')")
		}
		mine, owner := m.asUser(t, "SELECT, UPDATE")
		mine.workAll(t)
		schema, _, _ := strings.Cut(m.table, ".")
		if list := values(t, owner, "SELECT table_name FROM information_schema.tables WHERE table_schema = '"+schema+"'"); len(list) != 1 {
			t.Errorf("beside their table stand %v", list)
		}
	})
}

func TestAUserOfMySQLWhoMaySelectAndDeleteIsEnough(t *testing.T) {
	eachPreset(t, "debezium", "debezium.mysql.sql", func(t *testing.T, m mapped) {
		for range 5 {
			execute(t, m.db, "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES (uuid(), 'o', '1', 'E', '{}')")
		}
		mine, _ := m.asUser(t, "SELECT, DELETE")
		mine.workAll(t)
	})
}

func TestEachMissingGrantOfMySQLIsNamed(t *testing.T) {
	eachPreset(t, "event-outbox", "event-outbox.sql", func(t *testing.T, m mapped) {
		mine, owner := m.asUser(t, "SELECT")
		mine.init(t)
		mine.finds(t, "error", "table "+m.table+": no privilege to UPDATE (run: GRANT UPDATE ON ")
		schema, _, _ := strings.Cut(m.table, ".")
		execute(t, owner, "REVOKE ALL ON "+schema+"_side.* FROM '"+schema+"'@'127.0.0.1'")
		execute(t, owner, "GRANT SELECT, UPDATE, DELETE ON "+schema+"_side.* TO '"+schema+"'@'127.0.0.1'")
		mine.finds(t, "error", "table "+schema+"_side.event_outbox_failures: no privilege to INSERT")
		mine.finds(t, "error", "table "+schema+"_side.event_outbox_shards: no privilege to INSERT")
	})
	eachPreset(t, "debezium", "debezium.mysql.sql", func(t *testing.T, m mapped) {
		mine, _ := m.asUser(t, "SELECT")
		mine.init(t)
		mine.finds(t, "error", "table "+m.table+": no privilege to DELETE")
	})
	eachPreset(t, "debezium", "debezium.mysql.sql", func(t *testing.T, m mapped) {
		mine, _ := m.asUser(t, "INSERT")
		mine.init(t)
		mine.finds(t, "error", "table "+m.table+": no privilege to SELECT")
	})
	eachPreset(t, "debezium", "debezium.mysql.sql", func(t *testing.T, m mapped) {
		mine, _ := m.asUser(t, "")
		mine.finds(t, "error", "table "+m.table+": no privilege to SELECT, DELETE, or there is no such table")
	})
}
