package config

import (
	"fmt"
	"regexp"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${NAME} and ${NAME:-default} by the environment's value and
// $$ by one dollar. The default stands in for a variable that is unset or
// empty. A dollar before anything else is kept, and what a variable holds is
// not expanded again. All mistakes of the text are returned.
func expand(text string, lookup func(string) (string, bool)) (string, []mistake) {
	var out strings.Builder
	var mistakes []mistake
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		switch {
		case !found:
			return out.String(), mistakes
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "{"):
			reference, rest, closed := strings.Cut(after[1:], "}")
			if !closed {
				return "", append(mistakes, mistake{"${ has no closing }", "write ${NAME}, or $${ for the two characters"})
			}
			value, wrong := resolve(reference, lookup)
			if wrong != nil {
				mistakes = append(mistakes, *wrong)
			}
			out.WriteString(value)
			text = rest
		default:
			out.WriteByte('$')
			text = after
		}
	}
}

// resolve gives the value of what stands between ${ and }.
func resolve(reference string, lookup func(string) (string, bool)) (string, *mistake) {
	name, fallback, hasFallback := strings.Cut(reference, ":-")
	if !variableName.MatchString(name) {
		return "", &mistake{fmt.Sprintf("${%s} names no variable", reference), "write ${NAME} or ${NAME:-default}"}
	}
	if strings.Contains(fallback, "${") {
		return "", &mistake{fmt.Sprintf("the default of ${%s} holds another variable", name), "a default is plain text"}
	}
	value, set := lookup(name)
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !set:
		return "", &mistake{
			fmt.Sprintf("the environment variable %s is not set", name),
			fmt.Sprintf("set it, or give a default: ${%s:-default}", name),
		}
	}
	return value, nil
}
