package cli

import "testing"

func TestPlainLeavesNothingThatSteersATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"naïve 注文 שלום":           "naïve 注文 שלום",
		"\x1b[31m\r\n\x7f\u0085":  `\u001b[31m\u000d\u000a\u007f\u0085`,
		"paid\u202e00.1\u2066x":   `paid\u202e00.1\u2066x`,
		"two\u2028lines\u2029end": `two\u2028lines\u2029end`,
	} {
		if got := plain(text); got != want {
			t.Errorf("plain(%+q) = %+q, want %+q", text, got, want)
		}
	}
}
