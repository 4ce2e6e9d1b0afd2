package parking

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/postrider/postrider/inbox"
)

// envelope is a message without its payload, as it stands in the table.
type envelope struct {
	Topic       string     `json:"topic"`
	Partition   string     `json:"partition,omitempty"`
	Offset      string     `json:"offset,omitempty"`
	Coordinates string     `json:"coordinates"`
	Key         text       `json:"key"`
	Headers     [][2]text  `json:"headers"`
	At          *time.Time `json:"at,omitempty"`
}

// text is a string of any bytes: as it is where it is valid UTF-8, and else as {"base64": ...}.
type text string

type base64Text struct {
	Base64 []byte `json:"base64"`
}

func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(base64Text{[]byte(t)})
}

func (t *text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var b base64Text
		err := json.Unmarshal(data, &b)
		*t = text(b.Base64)
		return err
	}
	return json.Unmarshal(data, (*string)(t))
}

func envelopeOf(m inbox.Message) (string, error) {
	e := envelope{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Coordinates: m.Coordinates, Key: text(m.Key), Headers: [][2]text{}}
	for _, h := range m.Headers {
		e.Headers = append(e.Headers, [2]text{text(h.Name), text(h.Value)})
	}
	if !m.At.IsZero() {
		e.At = &m.At
	}
	data, err := json.Marshal(e)
	return string(data), err
}

func readEnvelope(data string, payload []byte) (inbox.Message, error) {
	var e envelope
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return inbox.Message{}, err
	}
	m := inbox.Message{Topic: e.Topic, Partition: e.Partition, Offset: e.Offset, Coordinates: e.Coordinates, Key: string(e.Key), Payload: payload}
	for _, h := range e.Headers {
		m.Headers = append(m.Headers, inbox.Header{Name: string(h[0]), Value: string(h[1])})
	}
	if e.At != nil {
		m.At = *e.At
	}
	return m, nil
}
