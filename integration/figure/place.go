package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	"github.com/postrider/postrider"
	"github.com/postrider/postrider/sqlstore"
)

// place is where events are drained from and to.
type place struct {
	database
	target
	name string // of what is there for this only
	dsn  string
	db   *sql.DB
}

// database is a kind of database.
type database struct {
	name   string
	server string // environment variable with its address
	driver string
	dsn    func(address string) (string, error) // what the driver takes
	drop   string
	fill   string // adds events; takes the number of keys, the bytes of a payload, the number of events
	tidy   string

	dialect sqlstore.Dialect
	outbox  postrider.Dialect
}

//go:embed fill_postgres.sql
var fillPostgres string

//go:embed fill_mysql.sql
var fillMySQL string

var (
	postgres = database{
		name: "PostgreSQL", server: "POSTRIDER_TEST_POSTGRES", driver: "pgx", dsn: func(address string) (string, error) { return address, nil },
		drop: "DROP DATABASE %s WITH (FORCE)", fill: fillPostgres, tidy: "VACUUM ANALYZE outbox_events",
		dialect: sqlstore.Postgres, outbox: postrider.PostgreSQL,
	}
	mysql = database{
		name: "MySQL", server: "POSTRIDER_TEST_MYSQL", driver: "mysql", dsn: sqlstore.MySQLDSN,
		drop: "DROP DATABASE %s", fill: fillMySQL, tidy: "ANALYZE TABLE outbox_events",
		dialect: sqlstore.MySQL, outbox: postrider.MySQL,
	}
	mariadb = database{
		name: "MariaDB", server: "POSTRIDER_TEST_MARIADB", driver: "mysql", dsn: sqlstore.MySQLDSN,
		drop: "DROP DATABASE %s", fill: fillMySQL, tidy: "ANALYZE TABLE outbox_events",
		dialect: sqlstore.MySQL, outbox: postrider.MySQL,
	}
)

// onPlace drains in a database and to a target that are there for that only.
func onPlace(ctx context.Context, o options, d drain) (r result, err error) {
	err = hosted(ctx, func(t *host) error {
		p := newPlace(t, d.on)
		p.target = d.to(t, p.name)
		if r, err = d.by(ctx, o, p); err != nil {
			return err
		}
		r.count, err = p.arrived(ctx)
		return err
	})
	return r, err
}

// newPlace has a database and no target yet.
func newPlace(t *host, d database) place {
	p := place{database: d, name: "figure" + strings.ToLower(rand.Text())}
	drop, err := createDatabase(t.Context(), server(t, d.server), &p)
	t.must(err)
	t.Cleanup(func() { t.must(drop()) })
	return p
}

// server returns the address that an environment variable has.
func server(t *host, variable string) string {
	address := os.Getenv(variable)
	if address == "" {
		t.Fatalf("%s must be set: scripts/services starts the servers", variable)
	}
	return address
}

func createDatabase(ctx context.Context, server string, p *place) (drop func() error, err error) {
	admin, err := p.open(server)
	if err != nil {
		return nil, err
	}
	name := p.name
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	address, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	address.Path = "/" + name
	p.dsn = address.String()
	if p.db, err = p.open(p.dsn); err != nil {
		return nil, err
	}
	return func() error {
		_, err := admin.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf(p.drop, name))
		return errors.Join(err, p.db.Close(), admin.Close())
	}, nil
}

func (d database) open(address string) (*sql.DB, error) {
	dsn, err := d.dsn(address)
	if err != nil {
		return nil, err
	}
	return sql.Open(d.driver, dsn)
}
