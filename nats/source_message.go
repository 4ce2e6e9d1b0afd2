package nats

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/sendid"
	"github.com/postrider/postrider/relay"
)

// prefixInstructions begins the names of headers that are instructions to the server, or its own.
const prefixInstructions = "nats-"

// decode turns what was delivered into a message. See the package comment for the rules.
func decode(m jetstream.Msg, meta *jetstream.MsgMetadata) inbox.Message {
	return messageAt(meta.Stream, meta.Sequence.Stream, m.Subject(), meta.Timestamp, m.Headers(), m.Data())
}

func messageAt(stream string, sequence uint64, subject string, at time.Time, headers nats.Header, payload []byte) inbox.Message {
	m := inbox.Message{
		Topic:       subject,
		Partition:   stream,
		Offset:      strconv.FormatUint(sequence, 10),
		Coordinates: fmt.Sprintf("nats:%s@%d", stream, sequence),
		Headers:     headersOf(headers),
		Payload:     payload,
		At:          at,
	}
	if id := sendid.EventID(headers.Get(jetstream.MsgIDHeader)); id != "" && m.EventID() == "" {
		m.Headers = append(m.Headers, inbox.Header{Name: relay.HeaderEventID, Value: id})
	}
	return m
}

// headersOf are sorted by name. Those for the server are left out: a sink could not publish them again.
func headersOf(all nats.Header) []inbox.Header {
	headers := make([]inbox.Header, 0, len(all)+1)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(name) >= len(prefixInstructions) && strings.EqualFold(name[:len(prefixInstructions)], prefixInstructions) {
			continue
		}
		for _, value := range all[name] {
			headers = append(headers, inbox.Header{Name: name, Value: value})
		}
	}
	return headers
}
