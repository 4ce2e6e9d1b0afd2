package inbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// databaseError is an error of the database, and not of an effect.
type databaseError struct{ err error }

func (e *databaseError) Error() string { return e.err.Error() }
func (e *databaseError) Unwrap() error { return e.err }

// classified gives an error of the database its class: unavailable, unless the database has refused what the message, or its
// effect, has written. A message that can never be committed must not be taken for a database that is down.
func classified(err error) error {
	var failure *databaseError
	if !errors.As(err, &failure) || isRefusal(failure.err) {
		return err
	}
	return Unavailable(err)
}

// isRefusal reports whether the database has answered that it does not take this.
func isRefusal(err error) bool {
	if errors.Is(err, sql.ErrTxDone) { // the effect has ended the transaction
		return true
	}
	text := err.Error()
	if strings.Contains(text, "commit unexpectedly resulted in rollback") || // pgx: the effect hides a failed statement
		strings.Contains(text, "failed transaction") || // pq: the same
		strings.Contains(text, "constraint failed") { // SQLite: a constraint that waits for the commit
		return true
	}
	if state := sqlState(err); state != "" {
		return !slices.Contains([]string{"08", "53", "57", "58", "XX", "25", "28", "3D", "3F", "42", "40"}, state[:2])
	}
	switch mysqlCode(err) {
	case 1366, 1406, 3140, 3819, 4025: // characters, length, JSON, constraints
		return true
	}
	return false
}

// isPassing reports whether the same is likely to work at once in a new transaction: another one was in the way, or the
// connection broke, which may have been during a commit whose outcome the receipt tells.
func isPassing(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01", "55P03":
		return true
	}
	switch mysqlCode(err) {
	case 1213, 1205, 1020: // deadlock, lock timeout, changed since it was read
		return true
	}
	text := err.Error()
	return strings.Contains(text, "database is locked") || strings.Contains(text, "database table is locked")
}

// isBroken reports whether the connection broke.
func isBroken(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &network) ||
		strings.HasPrefix(sqlState(err), "08") || strings.HasPrefix(sqlState(err), "57P") ||
		strings.Contains(err.Error(), "invalid connection") || strings.Contains(err.Error(), "conn closed")
}

// missesTable reports whether there is no such table.
func missesTable(err error) bool {
	return sqlState(err) == "42P01" || mysqlCode(err) == 1146 || strings.Contains(err.Error(), "no such table")
}

// missesColumn reports whether a table has no such column.
func missesColumn(err error) bool {
	text := err.Error()
	return sqlState(err) == "42703" || mysqlCode(err) == 1054 ||
		strings.Contains(text, "no such column") || strings.Contains(text, "has no column")
}

// sqlState is the SQLSTATE of an error of PostgreSQL, or empty.
func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) || len(coded.SQLState()) != 5 {
		return ""
	}
	return coded.SQLState()
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

const (
	attempts   = 10 // of a transaction that others are in the way of
	firstPause = 4 * time.Millisecond
	longPause  = 500 * time.Millisecond
)

// again calls transact until it returns something else than that others are in the way, or that the connection broke, with
// pauses between, a bounded number of times.
func again(ctx context.Context, transact func() error) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := transact()
		if err == nil || attempt == attempts || !isPassing(err) && (!isBroken(err) || !ofDatabase(err)) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(pause) + pause/2):
		}
		pause = min(2*pause, longPause)
	}
}

// ofDatabase reports whether an error is one of the inbox's own statements.
func ofDatabase(err error) bool {
	var failure *databaseError
	return errors.As(err, &failure)
}
