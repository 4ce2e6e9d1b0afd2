package wiring

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// Store is what commands and relays ask of the store of an outbox.
type Store interface {
	relay.Store
	operator.Store
	operator.JobStore
	Init(ctx context.Context) error
	Verify(ctx context.Context) []operator.Finding
}

// Outbox is the outbox of a configuration, in its database.
type Outbox struct {
	Store        Store
	Destinations []Destination // the outboxes of sinks that get events which go to several, in the same database
	Address      string        // the DSN without its passwords
	DB           *sql.DB       // nil when the database is not SQL

	close    func() error
	database database
	config   *config.Config
}

// OpenOutbox opens the outbox without connecting to its server; the caller closes it. A SQLite file that does not
// exist is refused. The error is a *ConfigError when the configuration is to blame.
func OpenOutbox(c *config.Config) (*Outbox, error) {
	if c.Outbox.Database == config.SQLite {
		if err := checkSQLiteFile(c.Outbox.DSN.Reveal()); err != nil {
			return nil, fmt.Errorf("open outbox: %w; `postrider init` creates the database", err)
		}
	}
	return CreateOutbox(c)
}

// CreateOutbox does what OpenOutbox does, and lets a SQLite file that does not exist be made when it is first used.
func CreateOutbox(c *config.Config) (*Outbox, error) {
	if c.Outbox.Database == config.MongoDB {
		return openMongoDB(c)
	}
	database := databases[c.Outbox.Database]
	db, err := database.open(c.Outbox.DSN.Reveal())
	if err != nil {
		return nil, &ConfigError{"outbox.dsn", err}
	}
	limitPool(db, len(c.Destinations))
	store, err := sqlstore.Open(db, database.store, sqlstore.Config{
		Table:           c.Outbox.Table,
		Shards:          c.Relay.Shards,
		Payload:         sqlstore.Payload(c.Outbox.Payload),
		DeletePublished: c.Relay.OnPublished == config.DeletePublished,
		Mapping:         c.Outbox.Mapping,
	})
	if err != nil {
		return nil, &ConfigError{"outbox", errors.Join(err, db.Close())}
	}
	destinations, err := openDestinations(c, db, database.store)
	if err != nil {
		return nil, &ConfigError{"outbox.destinations", errors.Join(err, db.Close())}
	}
	return &Outbox{
		Store: store, Destinations: destinations, Address: config.MaskDSN(c.Outbox.DSN.Reveal()),
		DB: db, close: db.Close, database: database, config: c,
	}, nil
}

// IsUnreachable reports whether an error of a Store says that the database cannot be reached.
func IsUnreachable(err error) bool {
	return errors.Is(err, sqlstore.ErrUnreachable) || errors.Is(err, mongo.ErrUnreachable)
}

// ErrNoSQL says that the database of an outbox, or an inbox, has no SQL.
var ErrNoSQL = errors.New("this database has no SQL to print: without --print the command creates what is missing")

// Init creates the tables of the outbox and of its destinations, or brings them up to this version.
func (o *Outbox) Init(ctx context.Context) error {
	if err := o.Store.Init(ctx); err != nil {
		return err
	}
	for _, d := range o.Destinations {
		if err := d.Store.Init(ctx); err != nil {
			return fmt.Errorf("destination %s: %w", d.Sink, err)
		}
	}
	return nil
}

// Print writes the SQL of Init, or returns ErrNoSQL. It does not connect.
func (o *Outbox) Print(w io.Writer) error {
	stores := []Store{o.Store}
	for _, d := range o.Destinations {
		stores = append(stores, d.Store)
	}
	for _, store := range stores {
		printer, ok := store.(interface{ Print(w io.Writer) error })
		if !ok {
			return ErrNoSQL
		}
		if err := printer.Print(w); err != nil {
			return err
		}
	}
	return nil
}

// ForRelay is the outbox for one relay that shares the work in the given way. Each relay needs its own.
func (o *Outbox) ForRelay(claim config.Claim) relay.Store { return forRelay(o.Store, claim) }

func forRelay(store Store, claim config.Claim) relay.Store {
	if claim != config.ClaimRow {
		return store
	}
	if store, ok := store.(*mongo.Store); ok {
		return store.RowClaims()
	}
	return store.(*sqlstore.Store).RowClaims()
}

// Close closes the connections.
func (o *Outbox) Close() error { return o.close() }

// Check looks at the database and the tables, and at the relays that are at work there.
func (o *Outbox) Check(ctx context.Context, r config.Relay) []operator.Finding {
	findings := checkStore(ctx, o.Store, r)
	for _, d := range o.Destinations {
		findings = append(findings, d.named(checkStore(ctx, d.Store, r))...)
	}
	return append(findings, o.forsaken(ctx)...)
}

// Verify looks at the tables of the outbox and of its destinations.
func (o *Outbox) Verify(ctx context.Context) []operator.Finding {
	findings := o.Store.Verify(ctx)
	for _, d := range o.Destinations {
		findings = append(findings, d.named(d.Store.Verify(ctx))...)
	}
	return findings
}

func checkStore(ctx context.Context, store Store, r config.Relay) []operator.Finding {
	findings := store.Verify(ctx)
	if slices.ContainsFunc(findings, func(f operator.Finding) bool { return f.Level == operator.LevelError }) {
		return findings
	}
	status, err := store.Status(ctx, "")
	if err != nil {
		return append(findings, operator.Problem("relays", err.Error(), ""))
	}
	return append(findings, strangers(status.Relays, r)...)
}

// strangers are the live relays with which this one cannot share the work. One whose last heartbeat is older than the
// lease counts as dead.
func strangers(relays []operator.Relay, r config.Relay) (findings []operator.Finding) {
	for _, other := range relays {
		if other.HeartbeatSeconds > r.Lease.Seconds() {
			continue
		}
		at := fmt.Sprintf("is at work on this table on %s with ", other.Host)
		switch {
		case other.Name != r.Name:
			findings = append(findings, operator.Warning("relay "+other.ID,
				at+fmt.Sprintf("relay.name %q, so that postrider run is refused with %q", other.Name, r.Name),
				"give all relays of a table one relay.name"))
		case string(other.Claim) != string(r.Claim):
			findings = append(findings, operator.Warning("relay "+other.ID,
				at+fmt.Sprintf("claim: %s, so that postrider run is refused with claim: %s", other.Claim, r.Claim),
				"give all relays of a table one relay.claim; to change it, stop them all before"))
		}
	}
	return findings
}

// Receipts lists who has applied an event. It returns none when there is no inbox.
func (o *Outbox) Receipts(ctx context.Context, eventID string) ([]inbox.Receipt, error) {
	return receipts(ctx, o.config, eventID)
}

// Dialect is the outbox's database as producers and consumers name it.
func (o *Outbox) Dialect() postrider.Dialect { return o.database.dialect }
