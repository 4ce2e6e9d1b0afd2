package sqlstore

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestCleanText(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                        "plain",
		"nul \x00 byte":                "nul \uFFFD byte",
		"broken \xff\xfe utf-8":        "broken \uFFFD utf-8",
		strings.Repeat("x", 2001):      strings.Repeat("x", 2000),
		strings.Repeat("😀", 501):       strings.Repeat("😀", 500),
		"x" + strings.Repeat("😀", 500): "x" + strings.Repeat("😀", 499),
		"":                             "",
	} {
		if got := cleanText(text); got != want {
			t.Errorf("cleanText(%.20q) = %.20q of %d bytes, want %.20q of %d", text, got, len(got), want, len(want))
		}
	}
}

func FuzzCleanText(f *testing.F) {
	f.Add("x\x00\xff" + strings.Repeat("é", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		got := cleanText(text)
		if len(got) > maxText || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("cleanText(%q) = %q", text, got)
		}
	})
}

func TestIDsOfOurTables(t *testing.T) {
	if got, err := (ids{}).json([]string{"1", "0", "999999999999999999"}); err != nil || got != "[1,0,999999999999999999]" {
		t.Errorf("%q, %v", got, err)
	}
	for _, id := range []string{"", "x", "-1", "01", "1.0", "1]", "9999999999999999999"} {
		if got, err := (ids{}).json([]string{id}); err == nil {
			t.Errorf("%q was taken for a number: %s", id, got)
		}
	}
}

func TestClampDelay(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{-1: 0, 5: 5, 1<<63 - 1: maxRetryAfter} {
		if got := clampDelay(d); got != want {
			t.Errorf("clampDelay(%v) = %v, want %v", d, got, want)
		}
	}
}
