package sqlstore

import (
	"reflect"
	"testing"
)

func TestMySQLWritesLiteralsThatMeanNothingElse(t *testing.T) {
	for text, want := range map[string]string{
		"":           "''",
		"PENDING":    "'PENDING'",
		"it's":       "_utf8mb4 X'69742773'",
		`a\`:         "_utf8mb4 X'615c'",
		":1":         "_utf8mb4 X'3a31'",
		"{picked}":   "_utf8mb4 X'7b7069636b65647d'",
		"ä":          "_utf8mb4 X'c3a4'",
		"2024-01-01": "'2024-01-01'",
	} {
		if got := (mysqlPhrases{}).literal(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestMySQLBindsNoParametersWithinQuotes(t *testing.T) {
	statement, args := MySQL.bind("SELECT ':1', `a:2`, \":3\", 'it''s :1', :2", []any{1, 2, 3})
	if statement != "SELECT ':1', `a:2`, \":3\", 'it''s :1', ?" || !reflect.DeepEqual(args, []any{2}) {
		t.Errorf("%s with %v", statement, args)
	}
}

func TestMySQLCutsTimesAndTexts(t *testing.T) {
	var p mysqlPhrases
	for want, got := range map[string]string{
		"x": p.store("x", column{fractions: 6}, "UTC"),
		"left(date_format(x, '%Y-%m-%d %T'), 19)":                                                    p.store("x", column{}, "UTC"),
		"left(date_format(convert_tz(x, '+00:00', _utf8mb4 X'2b30393a3030'), '%Y-%m-%d %T.%f'), 23)": p.store("x", column{fractions: 3}, "+09:00"),
		"from_unixtime(timestampdiff(MICROSECOND, '1970-01-01', x) / 1000000)":                       p.store("x", column{fractions: 6, zoned: true}, "+09:00"),
		"(x + INTERVAL 999999 MICROSECOND)":                                                          p.roundUp("x", column{}),
		"(x + INTERVAL 999 MICROSECOND)":                                                             p.roundUp("x", column{fractions: 3}),
		"(x + INTERVAL 0 MICROSECOND)":                                                               p.roundUp("x", column{fractions: 6}),
		"left(x, 5)":                                                                                 p.cut("x", column{charset: "utf8mb4", length: 5}),
		"regexp_replace(x, '[^ -~]', '?')":                                                           p.cut("x", column{charset: "latin1"}),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
