package postrider

import (
	"context"
	"errors"
	"fmt"

	"github.com/postrider/postrider/internal/ident"
)

// DefaultTable is the outbox table unless Config.Table says otherwise.
const DefaultTable = "outbox_events"

// Config says where an Outbox writes. Dialect must be set; every other zero value means the default that its comment
// gives.
type Config struct {
	Dialect Dialect

	// Table is the outbox table, with or without its schema; default DefaultTable. It is quoted in statements, so
	// upper and lower case count.
	Table string

	// Binary says that the payload column holds bytes (postrider init --payload binary) and not JSON.
	Binary bool

	// MaxPayload bounds a payload, in bytes; default DefaultMaxPayload.
	MaxPayload int

	// Trace, when set, is called once by each Add for headers such as traceparent and tracestate, which events
	// get that do not have them already. An OpenTelemetry propagator's Inject fills such a map.
	Trace func(ctx context.Context) map[string]string

	// Validate, when set, is called with each event that is otherwise fit to be added, as it would be written, and
	// says what is wrong with it: package contract has it for the payloads of event types. Its error becomes EventErrors: an
	// *EventError, and each of EventErrors and of joined errors, is one, with the index of the event; any other is one about
	// the payload. The error should not tell values of the payload: errors end in logs. It may be called concurrently.
	Validate func(Event) error
}

// Outbox adds events to one outbox table. It holds no connection and starts no goroutine, needs no closing, and is
// safe for concurrent use.
type Outbox struct {
	traits    traits
	table     string // quoted
	insert    string // statement
	insertNew string // statement that drops rows with a dedup key that is there already
	rules     rules
}

// New returns the Outbox that cfg describes, or an error with every mistake in cfg. It does not talk to a database.
func New(cfg Config) (*Outbox, error) {
	if cfg.Table == "" {
		cfg.Table = DefaultTable
	}
	var mistakes []error
	traits, known := dialects[cfg.Dialect]
	if !known {
		mistakes = append(mistakes, fmt.Errorf("Dialect is %q: it must be %q, %q or %q", cfg.Dialect, PostgreSQL, SQLite, MySQL))
	}
	table, err := ident.QuoteTable(cfg.Table, traits.quote)
	if err != nil {
		mistakes = append(mistakes, fmt.Errorf("Table %w", err))
	}
	rules, err := cfg.rules()
	if err != nil {
		mistakes = append(mistakes, err)
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("outbox configuration: %w", errors.Join(mistakes...))
	}
	insert, insertNew := insertStatement(cfg.Dialect, table, cfg.Binary)
	return &Outbox{traits: traits, table: table, insert: insert, insertNew: insertNew, rules: rules}, nil
}

// Add writes events to the outbox table within tx and tells what became of each, in their order, which is also
// their outbox order. They are published once tx has committed, and never if it rolls back. Add blocks while the
// database executes; with dedup keys also while another transaction that added one of the same keys is open.
//
// It returns a *TxError when tx is no transaction, and EventErrors when events are not fit to be added; then nothing
// was written. After any other error part of the events may have been written: roll back.
func (o *Outbox) Add(ctx context.Context, tx Tx, events ...Event) ([]Added, error) {
	added, err := o.add(ctx, tx, events)
	if err != nil {
		return nil, fmt.Errorf("add events to %s: %w", o.table, err)
	}
	return added, nil
}

// AddNew is Add for callers who need not know which events were dropped because their dedup key was there already. A database that
// cannot tell, which MySQL is, then takes them all in one statement, where Add needs one for each.
func (o *Outbox) AddNew(ctx context.Context, tx Tx, events ...Event) error {
	if err := o.addNew(ctx, tx, events); err != nil {
		return fmt.Errorf("add events to %s: %w", o.table, err)
	}
	return nil
}

func (o *Outbox) addNew(ctx context.Context, tx Tx, events []Event) error {
	tx, err := usable(tx)
	if err != nil {
		return err
	}
	rows, err := o.rows(ctx, events)
	if err != nil {
		return err
	}
	for chunk := range chunks(rows, o.traits.maxBytes, true) {
		if !deduped(chunk) {
			_, err = o.execute(ctx, tx, o.insert, chunk)
		} else {
			_, err = tx.ExecContext(ctx, o.insertNew, parameter(chunk))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *Outbox) add(ctx context.Context, tx Tx, events []Event) ([]Added, error) {
	tx, err := usable(tx)
	if err != nil {
		return nil, err
	}
	rows, err := o.rows(ctx, events)
	if err != nil {
		return nil, err
	}
	added := make([]Added, 0, len(rows))
	var query queryFunc
	if o.traits.returning != "" {
		query = queryStrings(tx)
	}
	for chunk := range chunks(rows, o.traits.maxBytes, query != nil) {
		some, err := o.write(ctx, tx, query, chunk)
		if err != nil {
			return nil, err
		}
		added = append(added, some...)
	}
	return added, nil
}

// rows checks all events before it makes rows of them.
func (o *Outbox) rows(ctx context.Context, events []Event) ([]row, error) {
	prepared, err := o.rules.prepare(ctx, events)
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(prepared))
	for i := range prepared {
		rows[i] = o.row(&prepared[i])
	}
	return rows, nil
}

// write writes rows with one statement. Without dedup keys it needs no privilege but INSERT.
func (o *Outbox) write(ctx context.Context, tx Tx, query queryFunc, rows []row) ([]Added, error) {
	if !deduped(rows) {
		return o.execute(ctx, tx, o.insert, rows)
	}
	if query == nil {
		return o.execute(ctx, tx, o.insertNew, rows)
	}
	ids, err := query(ctx, o.insertNew+o.traits.returning, parameter(rows))
	if err != nil {
		return nil, err
	}
	return confirm(rows, ids)
}

// execute tells by the count of rows written what became of them: all were, or the only one was not.
func (o *Outbox) execute(ctx context.Context, tx Tx, statement string, rows []row) ([]Added, error) {
	result, err := tx.ExecContext(ctx, statement, parameter(rows))
	if err != nil {
		return nil, err
	}
	n, err := o.traits.written(result)
	if err != nil {
		return nil, err
	}
	if n == int64(len(rows)) {
		return confirm(rows, eventIDs(rows))
	}
	return confirm(rows, nil)
}

// confirm tells what became of rows when the rows with the ids in written are in the table. Only a row with a dedup
// key may be missing.
func confirm(rows []row, written []string) ([]Added, error) {
	isWritten := make(map[string]bool, len(written))
	for _, id := range written {
		isWritten[id] = true
	}
	added := make([]Added, len(rows))
	for i, r := range rows {
		switch {
		case isWritten[r.eventID]:
			added[i].EventID = r.eventID
		case r.deduped:
			added[i].Dropped = true
		default:
			return nil, errors.New("the database did not write every event: a trigger, rule or policy of the table keeps rows out")
		}
	}
	return added, nil
}
