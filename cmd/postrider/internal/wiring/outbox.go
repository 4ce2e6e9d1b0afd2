package wiring

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/sqlstore"
)

// Outbox is the outbox of a configuration, in its database.
type Outbox struct {
	DB      *sql.DB
	Store   *sqlstore.Store
	Address string // the DSN without its passwords

	database database
}

// OpenOutbox opens the outbox without connecting to its server; the caller closes it. A SQLite file that does not
// exist is refused. The error is a *ConfigError when the configuration is to blame.
func OpenOutbox(c *config.Config) (*Outbox, error) {
	if c.Outbox.Database == config.SQLite {
		if err := checkSQLiteFile(c.Outbox.DSN.Reveal()); err != nil {
			return nil, err
		}
	}
	return CreateOutbox(c)
}

// CreateOutbox does what OpenOutbox does, and lets a SQLite file that does not exist be made when it is first used.
func CreateOutbox(c *config.Config) (*Outbox, error) {
	database, ok := databases[c.Outbox.Database]
	if !ok {
		return nil, &ConfigError{"outbox.dsn", fmt.Errorf("this version has no store for %s: write postgres:// or sqlite:FILE", c.Outbox.Database)}
	}
	db, err := database.open(c.Outbox.DSN.Reveal())
	if err != nil {
		return nil, &ConfigError{"outbox.dsn", err}
	}
	limitPool(db)
	store, err := sqlstore.Open(db, database.store, sqlstore.Config{
		Table:           c.Outbox.Table,
		Shards:          c.Relay.Shards,
		Payload:         sqlstore.Payload(c.Outbox.Payload),
		DeletePublished: c.Relay.OnPublished == config.DeletePublished,
	})
	if err != nil {
		return nil, &ConfigError{"outbox", errors.Join(err, db.Close())}
	}
	return &Outbox{DB: db, Store: store, Address: config.MaskDSN(c.Outbox.DSN.Reveal()), database: database}, nil
}

// Close closes the connections.
func (o *Outbox) Close() error { return o.DB.Close() }

// Receipts lists who has applied an event. It returns none when no inbox is in the database of the outbox.
func (o *Outbox) Receipts(ctx context.Context, eventID string) ([]inbox.Receipt, error) {
	in, err := inbox.New(inbox.Config{Dialect: o.database.dialect})
	if err != nil {
		return nil, err
	}
	receipts, err := in.Receipts(ctx, o.DB, eventID)
	if err != nil && o.database.isMissingTable(err) {
		return nil, nil
	}
	return receipts, err
}

// Dialect is the outbox's database as producers and consumers name it.
func (o *Outbox) Dialect() postrider.Dialect { return o.database.dialect }
