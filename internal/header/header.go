// Package header says which names the headers of messages may have.
package header

import (
	"fmt"
	"slices"
	"strings"
)

// maxName bounds a name, in bytes.
const maxName = 255

// reserved are set by the relay from the event's own columns, or by a broker's client from the event id.
var reserved = []string{
	"x-event-id", "x-idempotency-key", "x-event-type", "x-aggregate-type", "x-aggregate-id", "x-outbox-id",
	"x-aggregate-version", "content-type", "nats-msg-id", "webhook-id",
}

// Mistake says why a header may not have the name, as what follows on "name ...". It is empty when it may.
func Mistake(name string) string {
	switch {
	case name == "" || strings.ContainsFunc(name, notToken):
		return "is no token: it takes letters, digits and any of !#$%&'*+-.^_`|~"
	case len(name) > maxName:
		return fmt.Sprintf("has %d bytes: it takes at most %d", len(name), maxName)
	case slices.Contains(reserved, strings.ToLower(name)):
		return "is reserved: its value comes from the event's own fields"
	}
	return ""
}

// notToken reports whether r cannot stand in the name of a header (RFC 9110, section 5.6.2).
func notToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	default:
		return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}
}
