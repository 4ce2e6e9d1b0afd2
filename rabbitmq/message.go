package rabbitmq

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/relay"
)

// longestName is how long AMQP lets names and properties be, in bytes.
const longestName = 255

// Sizes of a header frame: what is around its payload, and what comes before the properties.
const (
	frameOverhead  = 8
	fixedInHeader  = 2 + 2 + 8 + 2 // class, weight, size of the body, flags
	fixedTimestamp = 8
	fixedMode      = 1
	lengthOfTable  = 4
	lengthOfName   = 1
	lengthOfValue  = 1 + 4 // the type of the value comes first
)

// prefixCloudEvents goes before the names of CloudEvents attributes, as in the binding for AMQP.
const prefixCloudEvents = "cloudEvents_"

// eventTypeHeaders carry the event type, each in its style of headers.
var eventTypeHeaders = []string{relay.HeaderEventType, relay.HeaderDebeziumEventType, prefixCloudEvents + "type"}

// target is where a message goes.
type target struct{ exchange, key string }

// String is the topic that names the target.
func (t target) String() string { return t.exchange + "/" + t.key }

// message is an event as the server gets it.
type message struct {
	target     target
	publishing amqp.Publishing
	headerSize int // payload of its header frame, which all of its properties must fit into
}

func (m *message) payload() int64 { return int64(len(m.publishing.Body)) }

// encode turns an event into a message, or says why RabbitMQ cannot carry it.
func encode(m relay.Message, now time.Time) (message, error) {
	t, err := targetOf(m)
	if err != nil {
		return message{}, err
	}
	p := amqp.Publishing{
		Headers:      make(amqp.Table, len(m.Headers)),
		ContentType:  property(m.Headers, relay.HeaderContentType),
		DeliveryMode: amqp.Persistent,
		MessageId:    m.EventID,
		Timestamp:    now,
		Type:         property(m.Headers, eventTypeHeaders...),
		Body:         m.Payload,
	}
	if len(m.EventID) > longestName {
		return message{}, fmt.Errorf("event id of %d bytes is longer than %d", len(m.EventID), longestName)
	}
	for _, h := range m.Headers {
		if err := checkHeader(h); err != nil {
			return message{}, fmt.Errorf("header %q: %w", h.Name, err)
		}
		p.Headers[h.Name] = h.Value
	}
	return message{target: t, publishing: p, headerSize: headerSize(&p)}, nil
}

// targetOf reads a topic: exchange/routing.key, an exchange alone, or /queue.
func targetOf(m relay.Message) (target, error) {
	exchange, key, written := strings.Cut(m.Topic, "/")
	if !written {
		key = valueOf(m.Headers, eventTypeHeaders...)
	}
	switch {
	case exchange == "" && key == "" || m.Topic == "":
		return target{}, fmt.Errorf("topic %q names no exchange and no queue", m.Topic)
	case !utf8.ValidString(m.Topic):
		return target{}, fmt.Errorf("topic %q is not valid UTF-8", m.Topic)
	case len(exchange) > longestName:
		return target{}, fmt.Errorf("topic %.50q...: an exchange of %d bytes is longer than %d", m.Topic, len(exchange), longestName)
	case len(key) > longestName:
		return target{}, fmt.Errorf("topic %.50q...: a routing key of %d bytes is longer than %d", m.Topic, len(key), longestName)
	}
	return target{exchange, key}, nil
}

// valueOf returns the value of the first header that has one of the names.
func valueOf(headers []relay.Header, names ...string) string {
	for _, h := range headers {
		for _, name := range names {
			if strings.EqualFold(h.Name, name) {
				return h.Value
			}
		}
	}
	return ""
}

// property is the value of a header that is a property too. What is too long for one stays a header only.
func property(headers []relay.Header, names ...string) string {
	if value := valueOf(headers, names...); len(value) <= longestName {
		return value
	}
	return ""
}

func checkHeader(h relay.Header) error {
	switch {
	case len(h.Name) > longestName:
		return fmt.Errorf("the name of %d bytes is longer than %d", len(h.Name), longestName)
	case h.Name == "CC" || h.Name == "BCC":
		return errors.New("the name is reserved for instructions to the server")
	}
	return nil
}

// headerSize is the size of the payload of the message's header frame.
func headerSize(p *amqp.Publishing) int {
	size := fixedInHeader + fixedMode + fixedTimestamp
	for _, text := range []string{p.ContentType, p.MessageId, p.Type} {
		if text != "" {
			size += lengthOfName + len(text)
		}
	}
	if len(p.Headers) > 0 {
		size += lengthOfTable
	}
	for name, value := range p.Headers {
		size += lengthOfName + len(name) + lengthOfValue + len(value.(string))
	}
	return size
}

// checkSize refuses what can be told to be too large. frameMax is the server's, 0 when it has none.
func (m *message) checkSize(largest, frameMax int) error {
	if size := m.headerSize + len(m.publishing.Body); size > largest {
		return fmt.Errorf("message of %d bytes with its headers is over this sink's largest message of %d: raise it together with the server's max_message_size, or send a reference instead of the data", size, largest)
	}
	if limit := frameMax - frameOverhead; frameMax > 0 && m.headerSize > limit {
		return fmt.Errorf("headers of %d bytes are over the %d that the server's frame_max leaves for them: make them shorter, or raise it", m.headerSize, limit)
	}
	return nil
}
