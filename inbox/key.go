package inbox

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postrider/postrider"
)

// KeyError says that a message has no key that a receipt can have: it carries none, or one that is longer than
// postrider.MaxField bytes, is not valid UTF-8, or has control characters. Its class is ClassMalformed.
type KeyError struct {
	Consumer string
	DedupKey string // empty where the message carries none
	Problem  string
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("receipt %.80q for consumer %.80q: %s", e.DedupKey, e.Consumer, e.Problem)
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

// BusinessKey makes a dedup key out of what identifies the thing that is asked for, such as a kind, a user and an object:
// BusinessKey("reward", userID, questID). Different parts never make the same key: they are joined by slashes, and a slash
// within a part is written as %2F. An empty part is an error, for it is mostly a field that the message lacks.
func BusinessKey(parts ...string) (string, error) {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		if part == "" {
			return "", fmt.Errorf("part %d of the business key is empty", i+1)
		}
		escaped[i] = strings.NewReplacer("%", "%25", "/", "%2F").Replace(part)
	}
	if len(parts) == 0 {
		return "", errors.New("the business key has no parts")
	}
	return strings.Join(escaped, "/"), nil
}
