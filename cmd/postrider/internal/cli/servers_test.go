package cli

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/postrider/postrider/sqlstore"
)

// newDatabase SERVER: makes a database on the server of POSTRIDER_TEST_SERVER, which is gone after the script. Its
// address is in DATABASE_URL.
func newDatabase(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: database SERVER")
	}
	variable := "POSTRIDER_TEST_" + strings.ToUpper(args[0])
	server := os.Getenv(variable)
	if server == "" {
		ts.Fatalf("%s is not set: scripts/services starts the servers", variable)
	}
	address, err := url.Parse(server)
	ts.Check(err)
	name := "script_" + strings.ToLower(rand.Text())
	execOn(ts, server, "CREATE DATABASE "+name)
	drop := "DROP DATABASE " + name
	if address.Scheme == "postgres" {
		drop += " WITH (FORCE)" // of a script that failed, commands may be at work
	}
	ts.Defer(func() { execOn(ts, server, drop) })
	address.Path = "/" + name
	ts.Setenv("DATABASE_URL", address.String())
}

func execOn(ts *testscript.TestScript, address, statement string) {
	db := openDatabase(ts, address)
	defer db.Close()
	_, err := db.Exec(statement)
	ts.Check(err)
}

// openDatabase opens a SQLite file, or what a URL leads to.
func openDatabase(ts *testscript.TestScript, address string) *sql.DB {
	driver, dsn := "sqlite", ""
	switch {
	case strings.HasPrefix(address, "postgres://"):
		driver, dsn = "pgx", address
	case strings.HasPrefix(address, "mysql://"):
		driver, dsn = "mysql", mysqlDSN(ts, address)
	default:
		dsn = sqlstore.SQLiteDSN(ts.MkAbs(address))
	}
	db, err := sql.Open(driver, dsn)
	ts.Check(err)
	return db
}

// mysqlDSN lets a file hold several statements.
func mysqlDSN(ts *testscript.TestScript, address string) string {
	dsn, err := sqlstore.MySQLDSN(address)
	ts.Check(err)
	return dsn + "&multiStatements=true"
}
