package config

import (
	"regexp"
	"strings"
)

// Outbox says where the outbox table is.
type Outbox struct {
	// DSN addresses the database. It begins with postgres://, postgresql://,
	// mysql://, mariadb://, mongodb://, mongodb+srv:// or sqlite: .
	DSN Secret
	// Database is the kind of database that the DSN's scheme names.
	Database Database
	// Table is the table's name, perhaps with its schema before a dot.
	// The default is outbox_events.
	Table string
	// Payload is the type of the payload column. The default is json.
	Payload Payload
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
		o.require("dsn", "write dsn: ${DATABASE_URL}, or the address itself")
		if str(o, "dsn", &outbox.DSN) {
			outbox.Database = databaseOf(outbox.DSN.Reveal())
			if outbox.Database == "" {
				o.problem("dsn", "is no address of a database", "write postgres://user:password@host:5432/db, mysql://..., mongodb://..., or sqlite:FILE")
			}
		}
		strAs(o, "table", &outbox.Table, func(text string) (string, *mistake) {
			if !tableName.MatchString(text) {
				return "", &mistake{"is no table name", "write name or schema.name, with letters, digits and _"}
			}
			return text, nil
		})
		choice(o, "payload", &outbox.Payload, PayloadJSON, PayloadBinary)
		o.refuse("preset", "the table must be one that postrider init creates")
		o.refuse("columns", "the table must be one that postrider init creates")
	})
	return outbox
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
