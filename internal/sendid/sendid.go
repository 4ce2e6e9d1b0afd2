// Package sendid makes the ids by which brokers tell messages apart that were read and are sent again: the event id, and what is sent.
package sendid

import "strings"

// What follows the event id.
const (
	Retry      = ":retry:"
	DeadLetter = ":dlt:"
	Redrive    = ":redrive:"
)

// EventID returns the event id of a message that says no other than the broker's id of it, as messages of others do. It is empty when that id
// was made here for a message without an event id, which must not get one on its way to a dead-letter topic and back.
func EventID(id string) string {
	for _, sent := range []string{Retry, DeadLetter, Redrive} {
		if strings.HasPrefix(id, sent) {
			return ""
		}
	}
	return id
}
