package postrider

import (
	"database/sql"
	"embed"
	"strings"
)

// Dialect names the database that holds a table. It has no default.
type Dialect string

// The dialects. SQLite is version 3.38 or newer, and 3.41 or newer for binary payloads. MySQL is MySQL 8.0.19 or newer and
// MariaDB 10.6 or newer.
const (
	PostgreSQL Dialect = "postgresql"
	SQLite     Dialect = "sqlite"
	MySQL      Dialect = "mysql"
)

//go:embed sql
var statements embed.FS

// traits are what an Outbox needs to know of a dialect beside its statement.
type traits struct {
	quote       string                          // stands around names
	json, hex   string                          // make the value of the payload column out of its text in the parameter
	onConflict  string                          // makes the statement drop a row whose dedup key is there already
	returning   string                          // makes it return the ids of the rows that it wrote; empty where it cannot
	textHeaders bool                            // headers come as the text of their JSON, which the database would write anew
	maxBytes    int                             // bounds the parameter of one statement
	written     func(sql.Result) (int64, error) // how many rows it wrote
}

var dialects = map[Dialect]traits{
	PostgreSQL: {
		quote:      `"`,
		json:       "payload::json",
		hex:        "decode(payload, 'hex')",
		onConflict: onConflict,
		returning:  returning,
		maxBytes:   maxBytes,
		written:    sql.Result.RowsAffected,
	},
	SQLite: {
		quote:      `"`,
		json:       "value ->> 'payload'",
		hex:        "unhex(value ->> 'payload')",
		onConflict: onConflict,
		returning:  returning,
		maxBytes:   maxBytes,
		written:    sql.Result.RowsAffected,
	},
	MySQL: {
		quote:       "`",
		json:        "event.payload",
		hex:         "unhex(event.payload)",
		onConflict:  onDuplicateKey,
		textHeaders: true,
		maxBytes:    maxBytes / 2, // MariaDB takes 16 MiB with everything else, unless it is set up for more
		written:     writtenByID,
	},
}

// Clauses that follow the statement of a dialect.
const (
	onConflict = "ON CONFLICT (dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING\n"
	returning  = "RETURNING event_id\n"

	// MySQL does not say which unique key a row has met. One that has met another event's id, and no dedup key, must fail:
	// no event_id can be NULL. The id that is reported for a dropped row is 0.
	onDuplicateKey = "ON DUPLICATE KEY UPDATE event_id = IF({events}.dedup_key = event.dedup_key, {events}.event_id, NULL), " +
		"id = {events}.id + last_insert_id(0)\n"
)

// writtenByID tells a dropped row by its id. Its count of rows may be 1: the driver's clientFoundRows makes it so.
func writtenByID(result sql.Result) (int64, error) {
	if id, err := result.LastInsertId(); id == 0 || err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// insertStatement returns the statement that writes events to table, whose name is quoted, without and with the clause
// that drops duplicates.
func insertStatement(dialect Dialect, table string, binary bool) (insert, insertNew string) {
	text, err := statements.ReadFile("sql/" + string(dialect) + ".sql")
	if err != nil {
		panic(err) // each dialect has its file
	}
	t := dialects[dialect]
	payload := t.json
	if binary {
		payload = t.hex
	}
	fill := strings.NewReplacer("{events}", table, "{payload}", payload)
	return fill.Replace(string(text)), fill.Replace(string(text) + t.onConflict)
}
