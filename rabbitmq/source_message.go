package rabbitmq

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/sendid"
	"github.com/postrider/postrider/relay"
)

// Headers that the server sets on a delivery, and that say nothing of the message.
const (
	headerAcquiredCount = "x-acquired-count" // how often it was delivered before; quorum queues of RabbitMQ 4
	headerDeliveryCount = "x-delivery-count" // the same, in RabbitMQ 4 without those times that ended by a return; quorum queues
)

const headerContentEncoding = "content-encoding"

// decode turns a delivery into a message. See the package comment for the rules.
func decode(queue string, d *amqp.Delivery) inbox.Message {
	m := inbox.Message{
		Topic:   target{key: queue}.String(),
		Headers: headersOf(d.Headers),
		Payload: d.Body,
		At:      d.Timestamp,
	}
	if m.EventID() == "" {
		m.Headers = withHeader(m, relay.HeaderEventID, sendid.EventID(d.MessageId))
	}
	if m.EventType() == "" {
		m.Headers = withHeader(m, relay.HeaderEventType, d.Type)
	}
	m.Headers = withHeader(m, relay.HeaderContentType, d.ContentType)
	m.Headers = withHeader(m, headerContentEncoding, d.ContentEncoding)
	id := d.MessageId
	if id == "" {
		id = m.EventID()
	}
	if id == "" {
		id = "delivery-" + strconv.FormatUint(d.DeliveryTag, 10)
	}
	m.Coordinates = "rabbitmq:" + m.Topic + "@" + id
	return m
}

// withHeader returns the message's headers with one more, if it has a value and is not there.
func withHeader(m inbox.Message, name, value string) []inbox.Header {
	if value == "" || m.Header(name) != "" {
		return m.Headers
	}
	return append(m.Headers, inbox.Header{Name: name, Value: value})
}

// headersOf renders a table as text, sorted by name. Tables and arrays in it are left out.
func headersOf(table amqp.Table) []inbox.Header {
	headers := make([]inbox.Header, 0, len(table)+2)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if name == headerDeliveryCount || name == headerAcquiredCount {
			continue
		}
		if value, ok := text(table[name]); ok {
			headers = append(headers, inbox.Header{Name: name, Value: value})
		}
	}
	return headers
}

// text renders a value of a table.
func text(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case []byte:
		if utf8.Valid(v) {
			return string(v), true
		}
		return hex.EncodeToString(v), true
	case bool, int8, byte, int16, uint16, int32, uint32, int64, int:
		return fmt.Sprint(v), true
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case time.Time:
		return v.UTC().Format(time.RFC3339), true
	case amqp.Decimal:
		return decimal(v), true
	default:
		return "", false
	}
}

// decimal writes the value with as many digits behind the point as its scale says.
func decimal(d amqp.Decimal) string {
	sign, digits := "", strconv.FormatInt(int64(d.Value), 10)
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	if d.Scale == 0 {
		return sign + digits
	}
	scale := int(d.Scale)
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - scale
	return sign + digits[:point] + "." + digits[point:]
}

// deliveriesOf counts how often the message was delivered. A quorum queue counts; a classic one tells the first time from
// later ones.
func deliveriesOf(d *amqp.Delivery) int {
	for _, header := range []string{headerAcquiredCount, headerDeliveryCount} {
		if before, ok := d.Headers[header].(int64); ok {
			return int(before) + 1
		}
	}
	if d.Redelivered {
		return 2
	}
	return 1
}
