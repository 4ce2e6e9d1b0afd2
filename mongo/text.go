package mongo

import (
	"strings"
	"time"
	"unicode/utf8"
)

// maxRetryAfter keeps a delay within what can be added to a time.
const maxRetryAfter = 365 * 24 * time.Hour

func clampDelay(d time.Duration) time.Duration { return min(max(d, 0), maxRetryAfter) }

// maxText is the length in bytes of the longest text that a relay or an operator adds to an event.
const maxText = 2000

// cleanText makes text valid UTF-8 without NUL, cut on a rune boundary.
func cleanText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
