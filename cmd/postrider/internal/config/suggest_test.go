package config

import "testing"

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"dns", "dsn", 1}, {"poll", "pol", 1}, {"pol", "poll", 1}, {"sink", "sunk", 1},
		{"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "badc", 2},
	} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
