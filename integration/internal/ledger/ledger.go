// Package ledger compares the events that producers committed with the messages that arrived at a broker.
package ledger

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
)

// Event is one line of a producer's ledger: an event that was added to the outbox.
type Event struct {
	EventID   string            `json:"event_id"`
	Key       string            `json:"key"`
	Sequence  int64             `json:"sequence"` // counts the committed events of the key in the order of their commits
	Type      string            `json:"type"`
	SHA256    string            `json:"sha256"` // of the payload
	Headers   map[string]string `json:"headers"`
	Committed bool              `json:"committed"` // false: its transaction was rolled back
}

// Message is what a consumer got. The messages of a partition have ascending offsets.
type Message struct {
	Topic     string
	Partition int
	Offset    int64
	Key       string
	Headers   []Header
	Payload   []byte
}

// Header is one header of a message.
type Header struct{ Name, Value string }

// Header returns the value of the first header of that name, empty when there is none.
func (m *Message) Header(name string) string {
	for _, h := range m.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// Digest is the form in which ledgers name a payload.
func Digest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// Read returns the events of ledger files. It fails on a file that cannot be read or is no ledger.
func Read(files ...string) ([]Event, error) {
	var events []Event
	for _, name := range files {
		some, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("ledger %s: %w", name, err)
		}
		events = append(events, some...)
	}
	return events, nil
}

func readFile(name string) ([]Event, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var events []Event
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}
