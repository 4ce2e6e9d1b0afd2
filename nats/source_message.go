package nats

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
)

// prefixInstructions begins the names of headers that are instructions to the server, or its own.
const prefixInstructions = "nats-"

// decode turns what was delivered into a message. See the package comment for the rules.
func decode(m jetstream.Msg, meta *jetstream.MsgMetadata) inbox.Message {
	decoded := inbox.Message{
		Topic:       m.Subject(),
		Partition:   meta.Stream,
		Offset:      strconv.FormatUint(meta.Sequence.Stream, 10),
		Coordinates: fmt.Sprintf("nats:%s@%d", meta.Stream, meta.Sequence.Stream),
		Headers:     headersOf(m.Headers()),
		Payload:     m.Data(),
		At:          meta.Timestamp,
	}
	if id := m.Headers().Get(jetstream.MsgIDHeader); id != "" && decoded.EventID() == "" {
		decoded.Headers = append(decoded.Headers, inbox.Header{Name: relay.HeaderEventID, Value: id})
	}
	return decoded
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
