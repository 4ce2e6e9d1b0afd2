package sqlstore

import (
	"database/sql"
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// MySQL is MySQL 8.0.19 or newer and MariaDB 10.6 or newer, through github.com/go-sql-driver/mysql. See MySQLDSN for how it is
// to be opened. Where the two servers differ, comments that only one of them executes hold the words for each.
//
// A Store works in READ COMMITTED, whatever the server's default is: in REPEATABLE READ its locks would shut producers out.
// Every payload that is JSON may be nested as deep as the server checks it: 31 levels in MariaDB, 100 in MySQL.
var MySQL = Dialect{
	name:       "mysql",
	schemas:    true,
	quote:      "`",
	mark:       ":",
	positional: true,
	words: map[string]string{
		"exact":     mysqlExact,
		"invisible": "/*!80023 INVISIBLE */ /*M!100600 INVISIBLE */",
	},
	payload: map[Payload]payloadColumn{
		PayloadJSON:   {kind: "longtext", check: mysqlJSON},
		PayloadBinary: {kind: "longblob", check: "CHECK (payload IS NOT NULL)"},
	},
	indexes: inlineIndexes,
	states: map[postrider.State]string{
		postrider.StateDead:       "given_up = 'DEAD'",
		postrider.StateDiscarded:  "given_up = 'DISCARDED'",
		postrider.StateProcessing: "processing_due IS NOT NULL",
	},
	isolation:   sql.LevelReadCommitted,
	beforeWrite: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
	stepwise:    true,
	phrases:     func(string) phrases { return mysqlPhrases{} },
	classify:    classifyMySQL,
}

// mysqlExact is the collation that compares texts by their exact characters.
const mysqlExact = "COLLATE /*!80019 utf8mb4_0900_bin */ /*M!100600 utf8mb4_nopad_bin */"

// mysqlJSON lets pass what is JSON but more than the servers can hold: numbers with large exponents, and half of a surrogate
// pair as an escape, whose backslash is told as "no quote", because its meaning in a literal depends on sql_mode. The
// payload stays text, so they need not hold it.
const mysqlJSON = `CHECK (json_valid(payload) OR
    json_valid(regexp_replace(payload, '(?<=[0-9])[eE][+]?[0-9]{3,}|[^"]u[dD][89a-fA-F][0-9a-fA-F]{2}', '')))`

// MySQLDSN turns the address of a database, mysql://user:password@host:port/database, into the data source name of
// github.com/go-sql-driver/mysql under which producers and relays reach it. Reserved characters in user and password are
// percent-encoded. The query may hold parameters of the driver, such as tls=true. Unless it does, a connection is given up
// when it takes ten seconds to make or the server a minute to answer, and the server ends a connection of which it has
// heard nothing for a minute: a relay that is halted in the middle of a transaction must not hold locks for hours.
// Several statements in one are refused.
//
// The error never shows the address, which holds the password.
func MySQLDSN(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "mysql" || u.Hostname() == "" {
		return "", errors.New("the address must have the form mysql://user:password@host:port/database, with reserved characters percent-encoded")
	}
	database := strings.TrimPrefix(u.Path, "/")
	if database == "" || strings.Contains(database, "/") {
		return "", errors.New("the address must name one database: mysql://user:password@host:port/database")
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", errors.New("the parameters of the address cannot be read: they must have the form ?name=value&name=value")
	}
	if parameters.Has("multiStatements") {
		return "", errors.New("the address must not set multiStatements: Postrider never sends several statements in one")
	}
	for name, value := range map[string]string{"timeout": "10s", "readTimeout": "1m", "writeTimeout": "1m", "wait_timeout": "60"} {
		if !parameters.Has(name) {
			parameters.Set(name, value)
		}
	}
	user, password := u.User.Username(), ""
	if strings.Contains(user, ":") {
		return "", errors.New("the user in the address must not hold a colon: the driver cannot express it")
	}
	if given, ok := u.User.Password(); ok {
		password = ":" + given
	}
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	return user + password + "@tcp(" + net.JoinHostPort(u.Hostname(), port) + ")/" + url.PathEscape(database) + "?" + parameters.Encode(), nil
}

// inlineIndexes finds the indexes within CREATE TABLE statements.
func inlineIndexes(migration string) map[string]string {
	statements := make(map[string]string)
	for _, table := range createTable.FindAllStringSubmatch(migration, -1) {
		for _, index := range inlineIndex.FindAllStringSubmatch(table[2], -1) {
			statements[index[2]] = "ALTER TABLE " + table[1] + " ADD " + index[1] + ";"
		}
	}
	return statements
}

var (
	createTable = regexp.MustCompile("(?s)CREATE TABLE IF NOT EXISTS (\\S+) \\((.*?)\n\\) ENGINE")
	inlineIndex = regexp.MustCompile("(?m)^  ((?:UNIQUE )?INDEX `([^`]+)` \\([^)]+\\)),?$")
)

// isDone says that a statement of a migration fails because it was executed before, by an Init that was stopped.
func isDone(err error) bool {
	switch mysqlCode(err) {
	case 1060, 1061: // there is such a column, such an index
		return true
	}
	return false
}

// mysqlCode is the number of a server's error, which the driver writes as "Error 1213 (40001): ...", or 0.
func mysqlCode(err error) int {
	found := mysqlError.FindStringSubmatch(err.Error())
	if found == nil {
		return 0
	}
	code, _ := strconv.Atoi(found[1])
	return code
}

var mysqlError = regexp.MustCompile(`\bError (\d{4,5})(?: \(\w{5}\))?: `)

func classifyMySQL(err error) error {
	switch mysqlCode(err) {
	case 0:
		if strings.Contains(err.Error(), "invalid connection") { // the driver's words for one that broke
			return ErrUnreachable
		}
		return classifyNetwork(err)
	case 1213, 1205, 3572, 1020: // deadlock, lock timeout, locked with NOWAIT, changed since it was read
		return errBusy
	case 1054, 1146, 1176: // no such column, table, index
		return relay.ErrSchema
	case 1044, 1045, 1049, 1130, 1142, 1143, 1227, 1370, 1410, 1698, 1820, 1862, 3118, 4151: // 1049: there is no such database
		return ErrDenied
	case 1021, 1114:
		return ErrFull
	case 1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1290, 1836, 1927, 3032, 4031: // among them: read-only, killed, too many connections
		return ErrUnreachable
	}
	return nil
}
