package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

func (c *command) printJSON(v any) error {
	encoder := json.NewEncoder(c.stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// table prints aligned columns under a heading.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, heading ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(heading) > 0 {
		t.row(heading...)
	}
	return t
}

// row adds a line. An empty cell shows as -.
func (t table) row(cells ...string) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		if shown[i] = plain(cell); cell == "" {
			shown[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(shown, "\t"))
}

func (t table) flush() error { return t.w.Flush() }

// plain writes control characters as escapes, so that what is in an event cannot steer a terminal, or turn the text around it
// to the other direction.
func plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// short cuts text to what fits into a column.
func short(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-3]) + "..."
}
