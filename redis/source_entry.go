package redis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/sendid"
	"github.com/postrider/postrider/relay"
)

// fieldData is where others than the sink like to put the payload.
const fieldData = "data"

// record is an entry as the server answers it.
type record struct {
	id     string
	fields []any // names and values
}

// records reads a list of entries. Those that the stream no longer has are left out.
func records(answer any) ([]record, error) {
	list, ok := answer.([]any)
	if !ok {
		return nil, fmt.Errorf("the server answered %T instead of entries", answer)
	}
	all := make([]record, 0, len(list))
	for _, item := range list {
		parts, _ := item.([]any)
		if len(parts) != 2 || parts[1] == nil {
			continue
		}
		id, _ := parts[0].(string)
		fields, _ := parts[1].([]any)
		all = append(all, record{id, fields})
	}
	return all, nil
}

// decode turns an entry into a message. See the package comment for the rules.
func decode(stream string, r record) inbox.Message {
	m := inbox.Message{Topic: stream, Offset: r.id, Coordinates: "redis:" + stream + "@" + r.id, At: storedAt(r.id)}
	var id string
	var hasPayload bool
	var data []inbox.Header
	for i := 0; i+1 < len(r.fields); i += 2 {
		name, _ := r.fields[i].(string)
		value, _ := r.fields[i+1].(string)
		switch name {
		case fieldID:
			id = sendid.EventID(value)
		case fieldKey:
			m.Key = value
		case fieldPayload:
			m.Payload, hasPayload = []byte(value), true
		case fieldData:
			data = append(data, inbox.Header{Name: name, Value: value})
		default:
			m.Headers = append(m.Headers, inbox.Header{Name: strings.TrimPrefix(name, headerPrefix), Value: value})
		}
	}
	if !hasPayload && len(data) > 0 {
		m.Payload, data = []byte(data[0].Value), data[1:]
	}
	m.Headers = append(m.Headers, data...)
	if id != "" && m.EventID() == "" {
		m.Headers = append(m.Headers, inbox.Header{Name: relay.HeaderEventID, Value: id})
	}
	return m
}

// storedAt is the time in an id that the server has chosen; zero where there is none.
func storedAt(id string) time.Time {
	milliseconds := place(id)[0]
	if milliseconds == 0 || milliseconds > math.MaxInt64 {
		return time.Time{}
	}
	return time.UnixMilli(int64(milliseconds)).UTC()
}

// place returns the numbers of an id.
func place(id string) (numbers [2]uint64) {
	first, second, _ := strings.Cut(id, "-")
	numbers[0], _ = strconv.ParseUint(first, 10, 64) // servers write no others
	numbers[1], _ = strconv.ParseUint(second, 10, 64)
	return numbers
}
