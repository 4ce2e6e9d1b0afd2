package rabbitmq

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
)

// received reads what was delivered. Header values that are no text are written as such: numbers, truth values, times as RFC 3339,
// bytes that are not UTF-8 as base64; tables and lists are left out. The properties message-id, type and content-type stand in for the
// headers that are not there.
func received(queue string, d amqp.Delivery) inbox.Message {
	m := inbox.Message{Topic: "/" + queue, Payload: d.Body, At: d.Timestamp}
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		if value, ok := textOf(d.Headers[name]); ok {
			m.Headers = append(m.Headers, inbox.Header{Name: name, Value: value})
		}
	}
	if m.EventID() == "" && d.MessageId != "" {
		m.Headers = append(m.Headers, inbox.Header{Name: relay.HeaderEventID, Value: d.MessageId})
	}
	if m.EventType() == "" && d.Type != "" {
		m.Headers = append(m.Headers, inbox.Header{Name: relay.HeaderEventType, Value: d.Type})
	}
	if m.Header(relay.HeaderContentType) == "" && d.ContentType != "" {
		m.Headers = append(m.Headers, inbox.Header{Name: relay.HeaderContentType, Value: d.ContentType})
	}
	place := m.EventID()
	if place == "" {
		place = "delivery " + strconv.FormatUint(d.DeliveryTag, 10)
	}
	m.Coordinates = "rabbitmq:" + m.Topic + "@" + place
	return m
}

func textOf(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case []byte:
		return base64.StdEncoding.EncodeToString(v), true
	case bool, int, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, amqp.Decimal:
		return fmt.Sprint(v), true
	case time.Time:
		return v.UTC().Format(time.RFC3339), true
	default:
		return "", false
	}
}

// countOf tells how often the message was delivered, this time included. Only quorum queues count.
func countOf(d amqp.Delivery) int {
	if n, ok := d.Headers["x-delivery-count"].(int64); ok {
		return int(n) + 1
	}
	if !d.Redelivered {
		return 1
	}
	return 0
}
