package inbox

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postrider/postrider"
)

// Key identifies a receipt. Both parts are compared byte for byte, and must be valid UTF-8 without control
// characters, 1 to postrider.MaxField bytes long.
type Key struct {
	Consumer string // who applies: consumers with different names apply the same message each
	DedupKey string // what the message has in common with its duplicates, such as the event id
}

// String names the key for logs and errors.
func (k Key) String() string { return fmt.Sprintf("%.80q for consumer %.80q", k.DedupKey, k.Consumer) }

// KeyError says that no receipt can have the given key. The same message will fail again.
type KeyError struct {
	Key     Key
	Problem string
}

func (e *KeyError) Error() string { return fmt.Sprintf("receipt %s: %s", e.Key, e.Problem) }

func (k Key) check() error {
	for _, part := range []struct{ name, value string }{{"the consumer", k.Consumer}, {"the dedup key", k.DedupKey}} {
		if problem := problemOf(part.value); problem != "" {
			return &KeyError{Key: k, Problem: part.name + " " + problem}
		}
	}
	return nil
}

func problemOf(value string) string {
	switch {
	case value == "":
		return "is empty"
	case len(value) > postrider.MaxField:
		return fmt.Sprintf("has %d bytes: it takes at most %d", len(value), postrider.MaxField)
	case !utf8.ValidString(value):
		return "is not valid UTF-8"
	case strings.ContainsFunc(value, unicode.IsControl):
		return "has control characters"
	default:
		return ""
	}
}
