package presets_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/postrider/postrider/sqlstore"
)

// server is one of the real database servers.
type server struct {
	name     string
	variable string // environment variable with its address
	driver   string // of database/sql
}

var (
	postgres = server{"PostgreSQL", "POSTRIDER_TEST_POSTGRES", "pgx"}
	mysql    = server{"MySQL", "POSTRIDER_TEST_MYSQL", "mysql"}
	mariadb  = server{"MariaDB", "POSTRIDER_TEST_MARIADB", "mysql"}
	mongodb  = server{"MongoDB", "POSTRIDER_TEST_MONGODB", ""}
)

func (s server) isPostgres() bool { return s.driver == "pgx" }

func (s server) open(t *testing.T, address string) *sql.DB {
	t.Helper()
	var err error
	if !s.isPostgres() {
		if address, err = sqlstore.MySQLDSN(address); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open(s.driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// sqlTable is the table of a preset.
type sqlTable struct {
	preset preset
	server server
	db     *sql.DB
}

// newSQLTable makes a database with the table.
func newSQLTable(t *testing.T, on server, admin, dsn string, p preset) *sqlTable {
	t.Helper()
	makeDatabase(t, on, admin, dsn)
	table := &sqlTable{preset: p, server: on, db: on.open(t, dsn)}
	for statement := range strings.SplitSeq(table.ddl(t), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := table.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return table
}

func makeDatabase(t *testing.T, on server, admin, dsn string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	create, drop := "CREATE DATABASE "+name, "DROP DATABASE "+name
	if on.isPostgres() {
		drop += " WITH (FORCE)"
	} else {
		create += " CHARACTER SET utf8mb4"
	}
	db := on.open(t, admin)
	if _, err := db.Exec(create); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec(drop); err != nil {
			t.Error(err)
		}
	})
}

// ddl is the statements that make the table, as its own framework or article has them.
func (table *sqlTable) ddl(t *testing.T) string {
	t.Helper()
	kind := "mysql"
	if table.server.isPostgres() {
		kind = "postgres"
	}
	text, err := os.ReadFile(filepath.Join("testdata", table.preset.name+"."+kind+".sql"))
	if err != nil {
		text, err = os.ReadFile(filepath.Join("testdata", table.preset.name+".sql"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (table *sqlTable) add(t *testing.T, s *stage, some []event, commit bool) {
	t.Helper()
	tx, err := table.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, e := range some {
		if _, err := tx.ExecContext(t.Context(), table.preset.insert(table.server), table.preset.values(s, e)...); err != nil {
			t.Fatal(err)
		}
	}
	if !commit {
		return
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func (table *sqlTable) left(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	n := 0
	if err := table.db.QueryRowContext(ctx, table.preset.left(table.server)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
