// Package parking keeps the messages of parked keys in a table of the consumer's own database: PostgreSQL, MySQL, MariaDB or
// SQLite. See consumer.RetryPark for what parking is.
//
// # Order
//
// A key has a row while it is parked, and everything that changes what is parked of it locks that row first. A message that comes
// for a parked key is inserted under the lock, behind the others; the row is deleted under the lock as well, and only when
// no message is left. So a message either stands behind all earlier ones of its key, and is applied after them, or finds no row, and then
// all earlier ones have been applied. This takes that the messages of a key come to one process at a time, as the partitions of a
// broker see to; where a broker hands the messages of a key to several consumers at once there is no order to keep.
//
// # Several processes
//
// Each takes the keys that are due with a claim, of a token and a time. While the handler runs no transaction is open. What was
// applied is removed only under the token of the claim: a process whose claim has run out, and whose key another one has taken, removes
// nothing. Both may have applied the same message, which the receipts of package inbox make one effect. Times are those of the
// database's clock.
//
// # People
//
// List and Show tell what is parked, Retry and RetryAll have it tried at once, and GiveUp says that a message is not to be applied; so does
// the command postrider inbox parked. None of them moves a message: who applies and who ends it is always its consumer.
package parking

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/ident"
)

// DefaultTable is the table of parked messages unless Config.Table says otherwise. Beside it stands one with the ending _keys.
const DefaultTable = "inbox_parked"

//go:embed postgresql sqlite mysql
var files embed.FS

// Config says where messages are parked. Dialect must be set.
type Config struct {
	Dialect postrider.Dialect
	Table   string // with or without its schema; default DefaultTable; quoted in statements, so upper and lower case count

	// Receipts is the table of receipts as inbox.Config.Table has it: GiveUp writes to the audit table beside it. Default
	// inbox.DefaultTable. It must be in the same database; Init does not create it.
	Receipts string
}

// Table keeps parked messages, of any number of consumers. It starts no goroutine, needs no closing, and is safe for
// concurrent use. It is a consumer.Parking.
type Table struct {
	db      *sql.DB
	dialect postrider.Dialect
	name    string
	texts   map[string]string
	options *sql.TxOptions
}

var _ consumer.Parking = (*Table)(nil)

// mysqlExact is the collation that compares texts by their exact characters, in MySQL and in MariaDB.
const mysqlExact = "COLLATE /*!80019 utf8mb4_0900_bin */ /*M!100600 utf8mb4_nopad_bin */"

var names = []string{
	"init", "find", "park", "lock", "lock_claim", "insert", "due", "claim", "release", "key", "messages", "remove", "rejoin",
	"list", "message", "retry", "retry_all", "give_up", "audit",
}

// New returns the table that cfg describes, in db, or an error with every mistake in cfg. It does not talk to the database.
func New(db *sql.DB, cfg Config) (*Table, error) {
	if cfg.Table == "" {
		cfg.Table = DefaultTable
	}
	if cfg.Receipts == "" {
		cfg.Receipts = inbox.DefaultTable
	}
	var mistakes []error
	if db == nil {
		mistakes = append(mistakes, errors.New("the database is missing"))
	}
	quote := `"`
	options := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	switch cfg.Dialect {
	case postrider.PostgreSQL:
	case postrider.MySQL:
		quote = "`"
	case postrider.SQLite:
		options = nil
	default:
		mistakes = append(mistakes, fmt.Errorf("Dialect is %q: it must be %q, %q or %q", cfg.Dialect, postrider.PostgreSQL, postrider.SQLite, postrider.MySQL))
	}
	schema, name := "", cfg.Table
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		schema, name = name[:i+1], name[i+1:]
	}
	indexSchema := "" // elsewhere an index is in the schema of its table anyway
	if cfg.Dialect == postrider.SQLite {
		indexSchema = schema
	}
	pairs := []string{"{exact}", mysqlExact}
	for word, full := range map[string]string{
		"{parked}": cfg.Table, "{parked_name}": name, "{keys}": cfg.Table + "_keys", "{keys_name}": name + "_keys", "{due_index}": indexSchema + name + "_due",
		"{order_index}": indexSchema + name + "_order", "{source_index}": indexSchema + name + "_source",
		"{audit}": strings.TrimSuffix(cfg.Receipts, "_receipts") + "_audit", // as inbox.NewTables names it
	} {
		quoted, err := ident.QuoteTable(full, quote)
		if err != nil {
			field := "Table"
			if word == "{audit}" {
				field = "Receipts"
			}
			mistakes = append(mistakes, fmt.Errorf("%s %w", field, err))
		}
		pairs = append(pairs, word, quoted)
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("parking configuration: %w", errors.Join(mistakes...))
	}
	t := &Table{db: db, dialect: cfg.Dialect, name: cfg.Table, options: options, texts: make(map[string]string)}
	fill := strings.NewReplacer(pairs...)
	for _, name := range names {
		text, err := files.ReadFile(string(cfg.Dialect) + "/" + name + ".sql")
		if err != nil {
			panic(err) // each dialect has each statement
		}
		t.texts[name] = fill.Replace(string(text))
	}
	return t, nil
}

