package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"sync"

	"github.com/postrider/postrider"
)

// line is one line of the ledger.
type line struct {
	EventID   string            `json:"event_id"`
	Key       string            `json:"key"`
	Sequence  int64             `json:"sequence"` // counts the events of the key, from 1
	Type      string            `json:"type"`
	SHA256    string            `json:"sha256"` // of the payload
	Headers   map[string]string `json:"headers,omitempty"`
	Committed bool              `json:"committed"` // false: added and rolled back
}

// ledger writes lines in the order in which their outcomes became known.
type ledger struct {
	mu     sync.Mutex
	file   io.Closer
	buffer *bufio.Writer
}

// openLedger makes a ledger in the file. Without a name it is kept nowhere.
func openLedger(name string) (*ledger, error) {
	if name == "" {
		name = os.DevNull
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &ledger{file: file, buffer: bufio.NewWriter(file)}, nil
}

func (l *ledger) write(events []postrider.Event, committed bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	encoder := json.NewEncoder(l.buffer)
	for _, e := range events {
		digest := sha256.Sum256(e.Payload)
		err := encoder.Encode(line{
			EventID: e.ID, Key: e.AggregateID, Sequence: e.AggregateVersion, Type: e.Type,
			SHA256: hex.EncodeToString(digest[:]), Headers: e.Headers, Committed: committed,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *ledger) close() error {
	if err := l.buffer.Flush(); err != nil {
		return err
	}
	return l.file.Close()
}
