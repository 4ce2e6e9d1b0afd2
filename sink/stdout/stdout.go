// Package stdout writes events as lines of JSON, for trying things out and for pipes.
//
// Each event is one line:
//
//	{"topic":"orders","key":"42","headers":{"X-Event-Id":"..."},"payload":{"total":7}}
//
// The payload stands in the line exactly as it is when it is JSON in valid UTF-8 without line breaks. Any other
// payload stands in payload_base64 instead.
//
// An event counts as published once the writer has taken its line. Whether that is durable depends on the writer: a
// pipe or a terminal keeps nothing. An event that is sent again is written again.
package stdout

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

// Sink writes to an io.Writer. It implements relay.Sink.
type Sink struct {
	mu    sync.Mutex
	w     io.Writer
	lines int  // written so far
	torn  bool // the last line was not written to its end
}

var _ relay.Sink = (*Sink)(nil)

// New returns a sink that writes to w, each batch by one call of Write. It does not close w.
func New(w io.Writer) *Sink { return &Sink{w: w} }

// Publish writes the batch. What the writer did not take is unavailable. It blocks as long as the writer does.
func (s *Sink) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := keyorder.New(batch)
	if err := ctx.Err(); err != nil {
		b.SettleRest(relay.Unavailable(fmt.Errorf("stdout: %w", err)))
		return b.Outcomes()
	}
	text, ends := s.encode(batch)
	written, err := s.w.Write(text)
	for i, end := range ends {
		if end > written {
			break
		}
		s.lines++
		b.Settle(i, relay.Published("stdout:"+strconv.Itoa(s.lines)))
	}
	if written > 0 {
		s.torn = text[written-1] != '\n'
	}
	if err != nil {
		b.SettleRest(relay.Unavailable(fmt.Errorf("stdout: %w", err)))
	}
	return b.Outcomes()
}

// encode returns the batch as lines, and the place at which each of them ends.
func (s *Sink) encode(batch []relay.Message) (text []byte, ends []int) {
	if s.torn {
		text = append(text, '\n')
	}
	ends = make([]int, len(batch))
	for i, m := range batch {
		text = append(appendMessage(text, m), '\n')
		ends[i] = len(text)
	}
	return text, ends
}

func appendMessage(text []byte, m relay.Message) []byte {
	text = appendString(append(text, `{"topic":`...), m.Topic)
	text = appendString(append(text, `,"key":`...), m.Key)
	text = append(text, `,"headers":{`...)
	for i, h := range m.Headers {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendString(text, h.Name), ':')
		text = appendString(text, h.Value)
	}
	text = append(text, '}')
	if isLine(m.Payload) {
		text = append(append(text, `,"payload":`...), m.Payload...)
	} else {
		text = base64.StdEncoding.AppendEncode(append(text, `,"payload_base64":"`...), m.Payload)
		text = append(text, '"')
	}
	return append(text, '}')
}

// isLine tells whether a payload can stand in a line of JSON as it is.
func isLine(payload []byte) bool {
	return json.Valid(payload) && utf8.Valid(payload) && !bytes.ContainsAny(payload, "\r\n")
}

func appendString(text []byte, s string) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string always encodes
	return append(text, bytes.TrimRight(buffer.Bytes(), "\n")...)
}

// Close does nothing.
func (s *Sink) Close() error { return nil }
