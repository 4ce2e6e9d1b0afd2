// Package text makes texts that come from outside fit for every database.
package text

import (
	"strings"
	"unicode/utf8"
)

// Max is the length in bytes of the longest text that a relay or an operator adds to an event.
const Max = 2000

// Clean returns text as valid UTF-8 without NUL, cut to Max on a rune boundary. What is not valid becomes U+FFFD.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if len(text) <= Max {
		return text
	}
	end := Max
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
