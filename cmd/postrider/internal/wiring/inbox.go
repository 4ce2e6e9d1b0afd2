package wiring

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/consumer/parking"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/operator"
)

// Inbox is where the consumers of a configuration keep their receipts and park messages.
type Inbox struct {
	Receipts
	Address string // the DSN without its passwords
	Table   string

	parked *parking.Table // nil where nothing is parked
	close  func() error
}

// ErrNothingParked says that consumers with their data in a database of this kind do not park messages.
var ErrNothingParked = errors.New("no consumer parks messages in MongoDB: set inbox.dsn to the SQL database in which they are parked")

// Receipts are what tools ask of the receipts of any number of consumers, wherever they are.
type Receipts interface {
	Init(ctx context.Context) error
	Consumers(ctx context.Context) ([]inbox.ConsumerStatus, error)
	Receipts(ctx context.Context, eventID string) ([]inbox.Receipt, error)
	Forget(ctx context.Context, consumer, dedupKey, who, reason string) error
}

// sqlReceipts are Receipts in an SQL database.
type sqlReceipts struct {
	tables *inbox.Tables
	db     *sql.DB
}

func (r sqlReceipts) Init(ctx context.Context) error { return r.tables.Init(ctx, r.db) }

func (r sqlReceipts) Consumers(ctx context.Context) ([]inbox.ConsumerStatus, error) {
	return r.tables.Consumers(ctx, r.db)
}

func (r sqlReceipts) Receipts(ctx context.Context, eventID string) ([]inbox.Receipt, error) {
	return r.tables.Receipts(ctx, r.db, eventID)
}

func (r sqlReceipts) Forget(ctx context.Context, consumer, dedupKey, who, reason string) error {
	return r.tables.Forget(ctx, r.db, consumer, dedupKey, who, reason)
}

// Print writes the SQL of Init, or returns ErrNoSQL. It does not connect.
func (in *Inbox) Print(w io.Writer) error {
	receipts, ok := in.Receipts.(sqlReceipts)
	if !ok {
		return ErrNoSQL
	}
	_, err := io.WriteString(w, receipts.tables.InitSQL())
	return err
}

// Parked is the table of parked messages, or the error is ErrNothingParked.
func (in *Inbox) Parked() (*parking.Table, error) {
	if in.parked == nil {
		return nil, ErrNothingParked
	}
	return in.parked, nil
}

// Close closes the connections.
func (in *Inbox) Close() error { return in.close() }

// OpenInbox opens the inbox without connecting to its server; the caller closes it. A SQLite file that does not exist is
// refused. The error is a *ConfigError when the configuration is to blame.
func OpenInbox(c *config.Config) (*Inbox, error) {
	if c.Inbox.Database == config.SQLite {
		if err := checkSQLiteFile(c.Inbox.DSN.Reveal()); err != nil {
			return nil, fmt.Errorf("open inbox: %w; `postrider inbox init` creates the database", err)
		}
	}
	return CreateInbox(c)
}

// CreateInbox does what OpenInbox does, and lets a SQLite file that does not exist be made when it is first used.
func CreateInbox(c *config.Config) (*Inbox, error) {
	if c.Inbox.Database == config.MongoDB {
		return openMongoDBInbox(c)
	}
	database := databases[c.Inbox.Database]
	tables, err := inbox.NewTables(database.dialect, c.Inbox.Table)
	if err != nil {
		return nil, &ConfigError{"inbox.table", err}
	}
	db, err := database.open(c.Inbox.DSN.Reveal())
	if err != nil {
		return nil, &ConfigError{"inbox.dsn", err}
	}
	limitPool(db, 0)
	parked, err := parking.New(db, parking.Config{Dialect: database.dialect, Table: c.Inbox.Parked, Receipts: c.Inbox.Table})
	if err != nil {
		return nil, errors.Join(&ConfigError{"inbox.parked", err}, db.Close())
	}
	return &Inbox{
		Receipts: sqlReceipts{tables, db}, Address: config.MaskDSN(c.Inbox.DSN.Reveal()), Table: c.Inbox.Table,
		parked: parked, close: db.Close,
	}, nil
}

