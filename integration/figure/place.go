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
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/sqlstore"
)

// place is where events are drained from and to.
type place struct {
	database
	dsn   string
	db    *sql.DB
	kafka string
	topic string
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
}

//go:embed fill_postgres.sql
var fillPostgres string

//go:embed fill_mysql.sql
var fillMySQL string

var (
	postgres = database{
		name: "PostgreSQL", server: "POSTRIDER_TEST_POSTGRES", driver: "pgx", dsn: func(address string) (string, error) { return address, nil },
		drop: "DROP DATABASE %s WITH (FORCE)", fill: fillPostgres, tidy: "VACUUM ANALYZE outbox_events",
	}
	mysql = database{
		name: "MySQL", server: "POSTRIDER_TEST_MYSQL", driver: "mysql", dsn: sqlstore.MySQLDSN,
		drop: "DROP DATABASE %s", fill: fillMySQL, tidy: "ANALYZE TABLE outbox_events",
	}
	mariadb = database{
		name: "MariaDB", server: "POSTRIDER_TEST_MARIADB", driver: "mysql", dsn: sqlstore.MySQLDSN,
		drop: "DROP DATABASE %s", fill: fillMySQL, tidy: "ANALYZE TABLE outbox_events",
	}
)

// onPlace drains in a database and to a topic that are there for that only.
func onPlace(ctx context.Context, o options, d drain) (r result, err error) {
	p := place{database: d.on, kafka: os.Getenv("POSTRIDER_TEST_KAFKA"), topic: "figure" + strings.ToLower(rand.Text())}
	server := os.Getenv(d.on.server)
	if p.kafka == "" || server == "" {
		return r, fmt.Errorf("%s and POSTRIDER_TEST_KAFKA must be set: scripts/services starts the servers", d.on.server)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(p.kafka))
	if err != nil {
		return r, err
	}
	defer client.Close()
	dropTopic, err := createTopic(ctx, client, p.topic)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, dropTopic()) }()

	dropDatabase, err := createDatabase(ctx, server, &p)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, dropDatabase()) }()
	if r, err = d.by(ctx, o, p); err != nil {
		return r, err
	}
	r.count, err = arrived(ctx, client, p.topic)
	return r, err
}

func createTopic(ctx context.Context, client *kgo.Client, topic string) (drop func() error, err error) {
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return nil, err
	}
	return func() error {
		_, err := admin.DeleteTopic(context.WithoutCancel(ctx), topic)
		return err
	}, nil
}

// arrived counts what the topic holds.
func arrived(ctx context.Context, client *kgo.Client, topic string) (int, error) {
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	n := 0
	ends.Each(func(o kadm.ListedOffset) { n += int(o.Offset) })
	return n, ends.Error()
}

func createDatabase(ctx context.Context, server string, p *place) (drop func() error, err error) {
	admin, err := p.open(server)
	if err != nil {
		return nil, err
	}
	name := p.topic
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
