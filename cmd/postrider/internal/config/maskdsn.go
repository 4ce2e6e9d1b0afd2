package config

import (
	"regexp"
	"strings"
)

var (
	dsnScheme = regexp.MustCompile(`(?i)^\s*(?:postgres|postgresql|mysql|mariadb|mongodb|mongodb\+srv)://`)

	// pathScheme begins a DSN that is a path: the colon begins no password.
	pathScheme = regexp.MustCompile(`(?i)^\s*(?:sqlite|file):`)

	// secretKey begins a parameter whose value is not for showing: in a query
	// (?sslpassword=), as keyword and value (password = x) or as a pragma.
	secretKey = regexp.MustCompile(`(?i)(?:pass|pwd|secret|token|credential|key)[\w.%-]*\s*[=(]`)

	// plainHosts is what stands where nobody logs in: hosts, perhaps with ports.
	plainHosts = regexp.MustCompile(`^(?:(?:[\w.-]*|\[[\w:.%]*\])(?::\d*)?(?:,|$))*$`)
)

// MaskDSN gives the DSN with *** in place of its passwords, for logs and
// messages. It knows URLs (postgres://, mysql://, mongodb://), the form
// user:password@tcp(host)/db of MySQL, keyword/value pairs (host=h password=p)
// and sqlite:. It parses none of them, so a DSN that is broken, or a password
// that should have been escaped, is masked as well. Where the end of a
// password cannot be told it masks too much: a password that is given as a
// parameter is masked together with all that follows it.
func MaskDSN(dsn string) string {
	scheme := dsnScheme.FindString(dsn)
	rest := dsn[len(scheme):]
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return scheme + maskPort(maskParameters(rest), scheme != "")
	}
	if key := secretKey.FindStringIndex(rest[:at]); key != nil {
		// Either a password holds what looks like a parameter, or a
		// parameter holds the @: nothing after the first of both is sure.
		user, _ := cutAtColon(rest[:key[1]])
		return scheme + user + masked
	}
	user, hasPassword := cutAtColon(rest[:at])
	if hasPassword {
		user += masked
	}
	return scheme + user + maskParameters(rest[at:])
}

// maskParameters masks from the first secret parameter's value to the end.
func maskParameters(s string) string {
	if key := secretKey.FindStringIndex(s); key != nil {
		return s[:key[1]] + masked
	}
	return s
}

// maskPort masks what stands in the place of a port and is none: a password
// whose host is missing.
func maskPort(s string, isURL bool) string {
	authority := s
	if end := strings.IndexAny(s, "/?#"); end >= 0 {
		authority = s[:end]
	}
	user, hasColon := cutAtColon(s)
	isPath := !isURL && pathScheme.MatchString(s)
	isKeywords := !isURL && strings.Contains(user, "=")
	if !hasColon || isPath || isKeywords || plainHosts.MatchString(authority) {
		return s
	}
	return user + masked
}

// cutAtColon gives s up to and with its first colon; without one, all of s.
func cutAtColon(s string) (head string, found bool) {
	i := strings.IndexByte(s, ':')
	if i < 0 {
		return s, false
	}
	return s[:i+1], true
}
