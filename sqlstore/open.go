package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

var (
	_ relay.Store       = (*Store)(nil)
	_ relay.Tidier      = (*Store)(nil)
	_ relay.JobStepper  = (*Store)(nil)
	_ operator.JobStore = (*Store)(nil)
)

// Payload says how the payload column keeps its bytes.
type Payload string

// The kinds of payload columns. Both keep the exact bytes that were written.
const (
	PayloadJSON   Payload = "json"   // JSON text, which the database checks
	PayloadBinary Payload = "binary" // any bytes, such as Protobuf or Avro
)

// Config says which outbox a Store works on.
type Config struct {
	// Table is the outbox table, "name" or, where the database has schemas, "schema.name", in the spelling that
	// the database stores: it is quoted as it stands. Default "outbox_events". The side tables stand in the same
	// schema; see the package documentation for their names. With a Mapping, a name that has a dot in itself stands in
	// double quotes, the schema without them.
	Table string

	// Shards is the number of hash slots of keys that Init lays the table out for, 1 to 32767. Default 64. A
	// table that exists keeps its number.
	Shards int

	// Payload is the kind of payload column that Init creates, or, with a Mapping, what their payloads must be. Default
	// PayloadJSON.
	Payload Payload

	// DeletePublished makes Settle delete published events instead of keeping them as PUBLISHED. The database
	// then forgets their deduplication keys at once.
	DeletePublished bool

	// Mapping lays a table that somebody else designed out as the outbox. Default nil: Init creates the outbox table.
	Mapping *Mapping
}

// Store keeps an outbox in an SQL database. It implements relay.Store and operator.Store and is safe for
// concurrent use. It holds nothing that needs to be closed.
type Store struct {
	db      *sql.DB
	dialect Dialect
	config  Config
	names   names
	queries map[string]query
	floors  *floors
	flight  *flight
	tidied  tidied
	leases  atomic.Bool            // a relay works here that leases shards
	schema  atomic.Pointer[schema] // set once the tables were found to fit
	mapping *Mapping               // complete; nil for a table of ours
	theirs  atomic.Pointer[theirs] // set once their table was found to fit the mapping
}

// Open returns a Store for the outbox that config names. It does not connect; Init creates the tables. The caller
// owns db and closes it after the Store was last used.
func Open(db *sql.DB, d Dialect, config Config) (*Store, error) {
	if config.Table == "" {
		config.Table = "outbox_events"
	}
	if config.Shards == 0 {
		config.Shards = 64
	}
	if config.Payload == "" {
		config.Payload = PayloadJSON
	}
	names, nameErr := newNames(d, config.Table, config.Mapping != nil)
	err := errors.Join(nameErr, config.check())
	s := &Store{db: db, dialect: d, config: config, names: names, floors: newFloors(), flight: newFlight()}
	if config.Mapping != nil {
		err = errors.Join(err, s.mapTable(*config.Mapping))
	}
	if err != nil {
		return nil, fmt.Errorf("open outbox %q: %w", config.Table, err)
	}
	if s.queries, err = s.loadQueries(); err != nil {
		return nil, err
	}
	return s, nil
}

func (c Config) check() error {
	var errs []error
	if c.Shards < 1 || c.Shards > 32767 {
		errs = append(errs, fmt.Errorf("shards is %d; it must be 1 to 32767", c.Shards))
	}
	if c.Payload != PayloadJSON && c.Payload != PayloadBinary {
		errs = append(errs, fmt.Errorf("payload is %q; it must be %q or %q", c.Payload, PayloadJSON, PayloadBinary))
	}
	return errors.Join(errs...)
}

// names are the quoted names of the outbox's tables.
type names struct {
	schema     string // as given, empty for the connection's own
	table      string // as given, without schema
	sideSchema string // of the side tables
	side       string // what the names of the side tables begin with
}

// maxTable leaves room for the longest suffix of an index or side table within PostgreSQL's 63 bytes.
const maxTable = 45

func newNames(d Dialect, table string, mapped bool) (names, error) {
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = "", table
	}
	if before, inner, ok := quotedName(table); ok && mapped && (before == "" || d.schemas) {
		return names{schema: before, table: inner, sideSchema: before, side: sideName(strings.ReplaceAll(inner, ".", "_"))}, nil
	}
	switch {
	case strings.ContainsAny(table, "\x00\r\n\"'`;{}") || name == "" || strings.Contains(name, ".") || qualified && schema == "":
		return names{}, errors.New(`the table must be "name" or "schema.name"`)
	case qualified && !d.schemas:
		return names{}, fmt.Errorf("%s has no schemas; name the table without one", d.name)
	case len(name) > maxTable && !mapped:
		return names{}, fmt.Errorf("the table's name has %d bytes; no more than %d fit, because the names of its indexes begin with it", len(name), maxTable)
	}
	return names{schema: schema, table: name, sideSchema: schema, side: sideName(name)}, nil
}

// quotedName is the name that stands in double quotes, and the schema before it.
func quotedName(table string) (schema, name string, ok bool) {
	schema, inner, begins := strings.Cut(table, `"`)
	inner, ends := strings.CutSuffix(inner, `"`)
	schema, qualified := strings.CutSuffix(schema, ".")
	return schema, inner, begins && ends && isName(inner) && qualified == isName(schema) && !strings.Contains(schema, ".")
}

// sideName is what the names of the side tables begin with. Only that of a mapped table may be too long.
func sideName(table string) string {
	if table == "outbox_events" {
		return "outbox"
	}
	return strings.ToValidUTF8(table[:min(len(table), maxTable)], "")
}

// quoteName quotes a name with its qualifiers; empty parts are left out. newNames has refused names that hold quotes.
func quoteName(parts ...string) string {
	var quoted []string
	for _, part := range parts {
		if part != "" {
			quoted = append(quoted, `"`+part+`"`)
		}
	}
	return strings.Join(quoted, ".")
}
