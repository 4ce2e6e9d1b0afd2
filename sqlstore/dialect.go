package sqlstore

import (
	"database/sql"
	"embed"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

//go:embed postgres sqlite mysql
var files embed.FS

// Dialect is what a Store needs to know of a database beside its .sql files.
type Dialect struct {
	name        string            // its folder of .sql files
	schemas     bool              // tables can be qualified by a schema
	quote       string            // stands around names
	mark        string            // what stands before the number of a statement's parameter
	positional  bool              // the driver takes ? for every parameter, in the order in which they stand
	words       map[string]string // more {tokens} of its .sql files
	payload     map[Payload]payloadColumn
	indexes     func(migration string) map[string]string // the statements that create its indexes, by name
	states      map[postrider.State]string               // conditions on indexed columns that tell a state, where status itself does not
	isolation   sql.IsolationLevel                       // of transactions
	beforeWrite string                                   // is executed before a writing statement that commits by itself
	stepwise    bool                                     // every statement of a migration commits by itself
	phrases     func(json string) phrases                // for mapped tables; nil when there can be none
	classify    func(error) error                        // the cause that an error of the driver stands for, or nil
}

// payloadColumn is the type of a payload column, and the constraint on it where the type checks nothing.
type payloadColumn struct{ kind, check string }

// createdIndexes finds the CREATE INDEX statements of a migration. words stand for INDEX where producers are at work.
func createdIndexes(migration, words string) map[string]string {
	statements := make(map[string]string)
	for _, found := range createIndex.FindAllStringSubmatch(migration, -1) {
		statements[found[2]] = strings.Replace(found[0], "INDEX", words, 1)
	}
	return statements
}

var createIndex = regexp.MustCompile(`CREATE (UNIQUE )?INDEX "([^"]+)" [^;]+;`)

// Postgres is PostgreSQL 13 or newer, through any driver whose errors have SQLState() string, such as pgx.
var Postgres = Dialect{
	name:    "postgres",
	schemas: true,
	quote:   `"`,
	mark:    "$",
	payload: map[Payload]payloadColumn{
		PayloadJSON:   {kind: "json"},
		PayloadBinary: {kind: "bytea"},
	},
	indexes:  func(migration string) map[string]string { return createdIndexes(migration, "INDEX CONCURRENTLY") },
	phrases:  func(json string) phrases { return postgresPhrases{json} },
	classify: classifyState,
}

// SQLite is SQLite 3.38 or newer. See SQLiteDSN for how it is to be opened.
var SQLite = Dialect{
	name:  "sqlite",
	quote: `"`,
	mark:  "?",
	payload: map[Payload]payloadColumn{
		PayloadJSON:   {kind: "text", check: "CONSTRAINT payload_is_json_text CHECK (typeof(payload) = 'text' AND json_valid(payload))"},
		PayloadBinary: {kind: "blob"},
	},
	indexes:  func(migration string) map[string]string { return createdIndexes(migration, "INDEX") },
	classify: classifySQLite,
}

// String returns the name of the database.
func (d Dialect) String() string { return d.name }

func (d Dialect) parameter(n int) string { return d.mark + strconv.Itoa(n) }

func (d Dialect) quoteName(parts ...string) string {
	return strings.ReplaceAll(quoteName(parts...), `"`, d.quote)
}

// bind returns a statement and those of the arguments that it takes, as the driver wants them: settings take none.
func (d Dialect) bind(statement string, args []any) (string, []any) {
	if !d.positional {
		if !strings.Contains(statement, d.parameter(1)) {
			return statement, nil
		}
		return statement, args
	}
	var taken []any
	statement = numbered.ReplaceAllStringFunc(statement, func(mark string) string {
		if mark[0] != ':' {
			return mark
		}
		n, _ := strconv.Atoi(mark[1:])
		taken = append(taken, args[n-1])
		return "?"
	})
	return statement, taken
}

// numbered finds parameters, and what is quoted, in which there are none.
var numbered = regexp.MustCompile("'[^']*'|\"[^\"]*\"|`[^`]*`|:[0-9]+")

// PostgresDSN is dsn, in either of its forms, with the setting that a Store needs from pgx, unless it has one already:
// default_query_exec_mode=cache_describe. With it PostgreSQL plans every statement for the table as it is now. By
// default pgx prepares statements once, and a plan that was made while the outbox was nearly empty scans the whole
// table for every event when a backlog grows, until the table is next analyzed. Without such a setting, as with other
// drivers, plan_cache_mode=force_custom_plan does the same. The setting also suits transaction poolers.
func PostgresDSN(dsn string) string {
	const setting = "default_query_exec_mode"
	switch {
	case strings.Contains(dsn, setting):
		return dsn
	case !strings.Contains(dsn, "://"):
		return dsn + " " + setting + "=cache_describe"
	case strings.Contains(dsn, "?"):
		return dsn + "&" + setting + "=cache_describe"
	default:
		return dsn + "?" + setting + "=cache_describe"
	}
}

// SQLiteDSN is the data source name for modernc.org/sqlite under which producers and relays share the database
// file at path: in WAL mode, so that reading does not wait for writing; waiting up to ten seconds for another
// writer; with every commit on disk before it returns; and taking the write lock when a transaction begins, so
// that one that reads first cannot be refused when it comes to write. Other drivers need the same settings.
func SQLiteDSN(path string) string {
	return "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
}

// classifyState tells by the SQLSTATE that PostgreSQL's errors carry.
func classifyState(err error) error {
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) {
		return classifyNetwork(err)
	}
	code := coded.SQLState()
	switch code {
	case "40001", "40P01", "55P03":
		return errBusy
	case "42P01", "42703", "3F000":
		return relay.ErrSchema
	case "42501", "3D000": // 3D000: there is no such database
		return ErrDenied
	case "53100":
		return ErrFull
	case "25006", "53300", "57P01", "57P02", "57P03":
		return ErrUnreachable
	}
	switch {
	case strings.HasPrefix(code, "08"):
		return ErrUnreachable
	case strings.HasPrefix(code, "28"):
		return ErrDenied
	}
	return nil
}

// classifySQLite tells by SQLite's own wording, which every driver passes on.
func classifySQLite(err error) error {
	text := err.Error()
	for _, known := range []struct {
		part  string
		cause error
	}{
		{"database is locked", errBusy},
		{"database table is locked", errBusy},
		{"database or disk is full", ErrFull},
		{"no such table", relay.ErrSchema},
		{"no such column", relay.ErrSchema},
		{"unable to open database file", ErrUnreachable},
		{"disk I/O error", ErrUnreachable},
		{"readonly database", ErrDenied},
	} {
		if strings.Contains(text, known.part) {
			return known.cause
		}
	}
	return nil
}