// InitSQL is the SQL of Init, for the database's own client or for a tool that runs migrations, which must run it in one transaction with
// PostgreSQL.
func (t *Table) InitSQL() string { return t.texts["init"] }

// Init creates the tables unless they exist. It may be called by several processes at the same time.
func (t *Table) Init(ctx context.Context) error {
	statements := []string{t.texts["init"]}
	if t.dialect != postrider.PostgreSQL { // which runs them in one transaction, with its lock
		statements = strings.Split(t.texts["init"], ";\n")
	}
	for _, statement := range statements {
		if statement == "" { // after the last one
			continue
		}
		if _, err := t.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create table %s: %w", t.name, err)
		}
	}
	return nil
}

// Parked returns those of keys that are parked.
func (t *Table) Parked(ctx context.Context, name string, keys []string) ([]string, error) {
	byHash := make(map[string]string, len(keys))
	hashes := make([]string, len(keys))
	for i, key := range keys {
		hashes[i] = hashOf(key)
		byHash[hashes[i]] = key
	}
	list, err := json.Marshal(hashes)
	if err != nil {
		return nil, err
	}
	rows, err := t.db.QueryContext(ctx, t.texts["find"], name, string(list))
	if err != nil {
		return nil, t.failed("look for parked keys in", err)
	}
	defer rows.Close()
	var parked []string
	for rows.Next() {
		var hash string
		if err := rows.Scan(&hash); err != nil {
			return nil, t.failed("look for parked keys in", err)
		}
		parked = append(parked, byHash[hash])
	}
	return parked, t.failed("look for parked keys in", rows.Err())
}

// Park implements consumer.Parking.
func (t *Table) Park(ctx context.Context, name, key string, messages []inbox.Message, f consumer.ParkedFailure) error {
	return t.failed("store in", t.inTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, t.texts["park"], name, hashOf(key), []byte(key), f.After.Seconds(),
			f.Attempts, string(f.Class), f.Err, timeText(f.FirstAt))
		if err != nil {
			return err
		}
		return t.insert(ctx, tx, name, key, messages)
	}))
}

// Append implements consumer.Parking.
func (t *Table) Append(ctx context.Context, name, key string, messages []inbox.Message) (stored bool, err error) {
	err = t.inTx(ctx, func(tx *sql.Tx) error {
		stored, err = changes(tx.ExecContext(ctx, t.texts["lock"], name, hashOf(key)))
		if err != nil || !stored {
			return err
		}
		return t.insert(ctx, tx, name, key, messages)
	})
	return stored && err == nil, t.failed("store in", err)
}

func (t *Table) insert(ctx context.Context, tx *sql.Tx, name, key string, messages []inbox.Message) error {
	for _, m := range messages {
		text, err := envelopeOf(m)
		if err != nil {
			return err
		}
		payload := m.Payload
		if payload == nil {
			payload = []byte{}
		}
		if _, err := tx.ExecContext(ctx, t.texts["insert"], name, hashOf(key), sourceHash(m), text, payload); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
	}
	return nil
}

// Claim implements consumer.Parking.
func (t *Table) Claim(ctx context.Context, name string, lease time.Duration, limit int) (*consumer.ParkedKey, error) {
	k, err := t.claim(ctx, name, lease, limit)
	return k, t.failed("claim a parked key in", err)
}

