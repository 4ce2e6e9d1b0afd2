package cli

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	"github.com/rogpeppe/go-internal/testscript"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

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
	if address.Scheme == "mongodb" {
		address.Path = "/" + name // comes to be with its first collection
		ts.Defer(func() {
			onMongoDB(ts, address.String(), func(db *mongo.Database) error { return db.Drop(context.Background()) })
		})
		ts.Setenv("DATABASE_URL", address.String())
		return
	}
	execOn(ts, server, "CREATE DATABASE "+name)
	drop := "DROP DATABASE " + name
	if address.Scheme == "postgres" {
		drop += " WITH (FORCE)" // of a script that failed, commands may be at work
	}
	ts.Defer(func() { execOn(ts, server, drop) })
	address.Path = "/" + name
	ts.Setenv("DATABASE_URL", address.String())
}

// insertDocuments COLLECTION FILE: inserts documents, one in each line, into the database of DATABASE_URL.
func insertDocuments(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: insert COLLECTION FILE")
	}
	var docs []bson.D
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		var doc bson.D
		ts.Check(bson.UnmarshalExtJSON([]byte(line), false, &doc))
		docs = append(docs, doc)
	}
	onMongoDB(ts, ts.Getenv("DATABASE_URL"), func(db *mongo.Database) error {
		_, err := db.Collection(args[0]).InsertMany(context.Background(), docs)
		return err
	})
}

// onMongoDB calls f with the database that the address names.
func onMongoDB(ts *testscript.TestScript, address string, f func(*mongo.Database) error) {
	parsed, err := connstring.Parse(address)
	ts.Check(err)
	client, err := mongo.Connect(options.Client().ApplyURI(address))
	ts.Check(err)
	defer client.Disconnect(context.Background())
	ts.Check(f(client.Database(parsed.Database)))
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
