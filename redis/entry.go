package redis

import (
	"fmt"
	"strings"

	"github.com/postrider/postrider/relay"
)

// Names of the fields of an entry. A header's is its name behind the prefix.
const (
	fieldID      = "id"
	fieldKey     = "key"
	fieldPayload = "payload"
	headerPrefix = "h:"
)

// fields returns the names and values of a message's entry.
func fields(m relay.Message) []any {
	all := make([]any, 0, 6+2*len(m.Headers))
	all = append(all, fieldID, m.EventID, fieldKey, m.Key, fieldPayload, m.Payload)
	for _, h := range m.Headers {
		all = append(all, headerPrefix+h.Name, h.Value)
	}
	return all
}

// size returns the bytes of all names and values of a message's entry, and of the largest one of them.
func size(m relay.Message) (total, largest int) {
	for _, n := range []int{len(fieldID), len(m.EventID), len(fieldKey), len(m.Key), len(fieldPayload), len(m.Payload)} {
		total += n
		largest = max(largest, n)
	}
	for _, h := range m.Headers {
		total += len(headerPrefix) + len(h.Name) + len(h.Value)
		largest = max(largest, len(headerPrefix)+len(h.Name), len(h.Value))
	}
	return total, largest
}

// marker is the key that says that an event is in the stream. It lies in the stream's hash slot.
func marker(m relay.Message) string {
	return "postrider:published:{" + hashTag(m.Topic) + "}:" + m.EventID
}

// hashTag returns the part of a key that decides its hash slot.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return key
}

// checkMessage says why a message cannot be sent, apart from its size.
func (s *Sink) checkMessage(m relay.Message) error {
	switch {
	case m.Topic == "":
		return fmt.Errorf("event %s has no topic", m.EventID)
	case s.config.IdempotentFor == 0:
		return nil
	case m.EventID == "":
		return fmt.Errorf("stream %s: the event has no id, by which it would be recognized", m.Topic)
	case strings.Contains(hashTag(m.Topic), "}"):
		return fmt.Errorf("stream %s: the name has a } and no hash tag, so that no other key can share its hash slot", m.Topic)
	}
	return nil
}