// receipts lists who has applied an event. It returns none when there is no inbox.
func receipts(ctx context.Context, c *config.Config, eventID string) ([]inbox.Receipt, error) {
	in, err := OpenInbox(c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	receipts, err := in.Receipts.Receipts(ctx, eventID)
	if errors.Is(err, inbox.ErrNoTables) {
		return nil, nil
	}
	return receipts, err
}

// Kept says for how long something can deliver an event again.
type Kept struct {
	Where string
	For   time.Duration // 0: for ever
}

// keeper is a sink that knows how long its broker keeps messages.
type keeper interface {
	// Retention is the longest of the topics'; 0 when one keeps its messages for ever.
	Retention(ctx context.Context, topics []string) (time.Duration, error)
}

// Kept is how long the brokers keep the events of the routes. A sink that does not know, or cannot find out, says nothing.
func (s *Sinks) Kept(ctx context.Context, routes []config.Route) (kept []Kept) {
	for _, named := range s.Named {
		sink, ok := named.Sink.(keeper)
		topics, _ := topicsOf(named.Name, routes)
		if !ok || len(topics) == 0 {
			continue
		}
		if retention, err := sink.Retention(ctx, topics); err == nil {
			kept = append(kept, Kept{"sink " + named.Name, retention})
		}
	}
	return kept
}

// CheckInbox looks at the windows of the consumers: whatever can deliver an event again must not do so after its receipt is
// gone. It says nothing where there is no inbox and none is configured.
func CheckInbox(ctx context.Context, c *config.Config, kept []Kept) []operator.Finding {
	in, err := OpenInbox(c)
	if errors.Is(err, fs.ErrNotExist) && !isElsewhere(c) {
		return nil
	}
	if err != nil {
		return []operator.Finding{operator.Problem("inbox", err.Error(), "")}
	}
	defer in.Close()
	consumers, err := in.Consumers(ctx)
	switch {
	case errors.Is(err, inbox.ErrNoTables) && !isElsewhere(c):
		return nil
	case err != nil:
		return []operator.Finding{operator.Problem("inbox", err.Error(), "")}
	}
	if c.Relay.OnPublished == config.KeepPublished {
		kept = append(kept, Kept{"the outbox", c.Relay.Retention})
	}
	findings := []operator.Finding{operator.OK("inbox", fmt.Sprintf("%d consumers in %s", len(consumers), in.Address))}
	for _, consumer := range consumers {
		findings = append(findings, checkWindow(consumer, kept)...)
	}
	return findings
}

// isElsewhere reports whether the configuration says where the inbox is, so that there must be one.
func isElsewhere(c *config.Config) bool {
	return c.Inbox.DSN != c.Outbox.DSN || c.Inbox.Table != inbox.DefaultTable
}

func checkWindow(c inbox.ConsumerStatus, kept []Kept) (findings []operator.Finding) {
	subject := "inbox, consumer " + c.Consumer
	if c.WindowSeconds == nil {
		return []operator.Finding{operator.Warning(subject, "never cleans its receipts", "let it run the cleaner, so that the table does not grow for ever")}
	}
	window := time.Duration(*c.WindowSeconds) * time.Second
	for _, k := range kept {
		const hint = "make the window longer: an event that is delivered again after it is applied again"
		switch {
		case k.For == 0:
			findings = append(findings, operator.Warning(subject, fmt.Sprintf("keeps receipts for %v, but %s keeps events for ever", window, k.Where), hint))
		case k.For > window:
			findings = append(findings, operator.Warning(subject,
				fmt.Sprintf("keeps receipts for %v, but %s keeps events for %v", window, k.Where, k.For), hint))
		}
	}
	return findings
}
