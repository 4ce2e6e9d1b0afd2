package wiring

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers the driver

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/sqlstore"
)

// database is what differs between the databases.
type database struct {
	store   sqlstore.Dialect
	dialect postrider.Dialect // the same, as producers and consumers name it
	open    func(dsn string) (*sql.DB, error)
}

var databases = map[config.Database]database{
	config.Postgres: {store: sqlstore.Postgres, dialect: postrider.PostgreSQL, open: openPostgres},
	config.MySQL:    {store: sqlstore.MySQL, dialect: postrider.MySQL, open: openMySQL},
	config.SQLite:   {store: sqlstore.SQLite, dialect: postrider.SQLite, open: openSQLite},
}

const (
	// maxConnections is one for each of the relay's loops (lease, read, settle, clean, backlog, jobs) and some for
	// people who look at it.
	maxConnections  = 9
	moreConnections = 8 // for a destination: its relay's loops, and two that hand events over to it
	idleTime        = 5 * time.Minute
	lifetime        = 30 * time.Minute // so that a fail-over behind one name is followed
	connectTimeout  = 5 * time.Second
)

func limitPool(db *sql.DB, destinations int) {
	most := maxConnections + destinations*moreConnections
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	db.SetConnMaxIdleTime(idleTime)
	db.SetConnMaxLifetime(lifetime)
}

func openPostgres(dsn string) (*sql.DB, error) {
	parsed, err := parsePostgres(dsn)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*parsed), nil
}

// parsePostgres reads a DSN and sets what it leaves open.
func parsePostgres(dsn string) (*pgx.ConnConfig, error) {
	parsed, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, unparsable(dsn, "PostgreSQL", func(masked string) error {
			_, err := pgx.ParseConfig(masked)
			return err
		})
	}
	if parsed.ConnectTimeout == 0 {
		parsed.ConnectTimeout = connectTimeout
	}
	if parsed.RuntimeParams["application_name"] == "" {
		parsed.RuntimeParams["application_name"] = "postrider"
	}
	if parsed.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// The server would keep plans that it made while the outbox was small, and statements of sessions that
		// a pooler has given to others.
		parsed.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return parsed, nil
}

// unparsable tells what is wrong with a DSN, unless only its password is: the client's own message could quote it, so
// the masked DSN is parsed for the reason.
func unparsable(dsn, server string, parse func(dsn string) error) error {
	masked := config.MaskDSN(dsn)
	if err := parse(masked); err != nil {
		return err
	}
	return fmt.Errorf("%s is no address of a %s database; in a URL, characters of the password such as @ : / ? %% must be written as %%40 and the like", masked, server)
}

func openMySQL(dsn string) (*sql.DB, error) {
	text, err := sqlstore.MySQLDSN(dsn)
	if err != nil {
		return nil, err
	}
	parsed, err := mysql.ParseDSN(text)
	if err != nil {
		return nil, err
	}
	parsed.Logger = &mysql.NopLogger{} // what it tells comes back as an error as well
	connector, err := mysql.NewConnector(parsed)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func openSQLite(dsn string) (*sql.DB, error) {
	return sql.Open("sqlite", sqlstore.SQLiteDSN(sqliteFile(dsn)))
}

// sqliteFile takes sqlite:FILE, and sqlite://FILE as other tools write it.
func sqliteFile(dsn string) string {
	return strings.TrimPrefix(strings.TrimPrefix(dsn, "sqlite:"), "//")
}

// checkSQLiteFile keeps SQLite from making an empty database where tables are expected.
func checkSQLiteFile(dsn string) error {
	_, err := os.Stat(sqliteFile(dsn))
	return err
}
