package postrider

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// maxBytes bounds the parameter of one statement, unless the dialect's is lower.
const maxBytes = 16 << 20

// row is an event as it is written.
type row struct {
	eventID string
	deduped bool
	record  []byte // JSON
}

// record is an event in the parameter of the statement. What is not set becomes NULL or the column's default.
type record struct {
	EventID          string `json:"event_id"`
	AggregateType    string `json:"aggregate_type"`
	AggregateID      string `json:"aggregate_id"`
	EventType        string `json:"event_type"`
	AggregateVersion int64  `json:"aggregate_version,omitempty"`
	Topic            string `json:"topic,omitempty"`
	Payload          string `json:"payload"` // itself, so that the bytes are kept, or in hexadecimal when binary
	ContentType      string `json:"content_type"`
	Headers          any    `json:"headers,omitempty"` // an object or its text
	DedupKey         string `json:"dedup_key,omitempty"`
	NextAttemptAt    string `json:"next_attempt_at,omitempty"`
}

func (o *Outbox) row(e *Event) row {
	return row{eventID: e.ID, deduped: e.DedupKey != "", record: encode(record{
		EventID:          e.ID,
		AggregateType:    e.AggregateType,
		AggregateID:      e.AggregateID,
		EventType:        e.Type,
		AggregateVersion: e.AggregateVersion,
		Topic:            e.Topic,
		Payload:          o.payload(e.Payload),
		ContentType:      e.ContentType,
		Headers:          o.headers(e.Headers),
		DedupKey:         e.DedupKey,
		NextAttemptAt:    moment(e.At),
	})}
}

func (o *Outbox) payload(payload []byte) string {
	if o.rules.binary {
		return hex.EncodeToString(payload)
	}
	return string(payload)
}

func (o *Outbox) headers(headers map[string]string) any {
	switch {
	case len(headers) == 0:
		return nil
	case o.traits.textHeaders:
		return string(encode(headers))
	default:
		return headers
	}
}

func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format("2006-01-02 15:04:05.000")
}

func encode(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// parameter returns the rows as the JSON array that the statement takes.
func parameter(rows []row) string {
	records := make([][]byte, len(rows))
	for i, r := range rows {
		records[i] = r.record
	}
	return "[" + string(bytes.Join(records, []byte(","))) + "]"
}

// chunks cuts rows into what one statement each writes. Unless a statement returns the ids that it wrote, only the
// count of rows tells whether a row was dropped, so that each row with a dedup key needs a statement of its own.
func chunks(rows []row, maxBytes int, canReturn bool) iter.Seq[[]row] {
	return func(yield func([]row) bool) {
		for len(rows) > 0 {
			n := chunkLen(rows, maxBytes, canReturn)
			if !yield(rows[:n]) {
				return
			}
			rows = rows[n:]
		}
	}
}

func chunkLen(rows []row, maxBytes int, canReturn bool) int {
	size := 0
	for i, r := range rows {
		size += len(r.record)
		alone := r.deduped && !canReturn
		switch {
		case i > 0 && (size > maxBytes || alone):
			return i
		case alone:
			return 1
		}
	}
	return len(rows)
}

func deduped(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.deduped })
}

func eventIDs(rows []row) []string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.eventID
	}
	return ids
}
