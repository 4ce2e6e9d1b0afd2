package inbox

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/ident"
)

// DefaultTable is the table of receipts unless another one is named.
const DefaultTable = "inbox_receipts"

//go:embed postgresql sqlite mysql
var files embed.FS

// traits are what differs between the databases, beside their statements.
type traits struct {
	quote   string // stands around names
	receipt string // an expression for a receipt as parseReceipt reads it

	// counts says that the statement that writes receipts returns only a count, and that another one tells which it met.
	counts bool
}

var dialects = map[postrider.Dialect]traits{
	postrider.PostgreSQL: {quote: `"`, receipt: `json_build_array(consumer, dedup_key, event_id, source,
  to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), duplicates,
  to_char(last_duplicate_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'))::text`},
	postrider.SQLite: {quote: `"`, receipt: `json_array(consumer, dedup_key, event_id, source, applied_at, duplicates, last_duplicate_at)`},
	postrider.MySQL: {quote: "`", counts: true, receipt: `json_array(consumer, dedup_key, event_id, source,
  date_format(applied_at, '%Y-%m-%d %H:%i:%s.%f'), duplicates, date_format(last_duplicate_at, '%Y-%m-%d %H:%i:%s.%f'))`},
}

// mysqlExact is the collation that compares texts by their exact characters, in MySQL and in MariaDB.
const mysqlExact = "COLLATE /*!80019 utf8mb4_0900_bin */ /*M!100600 utf8mb4_nopad_bin */"

// Tables are the tables of an inbox, with the receipts of any number of consumers: what people and tools look at. They hold
// no connection and are safe for concurrent use. An Inbox has them as well.
type Tables struct {
	dialect postrider.Dialect
	traits  traits
	name    string // of the table of receipts, quoted
	fill    *strings.Replacer
}

// NewTables returns the tables around the table of receipts with the given name, which may have its schema before a dot;
// empty for DefaultTable. Beside inbox_receipts stand inbox_consumers and inbox_audit; other names get the endings
// _consumers and _audit, in the place of _receipts where they end so. It does not talk to a database.
func NewTables(dialect postrider.Dialect, receipts string) (*Tables, error) {
	if receipts == "" {
		receipts = DefaultTable
	}
	t, known := dialects[dialect]
	if !known {
		return nil, fmt.Errorf("Dialect is %q: it must be %q, %q or %q", dialect, postrider.PostgreSQL, postrider.SQLite, postrider.MySQL)
	}
	schema, name := "", receipts
	if i := strings.LastIndexByte(receipts, '.'); i >= 0 {
		schema, name = receipts[:i+1], receipts[i+1:]
	}
	stem, indexSchema := strings.TrimSuffix(name, "_receipts"), ""
	if dialect == postrider.SQLite {
		indexSchema = schema // elsewhere an index is in the schema of its table anyway
	}
	pairs := []string{"{receipt}", t.receipt, "{exact}", mysqlExact}
	for _, named := range []struct{ token, name string }{
		{"{receipts}", receipts}, {"{receipts_name}", name},
		{"{consumers}", schema + stem + "_consumers"}, {"{audit}", schema + stem + "_audit"},
		{"{applied_index}", indexSchema + name + "_applied"}, {"{event_index}", indexSchema + name + "_event"},
	} {
		quoted, err := ident.QuoteTable(named.name, t.quote)
		if err != nil {
			return nil, fmt.Errorf("Table %w", err)
		}
		pairs = append(pairs, named.token, quoted)
	}
	fill := strings.NewReplacer(pairs...)
	return &Tables{dialect: dialect, traits: t, name: fill.Replace("{receipts}"), fill: fill}, nil
}

// statement returns the dialect's statement with that name.
func (t *Tables) statement(name string) string {
	text, err := files.ReadFile(string(t.dialect) + "/" + name + ".sql")
	if err != nil {
		panic(err) // each dialect has each statement
	}
	return t.fill.Replace(string(text))
}

// InitSQL is the SQL that creates the tables where they are missing, as a script for the database's own client or for a tool
// that runs migrations, which must run it in one transaction with PostgreSQL. Init does more for SQLite alone: there it adds
// the columns that tables of the first form lack.
func (t *Tables) InitSQL() string {
	if t.dialect == postrider.SQLite {
		return t.statement("init") + "\n" + t.statement("indexes")
	}
	return t.statement("init")
}

// Init creates the tables, or brings them up to this version. It may be called at any time, by several processes at the same
// time, and changes nothing when nothing is to be done.
func (t *Tables) Init(ctx context.Context, db *sql.DB) error {
	err := again(ctx, func() error {
		return t.inTx(ctx, db, func(tx *sql.Tx) error { return t.create(ctx, tx) })
	})
	if err != nil {
		return fmt.Errorf("create table %s and those beside it: %w", t.name, err)
	}
	return nil
}

func (t *Tables) create(ctx context.Context, tx *sql.Tx) error {
	if err := execute(ctx, tx, t.statement("init")); err != nil {
		return err
	}
	if t.dialect == postrider.SQLite {
		return t.upgradeSQLite(ctx, tx)
	}
	return nil
}

// upgradeSQLite adds columns, which SQLite cannot do only where they are missing.
func (t *Tables) upgradeSQLite(ctx context.Context, tx *sql.Tx) error {
	for _, column := range []string{"event_id text", "source text", "duplicates integer NOT NULL DEFAULT 0", "last_duplicate_at text"} {
		_, err := tx.ExecContext(ctx, t.fill.Replace("ALTER TABLE {receipts} ADD COLUMN "+column))
		if err != nil && !strings.Contains(err.Error(), "duplicate column name") {
			return err
		}
	}
	return execute(ctx, tx, t.statement("indexes"))
}

// execute runs statements one by one: drivers take no more than one.
func execute(ctx context.Context, tx *sql.Tx, script string) error {
	for statement := range strings.SplitSeq(script, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Receipts lists who has applied an event, or a message with the given dedup key, earliest first.
func (t *Tables) Receipts(ctx context.Context, db *sql.DB, eventID string) ([]Receipt, error) {
	args := []any{eventID}
	if t.traits.counts {
		args = append(args, eventID) // its parameters have no numbers
	}
	receipts, err := t.readReceipts(ctx, queryOf(db), t.statement("find"), args...)
	if err != nil {
		return nil, t.fail("read receipts from", err)
	}
	return receipts, nil
}

func (t *Tables) readReceipts(ctx context.Context, query queryFunc, statement string, args ...any) ([]Receipt, error) {
	texts, err := query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	receipts := make([]Receipt, len(texts))
	for i, text := range texts {
		if receipts[i], err = parseReceipt(text); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// ErrNoTables says that the tables of the inbox do not exist.
var ErrNoTables = errors.New("the tables of the inbox do not exist: Init, or postrider inbox init, creates them")

// fail describes an error of the database.
func (t *Tables) fail(what string, err error) error {
	switch {
	case missesTable(err):
		err = fmt.Errorf("%w (%w)", ErrNoTables, err)
	case missesColumn(err):
		err = fmt.Errorf("the table is of an older version: Init, or postrider inbox init, adds what it lacks (%w)", err)
	}
	return fmt.Errorf("%s %s: %w", what, t.name, err)
}
