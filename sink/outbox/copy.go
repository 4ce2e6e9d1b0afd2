package outbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/uuid"
	"github.com/postrider/postrider/relay"
)

// Names of the headers of a copy that hold what its columns cannot. Restore takes them out; an event's own headers of these
// names are dropped.
const (
	HeaderEventID     = "Postrider-Event-Id"          // the event id, where it is not in the form of a UUID that the column holds
	HeaderAggregateID = "Postrider-Aggregate-Id"      // the aggregate id, where it is not the key
	HeaderVersion     = "Postrider-Aggregate-Version" // the aggregate version
)

// anyContent describes payloads of which nothing is known.
const anyContent = "application/octet-stream"

// CopyID is the event id that copies of the event have in their tables: the event's own when that is a UUID, else one that is
// made of it and always the same.
func CopyID(eventID string) string {
	if id, ok := uuid.Canonical(eventID); ok {
		return id
	}
	sum := sha256.Sum256([]byte(eventID))
	sum[6] = sum[6]&0x0f | 0x80 // version 8: made in a way of one's own
	sum[8] = sum[8]&0x3f | 0x80 // the variant of RFC 9562
	text := hex.EncodeToString(sum[:16])
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

// copyOf is the event as it is added to another outbox.
func copyOf(e *relay.Event) postrider.Event {
	id := CopyID(e.EventID)
	return postrider.Event{
		ID:            id,
		AggregateType: e.AggregateType,
		AggregateID:   e.Key(), // by which the other relay keeps the order
		Type:          e.EventType,
		Topic:         e.Topic,
		Payload:       e.Payload,
		ContentType:   cmp.Or(e.ContentType, anyContent),
		Headers:       headersOf(e, id),
		DedupKey:      id,
	}
}

func headersOf(e *relay.Event, id string) map[string]string {
	headers := make(map[string]string, len(e.Headers)+1)
	maps.Copy(headers, e.Headers)
	maps.DeleteFunc(headers, func(name, _ string) bool {
		return strings.EqualFold(name, HeaderEventID) || strings.EqualFold(name, HeaderAggregateID) || strings.EqualFold(name, HeaderVersion)
	})
	if id != e.EventID {
		headers[HeaderEventID] = e.EventID
	}
	if e.Key() != e.AggregateID {
		headers[HeaderAggregateID] = e.AggregateID
	}
	if e.AggregateVersion != nil {
		headers[HeaderVersion] = strconv.FormatInt(*e.AggregateVersion, 10)
	}
	return headers
}

// Restore makes the event that producers added of a copy: it sees to relay.Config.Restore. Of an event that is no copy it
// changes nothing.
func Restore(e *relay.Event) {
	if id, ok := take(e, HeaderEventID); ok {
		e.EventID = id
	}
	if id, ok := take(e, HeaderAggregateID); ok {
		e.PartitionKey, e.AggregateID = e.Key(), id
	}
	if text, ok := take(e, HeaderVersion); ok {
		version, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			e.Malformed = fmt.Errorf("header %s is %q, which is no version: discard it, or correct the header and redrive it", HeaderVersion, text)
			return
		}
		e.AggregateVersion = &version
	}
}

// take takes a header out of a copy.
func take(e *relay.Event, name string) (value string, ok bool) {
	value, ok = e.Headers[name]
	delete(e.Headers, name)
	return value, ok
}
