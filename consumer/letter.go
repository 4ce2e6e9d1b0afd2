package consumer

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/sendid"
	"github.com/postrider/postrider/relay"
)

// maxFailureMessage bounds HeaderFailureMessage, in bytes.
const maxFailureMessage = 1 << 10

const timeFormat = "2006-01-02T15:04:05.000Z"

// failure is what is known of why a message is not applied.
type failure struct {
	err      error
	attempts int // tries in all
	first    time.Time
	last     time.Time
}

// onRetryTopic says whether the message was read from a retry topic. Dead letters do not have the header, so one that was sent
// back to its origin topic starts anew.
func onRetryTopic(m inbox.Message) bool { return m.Header(HeaderRetryAt) != "" }

// originTopic is where the message was first read.
func originTopic(m inbox.Message) string {
	if onRetryTopic(m) {
		if topic := m.Header(HeaderOriginTopic); topic != "" {
			return topic
		}
	}
	return m.Topic
}

// pastOf returns what the headers of a message on a retry topic tell of its failures; others have none.
func pastOf(m inbox.Message) (attempts int, first, retryAt time.Time) {
	if !onRetryTopic(m) {
		return 0, time.Time{}, time.Time{}
	}
	attempts, err := strconv.Atoi(m.Header(HeaderFailureAttempts))
	if err != nil || attempts < 0 {
		attempts = 0
	}
	first, _ = time.Parse(time.RFC3339, m.Header(HeaderFailureFirstAt)) // one that is broken counts from now
	retryAt, _ = time.Parse(time.RFC3339, m.Header(HeaderRetryAt))      // one that is broken is due
	return attempts, first, retryAt
}

// forAnother says whether the message is on its way through the retry topics of another consumer of the same topic.
func forAnother(m inbox.Message, consumer string) bool {
	owner := m.Header(HeaderFailureConsumer)
	return onRetryTopic(m) && owner != "" && owner != consumer
}

// retryLetter is the message for the retry topic of a delay.
func retryLetter(m inbox.Message, consumer string, f failure, delay time.Duration) relay.Message {
	headers := failureHeaders(m, consumer, f)
	headers = append(headers, relay.Header{Name: HeaderRetryAt, Value: stamp(f.last.Add(delay))})
	id := fmt.Sprintf("%s%s%s:%d:%s", m.EventID(), sendid.Retry, consumer, f.attempts, m.Coordinates)
	return relay.Message{EventID: id, Key: m.Key, Topic: RetryTopic(originTopic(m), delay), Headers: headers, Payload: m.Payload}
}

// deadLetter is the message for the dead-letter topic. The same failure written twice has the same id, so that it is one where the
// broker tells duplicates.
func deadLetter(m inbox.Message, consumer string, f failure) relay.Message {
	id := fmt.Sprintf("%s%s%s:%s", m.EventID(), sendid.DeadLetter, consumer, m.Coordinates)
	return relay.Message{
		EventID: id, Key: m.Key, Topic: DeadLetterTopic(originTopic(m)), Headers: failureHeaders(m, consumer, f), Payload: m.Payload,
	}
}

// failureHeaders are the message's own, each name once as sinks want it, and then those that tell of the failure.
func failureHeaders(m inbox.Message, consumer string, f failure) []relay.Header {
	added := append(originHeaders(m),
		relay.Header{Name: HeaderFailureConsumer, Value: consumer},
		relay.Header{Name: HeaderFailureClass, Value: string(inbox.ClassOf(f.err))},
		relay.Header{Name: HeaderFailureMessage, Value: cleanError(f.err)},
		relay.Header{Name: HeaderFailureAttempts, Value: strconv.Itoa(f.attempts)},
		relay.Header{Name: HeaderFailureFirstAt, Value: stamp(f.first)},
		relay.Header{Name: HeaderFailureLastAt, Value: stamp(f.last)},
	)
	seen := make(map[string]bool, len(m.Headers)+len(added))
	for _, name := range ownHeaders {
		seen[strings.ToLower(name)] = true
	}
	headers := make([]relay.Header, 0, len(m.Headers)+len(added)+1)
	for _, h := range m.Headers {
		if name := strings.ToLower(h.Name); !seen[name] {
			seen[name] = true
			headers = append(headers, relay.Header(h))
		}
	}
	return append(headers, added...)
}

// ownHeaders are those that the consumer adds.
var ownHeaders = []string{
	HeaderOriginTopic, HeaderOriginPartition, HeaderOriginOffset, HeaderFailureConsumer, HeaderFailureClass, HeaderFailureMessage,
	HeaderFailureAttempts, HeaderFailureFirstAt, HeaderFailureLastAt, HeaderRetryAt,
}

func originHeaders(m inbox.Message) []relay.Header {
	topic, partition, offset := m.Topic, m.Partition, m.Offset
	if onRetryTopic(m) {
		topic, partition, offset = originTopic(m), m.Header(HeaderOriginPartition), m.Header(HeaderOriginOffset)
	}
	headers := []relay.Header{{Name: HeaderOriginTopic, Value: topic}}
	if partition != "" {
		headers = append(headers, relay.Header{Name: HeaderOriginPartition, Value: partition})
	}
	if offset != "" {
		headers = append(headers, relay.Header{Name: HeaderOriginOffset, Value: offset})
	}
	return headers
}

// withoutFailureMessage cuts the error, the only header whose length the message does not decide.
func withoutFailureMessage(m relay.Message) relay.Message {
	headers := make([]relay.Header, 0, len(m.Headers))
	for _, h := range m.Headers {
		if h.Name != HeaderFailureMessage {
			headers = append(headers, h)
		}
	}
	m.Headers = headers
	return m
}

func stamp(t time.Time) string { return t.UTC().Format(timeFormat) }

// cleanError returns the text of err, fit for a header of every broker.
func cleanError(err error) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	if len(text) <= maxFailureMessage {
		return text
	}
	end := maxFailureMessage
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
