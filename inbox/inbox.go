// Package inbox lets a consumer apply each message once, although it may be delivered more often.
//
// # Guarantees
//
// The first thing that happens in a transaction is a receipt: a row for (consumer, dedup key). The effect of the
// message runs in the same transaction, so that both are there or neither. Where the receipt exists already the
// effect does not run, and the result is Duplicate, which is a success: acknowledge the message. Of several
// deliveries at the same time one applies the effect and the others wait for its outcome: when it rolled back, the
// next one applies it.
//
// # Duties of the caller
//
//   - Take the dedup key from the message: X-Idempotency-Key (the event id) of what Postrider published.
//   - Do in the effect only what rolls back with the transaction. A mail or a call to another service can happen twice.
//   - Acknowledge the message after Process has returned without an error, or after the transaction around Apply
//     has committed; never before.
//   - Keep receipts for longer than a message can be delivered again.
package inbox

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/ident"
	"github.com/postrider/postrider/internal/sqltx"
)

// DefaultTable is the table of receipts unless Config.Table says otherwise.
const DefaultTable = "inbox_receipts"

//go:embed postgresql sqlite
var files embed.FS

// Config says where an Inbox keeps its receipts. Dialect must be set.
type Config struct {
	Dialect postrider.Dialect

	// Table is the table of receipts, with or without its schema; default DefaultTable. It must be in the database
	// of the consumer's own data. It is quoted in statements, so upper and lower case count.
	Table string
}

// Inbox keeps the receipts of any number of consumers in one table. It holds no connection and starts no goroutine,
// needs no closing, and is safe for concurrent use.
type Inbox struct {
	table                       string // quoted
	init, receive, findReceipts string // statements
}

// New returns the Inbox that cfg describes, or an error with every mistake in cfg. It does not talk to a database.
func New(cfg Config) (*Inbox, error) {
	if cfg.Table == "" {
		cfg.Table = DefaultTable
	}
	var mistakes []error
	if cfg.Dialect != postrider.PostgreSQL && cfg.Dialect != postrider.SQLite {
		mistakes = append(mistakes, fmt.Errorf("Dialect is %q: it must be %q or %q", cfg.Dialect, postrider.PostgreSQL, postrider.SQLite))
	}
	table, err := ident.QuoteTable(cfg.Table, `"`)
	if err != nil {
		mistakes = append(mistakes, fmt.Errorf("Table %w", err))
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("inbox configuration: %w", errors.Join(mistakes...))
	}
	return &Inbox{
		table:        table,
		init:         statement(cfg.Dialect, "init", table),
		receive:      statement(cfg.Dialect, "receive", table),
		findReceipts: statement(cfg.Dialect, "receipts", table),
	}, nil
}

func statement(dialect postrider.Dialect, name, table string) string {
	text, err := files.ReadFile(string(dialect) + "/" + name + ".sql")
	if err != nil {
		panic(err) // each dialect has each statement
	}
	return strings.ReplaceAll(string(text), "{receipts}", table)
}

// Init creates the table of receipts unless it exists. It may be called by several processes at the same time.
func (in *Inbox) Init(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, in.init); err != nil {
		return fmt.Errorf("create table %s: %w", in.table, err)
	}
	return nil
}

// Result tells what became of a message.
type Result string

// The results. Both are successes.
const (
	Applied   Result = "applied"   // the effect ran
	Duplicate Result = "duplicate" // the receipt existed; nothing was done
)

// Apply runs effect within tx, the caller's transaction, unless the receipt for key exists. It blocks while another
// transaction applies the same key. effect is to work within tx.
//
// It returns a *postrider.TxError when tx is no transaction, a *KeyError when key is not fit for a receipt, and the
// error of effect, wrapped. After any error roll tx back: a commit could keep the receipt without the effect.
func (in *Inbox) Apply(ctx context.Context, tx postrider.Tx, key Key, effect func(ctx context.Context) error) (Result, error) {
	direct, problem := sqltx.Usable(tx)
	if problem != "" {
		return "", fmt.Errorf("apply %s: %w", key, &postrider.TxError{Type: fmt.Sprintf("%T", tx), Problem: problem})
	}
	if err := key.check(); err != nil {
		return "", err
	}
	isNew, err := in.writeReceipt(ctx, direct.(postrider.Tx), key)
	if err != nil {
		return "", fmt.Errorf("apply %s: write the receipt to %s: %w", key, in.table, err)
	}
	if !isNew {
		return Duplicate, nil
	}
	if err := effect(ctx); err != nil {
		return "", fmt.Errorf("apply %s: %w", key, err)
	}
	return Applied, nil
}

func (in *Inbox) writeReceipt(ctx context.Context, tx postrider.Tx, key Key) (isNew bool, err error) {
	inserted, err := tx.ExecContext(ctx, in.receive, key.Consumer, key.DedupKey)
	if err != nil {
		return false, err
	}
	n, err := inserted.RowsAffected()
	return n == 1, err
}

// Process runs effect in a transaction of its own, as Apply does, and commits it. When it returns an error nothing
// was applied, with one exception: after a failed commit the outcome is unknown. In either case the message is to be
// processed again, and the receipt tells what happened. When effect panics the transaction is rolled back.
func (in *Inbox) Process(ctx context.Context, db *sql.DB, key Key, effect func(ctx context.Context, tx *sql.Tx) error) (Result, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("apply %s: %w", key, err)
	}
	defer tx.Rollback() // after Commit it does nothing

	result, err := in.Apply(ctx, tx, key, func(ctx context.Context) error { return effect(ctx, tx) })
	if err != nil {
		return "", err
	}
	if err := tx.Commit(); err != nil {
		return "", fmt.Errorf("apply %s: commit: %w", key, err)
	}
	return result, nil
}

// Receipt says that a consumer has applied a message.
type Receipt struct {
	Consumer string    `json:"consumer"`
	At       time.Time `json:"at"` // by the database's clock, in UTC
}

// Receipts lists who has applied the message with the given dedup key, which is the event id for what Postrider
// published, earliest first.
func (in *Inbox) Receipts(ctx context.Context, db *sql.DB, dedupKey string) ([]Receipt, error) {
	receipts, err := readReceipts(db.QueryContext(ctx, in.findReceipts, dedupKey))
	if err != nil {
		return nil, fmt.Errorf("read receipts from %s: %w", in.table, err)
	}
	return receipts, nil
}

func readReceipts(rows *sql.Rows, err error) ([]Receipt, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var receipts []Receipt
	for rows.Next() {
		var r Receipt
		var at string
		if err := rows.Scan(&r.Consumer, &at); err != nil {
			return nil, err
		}
		if r.At, err = time.Parse(time.DateTime, at); err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, rows.Err()
}
