package config

import (
	"regexp"
	"strings"

	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/sqlstore"
)

// Outbox says where the outbox table is.
type Outbox struct {
	// DSN addresses the database. It begins with postgres://, postgresql://,
	// mysql://, mongodb://, mongodb+srv:// or sqlite: ; mariadb:// in the file
	// has become mysql:// .
	DSN Secret
	// Database is the kind of database that the DSN's scheme names.
	Database Database
	// Table is the table's name, perhaps with its schema before a dot.
	// The default is outbox_events, or the table of the preset.
	Table string
	// Payload is the type of the payload column: whether it holds JSON. The
	// default is json.
	Payload Payload
	// Preset names what Mapping was before the file changed it; it may be
	// empty.
	Preset string
	// Mapping is nil for a table that postrider init creates, and with
	// MongoDB.
	Mapping *sqlstore.Mapping
	// Documents is the mapping of a collection of MongoDB; it is nil for one
	// that postrider init creates.
	Documents *mongo.Mapping
	// Destinations has the table of the outbox of a destination, by the name
	// of its sink, where the file gives one.
	Destinations map[string]string
}

// IsTheirs reports whether somebody else designed the table.
func (outbox Outbox) IsTheirs() bool { return outbox.Mapping != nil || outbox.Documents != nil }

// marksPublished reports whether a row can show that it was published.
func (outbox Outbox) marksPublished() bool {
	m := outbox.Mapping
	switch {
	case outbox.Documents != nil:
		return outbox.Documents.Words.Published != ""
	case m == nil:
		return true
	case m.Status != "":
		return m.Words.Published != ""
	default:
		return m.PublishedAt != ""
	}
}

// takesClaims reports whether a row can show which relay has claimed it.
func (outbox Outbox) takesClaims() bool {
	if d := outbox.Documents; d != nil {
		return d.ClaimToken != "" && d.ProcessingUntil != ""
	}
	m := outbox.Mapping
	return m == nil || m.ClaimToken != "" && m.ProcessingUntil != "" && m.Words.Processing != ""
}

// Database is a kind of database.
type Database string

// The kinds of database; MariaDB counts as MySQL.
const (
	Postgres Database = "postgres"
	MySQL    Database = "mysql"
	MongoDB  Database = "mongodb"
	SQLite   Database = "sqlite"
)

// Payload is a type of the payload column.
type Payload string

// The types of the payload column.
const (
	PayloadJSON   Payload = "json"
	PayloadBinary Payload = "binary"
)

var databaseOfScheme = map[string]Database{
	"postgres": Postgres, "postgresql": Postgres,
	"mysql": MySQL, "mariadb": MySQL,
	"mongodb": MongoDB, "mongodb+srv": MongoDB,
}

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func readOutbox(v value) Outbox {
	outbox := Outbox{Table: "outbox_events", Payload: PayloadJSON}
	v.object(func(o *object) {
		readDSN(o, &outbox)
		strAs(o, "table", &outbox.Table, parseTable)
		choice(o, "payload", &outbox.Payload, PayloadJSON, PayloadBinary)
		if outbox.Database == MongoDB && o.has("payload") {
			o.problem("payload", "means nothing with MongoDB, where each event says it by its type", "remove it")
		}
		readMapping(o, &outbox)
		outbox.Destinations = readDestinations(o.field("destinations"))
	})
	return outbox
}

func parseTable(text string) (string, *mistake) {
	if !tableName.MatchString(text) {
		return "", &mistake{"is no table name", "write name or schema.name, with letters, digits and _"}
	}
	return text, nil
}

func readDSN(o *object, outbox *Outbox) {
	o.require("dsn", "write dsn: ${DATABASE_URL}, or the address itself")
	outbox.DSN, outbox.Database = readAddress(o)
}

// readAddress reads the field dsn. The database is empty when there is none that can be used.
func readAddress(o *object) (dsn Secret, database Database) {
	if !str(o, "dsn", &dsn) {
		return "", ""
	}
	database = databaseOf(dsn.Reveal())
	switch database {
	case "":
		o.problem("dsn", "is no address of a database", "write postgres://user:password@host:5432/db, mysql://..., mongodb://..., or sqlite:FILE")
	case MySQL:
		_, rest, _ := strings.Cut(dsn.Reveal(), "://")
		dsn = Secret("mysql://" + rest)
		if _, err := sqlstore.MySQLDSN(dsn.Reveal()); err != nil {
			o.problem("dsn", "cannot be used: "+err.Error(), "in a password write @ as %40, : as %3A and / as %2F")
		}
	}
	return dsn, database
}

// databaseOf gives the kind of database that a DSN addresses, or nothing.
func databaseOf(dsn string) Database {
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok && strings.Trim(file, "/") != "" {
		return SQLite
	}
	scheme, rest, _ := strings.Cut(dsn, "://")
	if rest == "" {
		return ""
	}
	return databaseOfScheme[scheme]
}
