package ident

import (
	"strings"
	"testing"
)

func TestQuoteTable(t *testing.T) {
	for name, want := range map[string]string{
		"outbox_events":               `"outbox_events"`,
		"App.Outbox-1":                `"App"."Outbox-1"`,
		`x" (id) SELECT 1; --`:        `"x"" (id) SELECT 1; --"`,
		strings.Repeat("t", maxBytes): `"` + strings.Repeat("t", maxBytes) + `"`,
	} {
		if got, err := QuoteTable(name, `"`); got != want || err != nil {
			t.Errorf("QuoteTable(%q) = %s, %v; want %s", name, got, err, want)
		}
	}
}

func TestQuoteTableForMySQL(t *testing.T) {
	if got, err := QuoteTable("app.a`b\"c", "`"); got != "`app`.`a``b\"c`" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestQuoteTableRefusesWhatIsNoName(t *testing.T) {
	for _, name := range []string{
		"", ".", "app.", ".events", "a.b.c", "a\x00b", "a\nb", "a\xff", strings.Repeat("t", maxBytes+1),
	} {
		if got, err := QuoteTable(name, `"`); err == nil {
			t.Errorf("QuoteTable(%q) = %s, want an error", name, got)
		}
	}
}
