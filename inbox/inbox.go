// Package inbox lets a consumer apply each message once, although it may be delivered more often.
//
// # Guarantees
//
// The first thing that happens in a transaction is a receipt: a row for (consumer, dedup key). The effect of the
// message runs in the same transaction, so that both are there or neither. Where the receipt exists already the
// effect does not run, and the outcome is Duplicate, which is a success: acknowledge the message. The receipt counts
// its duplicates. Of several deliveries at the same time one applies the effect and the others wait for its outcome:
// when it rolled back, the next one applies it.
//
// # Duties of the caller
//
//   - Do in the effect only what rolls back with the transaction. A mail or a call to another service can happen twice.
//   - Return the errors of the statements of an effect. A deadlock that is hidden has rolled back the receipt, and in MySQL
//     what the effect does after it would be committed without.
//   - Acknowledge the message after Process has returned without an error, or after the transaction around Apply
//     has committed; never before.
//   - Keep receipts for longer than a message can be delivered again: Config.Window, and RunCleaner or Clean.
//
// # Which call
//
// Process applies one message in a transaction of its own, ProcessBatch many in one, and Handler is ProcessBatch for a
// consumer.Consumer. Apply works within a transaction that the caller has begun. All of them take a *sql.DB or its
// transactions; package postriderpgx has the same for pgx, and package mongo for MongoDB.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// DefaultWindow is how long receipts are kept unless Config.Window says otherwise.
const DefaultWindow = 14 * 24 * time.Hour

// Config says where an Inbox keeps its receipts. Dialect and Consumer must be set; every other zero value means the default
// that its comment gives.
type Config struct {
	Dialect postrider.Dialect

	// Table is the table of receipts, with or without its schema; default DefaultTable. It must be in the database
	// of the consumer's own data. It is quoted in statements, so upper and lower case count. See NewTables for the tables
	// beside it.
	Table string

	// Consumer says who applies: consumers with different names apply the same message each. It must be valid UTF-8
	// without control characters, of 1 to postrider.MaxField bytes.
	Consumer string

	// DedupKey returns what a message has in common with its duplicates; default Message.EventID. A business identity
	// (see BusinessKey) keeps two events that ask for the same from being applied both. It must give the same result whenever
	// it is called for a message, and looks at nothing but the message. An error of it is ClassMalformed unless it has a
	// class.
	DedupKey func(Message) (string, error)

	// Window is how long receipts are kept at least; default DefaultWindow, not less than a second. A message that is
	// delivered again after that is applied again, so it must be longer than the broker keeps messages, and than the age at which
	// anybody redrives them.
	Window time.Duration

	// Filter stands in front of the receipts for Process and ProcessBatch; default none. Duplicates that it finds are read and not
	// counted at their receipts, so transactions must not read what others have not committed, as none does by default. It pays
	// when messages are replayed in masses.
	Filter Filter
}

// Inbox applies the messages of one consumer. It holds no connection and starts no goroutine, needs no closing, and is safe
// for concurrent use.
type Inbox struct {
	*Tables
	identity
	receive, met string // statements
}

// New returns the Inbox that cfg describes, or an error with every mistake in cfg. It does not talk to a database.
func New(cfg Config) (*Inbox, error) {
	var mistakes []error
	tables, err := NewTables(cfg.Dialect, cfg.Table)
	if err != nil {
		mistakes = append(mistakes, err)
	}
	id, err := Rules{Consumer: cfg.Consumer, DedupKey: cfg.DedupKey, Window: cfg.Window, Filter: cfg.Filter}.identity()
	if err != nil {
		mistakes = append(mistakes, err)
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("inbox configuration: %w", errors.Join(mistakes...))
	}
	return &Inbox{Tables: tables, identity: id, receive: tables.statement("receive"), met: tables.statement("met")}, nil
}

// Apply runs effect within tx, the caller's transaction, unless the receipt for m exists. It blocks while another
// transaction applies the same. effect is to work within tx. tx must be able to query: *sql.Tx is, and so is each of those
// that postrider.Tx names.
//
// It returns a *postrider.TxError when tx is no transaction, a *KeyError when m has no key that is fit for a receipt, an
// error of ClassUnavailable when the receipt cannot be written, and the error of effect, wrapped. It is the Result's Err as
// well. After any error roll tx back: a commit could keep the receipt without the effect. With isolation levels above READ
// COMMITTED the database may refuse to let two apply the same at once; begin again then, as Process does.
func (in *Inbox) Apply(ctx context.Context, tx postrider.Tx, m Message, effect func(ctx context.Context) error) (Result, error) {
	e, err := in.entryOf(m)
	if err != nil {
		return failed(m, err)
	}
	usable, err := usable(tx)
	if err != nil {
		return failed(m, err)
	}
	result, err := in.apply(ctx, e, in.writerTo(usable), effect)
	if err != nil {
		return failed(m, classified(err))
	}
	return result, nil
}
