package postrider

import (
	"embed"
	"strings"
)

// Dialect names the database that holds a table. It has no default.
type Dialect string

// The dialects. SQLite is version 3.38 or newer, and 3.41 or newer for binary payloads.
const (
	PostgreSQL Dialect = "postgresql"
	SQLite     Dialect = "sqlite"
)

//go:embed sql
var statements embed.FS

// payloadExpressions make the value of the payload column out of its text in the parameter.
var payloadExpressions = map[Dialect]struct{ json, hex string }{
	PostgreSQL: {json: "payload::json", hex: "decode(payload, 'hex')"},
	SQLite:     {json: "value ->> 'payload'", hex: "unhex(value ->> 'payload')"},
}

// Clauses that follow the statement of a dialect.
const (
	onConflict = "ON CONFLICT (dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING\n"
	returning  = "RETURNING event_id\n"
)

// insertStatement returns the statement that writes events to table, whose name is quoted.
func insertStatement(dialect Dialect, table string, binary bool) string {
	text, err := statements.ReadFile("sql/" + string(dialect) + ".sql")
	if err != nil {
		panic(err) // each dialect has its file
	}
	payload := payloadExpressions[dialect].json
	if binary {
		payload = payloadExpressions[dialect].hex
	}
	return strings.NewReplacer("{events}", table, "{payload}", payload).Replace(string(text))
}
