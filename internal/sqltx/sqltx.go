// Package sqltx tells transactions from connection pools.
package sqltx

import (
	"database/sql"
	"reflect"
)

// Usable returns what statements are to be sent to for v, which a caller gave as a transaction, or the problem with
// v: it is nil, or a connection pool, which commits every statement on its own. A connection passes; whether a
// transaction was begun on it cannot be told.
func Usable(v any) (tx any, problem string) {
	tx = direct(v)
	switch {
	case isNil(tx):
		return nil, "is nil"
	case isPool(tx):
		return nil, "is a connection pool, not a transaction"
	default:
		return tx, ""
	}
}

// direct reaches into the types of bun: their own methods write parameters into the text of the statement, in bun's
// syntax; the *sql.Tx or *sql.Conn that they embed binds them.
func direct(v any) any {
	value := reflect.Indirect(reflect.ValueOf(v))
	if value.Kind() != reflect.Struct || value.Type().PkgPath() != "github.com/uptrace/bun" {
		return v
	}
	for _, name := range []string{"Tx", "Conn"} {
		if embedded := value.FieldByName(name); embedded.IsValid() {
			return embedded.Interface()
		}
	}
	return v
}

func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}

// isPool recognises pools by methods that no transaction has.
func isPool(v any) bool {
	if _, ok := v.(interface{ SetMaxOpenConns(int) }); ok {
		return true // *sql.DB and what embeds it, such as the DB of sqlx and of bun
	}
	if _, ok := v.(interface{ Commit() error }); ok {
		return false
	}
	switch v.(type) {
	case interface{ DB() *sql.DB }, // the driver of ent
		interface{ GetDBConn() (*sql.DB, error) }: // GORM's prepared statements
		return true
	default:
		return false
	}
}
