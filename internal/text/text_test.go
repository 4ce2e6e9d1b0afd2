package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                        "plain",
		"nul \x00 byte":                "nul \uFFFD byte",
		"broken \xff\xfe utf-8":        "broken \uFFFD utf-8",
		strings.Repeat("x", 2001):      strings.Repeat("x", 2000),
		strings.Repeat("😀", 501):       strings.Repeat("😀", 500),
		"x" + strings.Repeat("😀", 500): "x" + strings.Repeat("😀", 499),
		"":                             "",
	} {
		if got := Clean(text); got != want {
			t.Errorf("Clean(%.20q) = %.20q of %d bytes, want %.20q of %d", text, got, len(got), want, len(want))
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("x\x00\xff" + strings.Repeat("é", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		got := Clean(text)
		if len(got) > Max || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("Clean(%q) = %q", text, got)
		}
	})
}