func (t *Table) claim(ctx context.Context, name string, lease time.Duration, limit int) (*consumer.ParkedKey, error) {
	var hash string
	k := &consumer.ParkedKey{Consumer: name, Token: rand.Text()}
	for taken := false; !taken; { // until no other process is faster
		err := t.db.QueryRowContext(ctx, t.texts["due"], name).Scan(&hash)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if taken, err = changes(t.db.ExecContext(ctx, t.texts["claim"], k.Token, lease.Seconds(), name, hash)); err != nil {
			return nil, err
		}
	}
	var key []byte
	var class, firstAt string
	err := t.db.QueryRowContext(ctx, t.texts["key"], name, hash, k.Token).Scan(&key, &k.Failure.Attempts, &class, &k.Failure.Err,
		&k.Failure.LetterErr, &firstAt)
	if err != nil {
		return nil, err
	}
	k.Key, k.Failure.Class = string(key), inbox.Class(class)
	k.Failure.FirstAt, _ = time.Parse(time.RFC3339, firstAt) // one that is broken counts from now
	k.Messages, err = t.messages(ctx, name, hash, limit)
	return k, err
}

func (t *Table) messages(ctx context.Context, name, hash string, limit int) (messages []consumer.ParkedMessage, err error) {
	rows, err := t.db.QueryContext(ctx, t.texts["messages"], name, hash, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m consumer.ParkedMessage
		var text string
		var payload []byte // of which a driver may make nil when it is empty
		var by, reason sql.NullString
		if err := rows.Scan(&m.ID, &text, &payload, &by, &reason); err != nil {
			return nil, err
		}
		m.GivenUp = givenUp(by, reason)
		if m.Message, err = readEnvelope(text, append([]byte{}, payload...)); err != nil {
			return nil, fmt.Errorf("parked message %d: %w", m.ID, err)
		}
		messages = append(messages, m)
	}
	return messages, rows.Err()
}

// Settle implements consumer.Parking.
func (t *Table) Settle(ctx context.Context, k *consumer.ParkedKey, done int, next *consumer.ParkedFailure) (rejoined bool, err error) {
	hash := hashOf(k.Key)
	err = t.inTx(ctx, func(tx *sql.Tx) error {
		mine, err := changes(tx.ExecContext(ctx, t.texts["lock_claim"], k.Consumer, hash, k.Token))
		if err != nil {
			return err
		}
		if !mine {
			return consumer.ErrClaimLost
		}
		if done > 0 {
			if _, err := tx.ExecContext(ctx, t.texts["remove"], k.Consumer, hash, k.Messages[done-1].ID); err != nil {
				return err
			}
		}
		if rejoined, err = changes(tx.ExecContext(ctx, t.texts["rejoin"], k.Consumer, hash)); err != nil || rejoined {
			return err
		}
		if next == nil {
			next = &consumer.ParkedFailure{}
		}
		_, err = tx.ExecContext(ctx, t.texts["release"], next.After.Seconds(), next.Attempts, string(next.Class), next.Err,
			next.LetterErr, timeText(next.FirstAt), k.Consumer, hash)
		return err
	})
	return rejoined && err == nil, t.failed("settle in", err)
}

func (t *Table) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := t.db.BeginTx(ctx, t.options)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (t *Table) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if missesTable(err) {
		err = fmt.Errorf("%w (%w)", ErrNoTables, err)
	}
	return fmt.Errorf("%s %s: %w", what, t.name, err)
}

// ErrNoTables says that the tables of parked messages do not exist, or, for GiveUp, the audit table of the inbox.
var ErrNoTables = errors.New("a table does not exist: Init, or postrider inbox parked init, creates those of parked messages, and " +
	"postrider inbox init the audit table")

func missesTable(err error) bool {
	var postgres interface{ SQLState() string }
	return errors.As(err, &postgres) && postgres.SQLState() == "42P01" ||
		strings.Contains(err.Error(), "Error 1146 ") || strings.Contains(err.Error(), "no such table")
}

// changes says whether a statement changed a row.
func changes(result sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sourceHash tells a message that was delivered twice; nil when it cannot be told.
func sourceHash(m inbox.Message) *string {
	id := m.EventID()
	if id == "" {
		return nil
	}
	hash := hashOf(id + "\x00" + m.Coordinates)
	return &hash
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
