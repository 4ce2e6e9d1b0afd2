package store

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

func TestMySQLVerifyTellsTheStatementThatCreatesAMissingIndex(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		schema, _, _ := strings.Cut(d.table, ".")
		for _, index := range []string{"outbox_events_dedup ON " + d.table, "outbox_events_waiting ON " + d.table, "outbox_attempts_event ON " + schema + ".outbox_attempts"} {
			execute(t, d.db, "DROP INDEX "+index)
		}
		missing := 0
		for _, f := range s.Verify(t.Context()) {
			if statement, ok := strings.CutPrefix(f.Hint, "run: "); ok && strings.HasPrefix(f.Subject, "index ") {
				missing++
				execute(t, d.db, statement)
			}
		}
		if missing != 3 {
			t.Errorf("%d statements, want 3", missing)
		}
		for _, f := range s.Verify(t.Context()) {
			if f.Level != operator.LevelOK {
				t.Errorf("after the statements were run: %+v", f)
			}
		}
	})
}

func TestMySQLVerifyFindsMissingPrivileges(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		schema, _, _ := strings.Cut(d.table, ".")
		owner := d.db
		user := "'" + schema + "'@'127.0.0.1'"
		execute(t, d.db, "CREATE USER "+user+" IDENTIFIED BY 'p@ss/w:rd'")
		t.Cleanup(func() { execute(t, owner, "DROP USER "+user) })
		execute(t, d.db, "GRANT SELECT ON "+schema+".* TO "+user)
		execute(t, d.db, "GRANT UPDATE, DELETE ON "+d.table+" TO "+user)

		u, err := url.Parse(d.dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(schema, "p@ss/w:rd")
		d.db = connect(t, "mysql", mysqlDSN(t, u.String()))
		assertFinding(t, d, sqlstore.Config{}, "error table outbox_attempts: no privilege to INSERT")
		assertFinding(t, d, sqlstore.Config{}, "error table outbox_shards: no privilege to INSERT, UPDATE")
		for _, f := range d.open(t, sqlstore.Config{}).Verify(t.Context()) {
			if f.Subject == "table outbox_events" && f.Level == operator.LevelError {
				t.Errorf("%+v", f)
			}
		}
		if err := d.open(t, sqlstore.Config{}).Leave(t.Context(), relay.Member{ID: "a"}); !errors.Is(err, sqlstore.ErrDenied) {
			t.Errorf("writing without the privilege: %v, want ErrDenied", err)
		}

		execute(t, owner, "GRANT INSERT, UPDATE, DELETE ON "+schema+".* TO "+user)
		for _, f := range d.open(t, sqlstore.Config{}).Verify(t.Context()) {
			if f.Level != operator.LevelOK {
				t.Errorf("with all privileges: %+v", f)
			}
		}
	})
}

func TestMySQLVerifyWarnsOfALaxMode(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		d.db = connect(t, "mysql", mysqlDSN(t, withParameter(t, d.dsn, "sql_mode", "''")))
		assertFinding(t, d, sqlstore.Config{}, "warning database: values that do not fit are cut")
	})
}

// TestMySQLInitGoesOnWhereAnotherOneStopped after each of its statements.
func TestMySQLInitGoesOnWhereAnotherOneStopped(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		var script strings.Builder
		if err := d.open(t, sqlstore.Config{}).Print(&script); err != nil {
			t.Fatal(err)
		}
		statements := strings.Split(strings.TrimSpace(script.String()), ";\n")
		for n := range statements {
			for _, table := range []string{"events", "shards", "relays", "attempts", "versions", "schema"} {
				execute(t, d.db, "DROP TABLE IF EXISTS outbox_"+table)
			}
			for _, statement := range statements[:n] {
				execute(t, d.db, statement)
			}
			s := d.open(t, sqlstore.Config{})
			if err := s.Init(t.Context()); err != nil {
				t.Fatalf("after %d statements: %v", n, err)
			}
			for _, f := range s.Verify(t.Context()) {
				if f.Level != operator.LevelOK {
					t.Errorf("after %d statements: %+v", n, f)
				}
			}
		}
	})
}
