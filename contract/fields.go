package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Kind is a kind of JSON value.
type Kind string

// The kinds. The zero Kind is any value but null.
const (
	String  Kind = "string"
	Number  Kind = "number"
	Integer Kind = "integer" // a number that is written without a fraction and an exponent
	Boolean Kind = "boolean"
	Object  Kind = "object"
	Array   Kind = "array"
)

// Field is one value that a payload must have.
type Field struct {
	Path     string // JSON Pointer (RFC 6901), such as /order/id; empty for the payload as a whole
	Kind     Kind
	Optional bool // it may be missing, or null
}

// compile returns the check for fields, or an error with every mistake in them. Where a payload has a name twice, the last
// one counts.
func compile(fields []Field) (Check, error) {
	var mistakes []error
	for _, f := range fields {
		if f.Path != "" && !strings.HasPrefix(f.Path, "/") {
			mistakes = append(mistakes, fmt.Errorf("path %q must begin with a slash (JSON Pointer)", f.Path))
		}
		switch f.Kind {
		case "", String, Number, Integer, Boolean, Object, Array:
		default:
			mistakes = append(mistakes, fmt.Errorf("kind of %q is %q, which is no kind of JSON value", f.Path, f.Kind))
		}
	}
	if mistakes != nil {
		return nil, errors.Join(mistakes...)
	}
	return func(payload []byte) error {
		value, err := decode(payload)
		if err != nil {
			return err
		}
		var problems []error
		for _, f := range fields {
			if problem := f.problem(value); problem != "" {
				problems = append(problems, errors.New(strings.TrimSpace(f.Path+" "+problem)))
			}
		}
		return errors.Join(problems...)
	}, nil
}

// decode keeps numbers as they are written. Its errors do not tell what is in the payload.
func decode(payload []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil, errors.New("is not valid JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has something behind its JSON value")
	}
	return value, nil
}

func (f Field) problem(value any) string {
	found, ok := lookup(value, f.Path)
	switch {
	case f.Optional && (!ok || found == nil):
		return ""
	case !ok:
		return "is missing"
	case found == nil:
		return "is null"
	case f.Kind == "" || isKind(found, f.Kind):
		return ""
	default:
		return fmt.Sprintf("is of kind %s, not %s", kindOf(found), f.Kind)
	}
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

func lookup(value any, path string) (found any, ok bool) {
	if path == "" {
		return value, true
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		switch parent := value.(type) {
		case map[string]any:
			value, ok = parent[unescape.Replace(name)]
		case []any:
			var i int
			if i, ok = index(name, len(parent)); ok {
				value = parent[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return value, true
}

func index(name string, length int) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && i < length && strconv.Itoa(i) == name
}

func isKind(value any, kind Kind) bool {
	got := kindOf(value)
	return got == kind || got == Integer && kind == Number
}

func kindOf(value any) Kind {
	switch value := value.(type) {
	case string:
		return String
	case json.Number:
		if strings.ContainsAny(string(value), ".eE") {
			return Number
		}
		return Integer
	case bool:
		return Boolean
	case []any:
		return Array
	default:
		return Object
	}
}
