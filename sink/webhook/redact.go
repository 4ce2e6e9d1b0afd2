package webhook

import (
	"cmp"
	"encoding/base64"
	"html"
	"net/url"
	"slices"
	"strings"
)

const (
	hidden       = "[hidden]"
	shortestPart = 4 // shorter parts of a URL are no secrets, and everywhere
)

// newRedactor returns what hides every part of the URL but its host in a text. Receivers repeat the address in their
// answers, as in "Cannot POST /T0/secret".
func newRedactor(u *url.URL) *strings.Replacer {
	parts := []string{u.String(), u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery}
	parts = append(parts, strings.Split(u.EscapedPath(), "/")...)
	parts = append(parts, strings.Split(u.Path, "/")...)
	parts = append(parts, strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' || r == '=' })...)
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	if u.User != nil {
		password, _ := u.User.Password()
		login := u.User.Username() + ":" + password
		parts = append(parts, u.User.String(), password, base64.StdEncoding.EncodeToString([]byte(login)))
	}
	for _, part := range parts {
		parts = append(parts, html.EscapeString(part))
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return len(part) < shortestPart })
	slices.SortFunc(parts, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the longest first
	pairs := make([]string, 0, 2*len(parts))
	for _, part := range parts {
		pairs = append(pairs, part, hidden)
	}
	return strings.NewReplacer(pairs...)
}
