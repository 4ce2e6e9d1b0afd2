package mongo

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// part is one alternative of a term: a field or a text.
type part struct {
	path     string
	constant *string
}

// parseTerm reads a term of a Mapping.
func parseTerm(text string) (parts []part, err error) {
	for rest := strings.TrimSpace(text); ; {
		var p part
		if quoted, found := strings.CutPrefix(rest, "'"); found {
			value, after, closed := strings.Cut(quoted, "'")
			if !closed {
				return nil, fmt.Errorf("%q: a text ends with '", text)
			}
			p.constant, rest = &value, strings.TrimSpace(after)
		} else {
			end := strings.IndexByte(rest, ',')
			if end < 0 {
				end = len(rest)
			}
			p.path, rest = strings.TrimSpace(rest[:end]), rest[end:]
			if !isPath(p.path) {
				return nil, fmt.Errorf("%q: %q is no name of a field", text, p.path)
			}
		}
		parts = append(parts, p)
		if rest == "" {
			return parts, nil
		}
		if rest[0] != ',' {
			return nil, fmt.Errorf("%q: a comma separates alternatives", text)
		}
		rest = strings.TrimSpace(rest[1:])
	}
}

// isPath says whether text can be the path of a field, in documents and in expressions. Blanks and parentheses are refused:
// who writes them means an expression, which this is not.
func isPath(text string) bool {
	return !slices.ContainsFunc(strings.Split(text, "."), func(name string) bool {
		return name == "" || strings.HasPrefix(name, "$") || strings.ContainsAny(name, " '\",()\x00")
	})
}

// expression is the value of a term as text, empty where there is none. A value that no text stands for, such as an array,
// counts as none.
func expression(term string) any {
	if term == "" {
		return ""
	}
	parts, err := parseTerm(term)
	if err != nil {
		panic(err) // Open has checked it
	}
	alternatives := bson.A{}
	for _, p := range parts {
		if p.constant != nil {
			alternatives = append(alternatives, literal(*p.constant))
		} else {
			alternatives = append(alternatives, converted(p.path, "string"))
		}
	}
	return bson.M{"$ifNull": append(alternatives, "")}
}

// converted is the value of a field as another type, or null.
func converted(path, to string) bson.M {
	return bson.M{"$convert": bson.M{"input": "$" + path, "to": to, "onError": nil, "onNull": nil}}
}
