package store

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/sqlstore"
)

// asStranger returns the database as somebody sees it who was granted nothing there, and whose name has to be quoted. owner is
// the connection of the one who may grant.
func (d database) asStranger(t *testing.T) (mine database, owner *sql.DB) {
	t.Helper()
	owner = d.db
	schema, _, _ := strings.Cut(d.table, ".")
	if d.dialect.String() == sqlstore.Postgres.String() {
		name := schema + "-relay"
		execute(t, owner, `CREATE ROLE "`+name+`"`)
		t.Cleanup(func() {
			execute(t, owner, `DROP OWNED BY "`+name+`"`)
			execute(t, owner, `DROP ROLE "`+name+`"`)
		})
		d.db = connect(t, "pgx", withParameter(t, d.dsn, "role", name))
		return d, owner
	}
	user := "'" + schema + "''s'@'127.0.0.1'"
	execute(t, owner, "CREATE USER "+user+" IDENTIFIED BY 'secret'")
	t.Cleanup(func() { execute(t, owner, "DROP USER "+user) })
	execute(t, owner, "CREATE TABLE "+schema+".another (n INT)") // a database of which a user sees nothing cannot be connected to
	execute(t, owner, "GRANT SELECT ON "+schema+".another TO "+user)
	u, err := url.Parse(d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(schema+"'s", "secret")
	d.db = connect(t, "mysql", mysqlDSN(t, u.String()))
	return d, owner
}

// grantsAll runs the statement of each error that Verify finds, which must be all that is missing, and nothing but grants.
func grantsAll(t *testing.T, owner *sql.DB, s *sqlstore.Store, wantErrors int) {
	t.Helper()
	count := 0
	for _, f := range s.Verify(t.Context()) {
		if f.Level != operator.LevelError {
			continue
		}
		count++
		statement, ok := strings.CutPrefix(f.Hint, "run: GRANT ")
		if !ok || !strings.HasPrefix(f.Message, "no privilege to ") {
			t.Errorf("finding %+v", f)
			continue
		}
		execute(t, owner, "GRANT "+statement)
	}
	if count != wantErrors {
		t.Errorf("%d errors, want %d", count, wantErrors)
	}
	for _, f := range s.Verify(t.Context()) {
		if f.Level == operator.LevelError {
			t.Errorf("after the grants: %+v", f)
		}
	}
}

// closedSchemas is how many findings there are about schemas that a stranger may not use.
func closedSchemas(d database, n int) int {
	if d.dialect.String() == sqlstore.Postgres.String() {
		return n
	}
	return 0
}

func TestVerifyTellsAllGrantsThatAStrangerNeeds(t *testing.T) {
	everyServer(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		mine, owner := d.asStranger(t)
		grantsAll(t, owner, mine.open(t, sqlstore.Config{}), 9+closedSchemas(d, 1))
	})
}

func TestVerifyTellsAllGrantsOnTablesWithoutASchemaInTheirNames(t *testing.T) {
	everyServer(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		mine, owner := d.asStranger(t)
		_, mine.table, _ = strings.Cut(d.table, ".")
		grantsAll(t, owner, mine.open(t, sqlstore.Config{}), 9+closedSchemas(d, 1))
	})
}

func TestVerifyTellsAllGrantsOnAMappedTableAndItsSideTables(t *testing.T) {
	eachServer(t, "", func(t *testing.T, m mapped) {
		m.init(t)
		mine, owner := m.asStranger(t)
		m.database = mine
		grantsAll(t, owner, m.openMapped(t), 10+closedSchemas(mine, 1))
	})
}

func TestVerifyTellsAllGrantsInTheSchemaOfTheSideTables(t *testing.T) {
	m := plain(t, number)
	schema, _, _ := strings.Cut(m.table, ".")
	m.mapping.SideSchema = schema + "-side"
	db := m.db
	execute(t, db, `CREATE SCHEMA "`+m.mapping.SideSchema+`"`)
	t.Cleanup(func() { execute(t, db, `DROP SCHEMA "`+m.mapping.SideSchema+`" CASCADE`) })
	m.init(t)
	mine, owner := m.asStranger(t)
	m.database = mine
	grantsAll(t, owner, m.openMapped(t), 10+2)
}

// TestVerifyLooksAtTheOtherTables when a privilege on one is missing.
func TestVerifyLooksAtTheOtherTables(t *testing.T) {
	everyServer(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		schema, _, _ := strings.Cut(d.table, ".")
		mine, owner := d.asStranger(t)
		for _, f := range mine.open(t, sqlstore.Config{}).Verify(t.Context()) {
			if statement, ok := strings.CutPrefix(f.Hint, "run: GRANT "); ok && !strings.HasSuffix(f.Subject, "outbox_attempts") {
				execute(t, owner, "GRANT "+statement)
			}
		}
		execute(t, owner, d.words("DROP INDEX "+schema+".outbox_events_ready"))
		execute(t, owner, "ALTER TABLE "+schema+".outbox_relays DROP COLUMN host")
		var want []string
		for _, f := range s.Verify(t.Context()) {
			if f.Level == operator.LevelError {
				want = append(want, f.Subject)
			}
		}
		want = append([]string{"table " + schema + ".outbox_attempts"}, want...)
		var got []string
		for _, f := range mine.open(t, sqlstore.Config{}).Verify(t.Context()) {
			if f.Level == operator.LevelError {
				got = append(got, f.Subject)
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(want) != 3 {
			t.Errorf("found %q, want %q", got, want)
		}
	})
}
