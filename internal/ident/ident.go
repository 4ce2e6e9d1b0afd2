// Package ident checks and quotes the names of tables.
package ident

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxBytes is the shortest limit on names of the databases served (PostgreSQL).
const maxBytes = 63

// QuoteTable returns a table name, with or without its schema, in quotes: " as standard SQL has it, or ` as MySQL has it.
// Quoted names are taken as they are written, upper and lower case included.
func QuoteTable(name, quote string) (string, error) {
	parts := strings.Split(name, ".")
	if len(parts) > 2 {
		return "", fmt.Errorf(`%q: it must be "name" or "schema.name"`, name)
	}
	for i, part := range parts {
		if err := check(part); err != nil {
			return "", fmt.Errorf("%q: %w", name, err)
		}
		parts[i] = quote + strings.ReplaceAll(part, quote, quote+quote) + quote
	}
	return strings.Join(parts, "."), nil
}

func check(part string) error {
	switch {
	case part == "":
		return errors.New(`it must be "name" or "schema.name"`)
	case len(part) > maxBytes:
		return fmt.Errorf("a name has %d bytes: it takes at most %d", len(part), maxBytes)
	case !utf8.ValidString(part), strings.ContainsFunc(part, unicode.IsControl):
		return errors.New("a name has control characters or is not valid UTF-8")
	}
	return nil
}
