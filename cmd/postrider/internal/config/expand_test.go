package config

import (
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	variables := map[string]string{"A": "a", "_B2": "b", "EMPTY": "", "HELD": "${A} $$"}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	for text, want := range map[string]string{
		"plain":          "plain",
		"${A}":           "a",
		"x${A}-${_B2}y":  "xa-by",
		"${EMPTY}":       "",
		"${EMPTY:-d}":    "d",
		"${UNSET:-}":     "",
		"${UNSET:-a:-b":  "!has no closing }",
		"${A:-d}":        "a",
		"${UNSET:-a:-b}": "a:-b",
		"$$":             "$",
		"$${A}":          "${A}",
		"$$$${A}":        "$${A}",
		"$$${A}":         "$a",
		"p$w$1$":         "p$w$1$",
		"${HELD}":        "${A} $$",
		"${UNSET}":       "!UNSET is not set",
		"${}":            "!${} names no variable",
		"${2A}":          "!${2A} names no variable",
		"${A-d}":         "!${A-d} names no variable",
		"${ A }":         "!${ A } names no variable",
		"${A:-${B}}":     "!holds another variable",
	} {
		got, mistakes := expand(text, lookup)
		message, isMistake := strings.CutPrefix(want, "!")
		switch {
		case isMistake && (len(mistakes) != 1 || !strings.Contains(mistakes[0].message, message)):
			t.Errorf("%q: mistakes %v, want %q", text, mistakes, message)
		case !isMistake && (got != want || len(mistakes) > 0):
			t.Errorf("%q gives %q and %v, want %q", text, got, mistakes, want)
		}
	}
}
