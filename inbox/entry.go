package inbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// entry is a receipt that is to be written, in the parameter of the statement.
type entry struct {
	DedupKey   string `json:"dedup_key"`
	EventID    string `json:"event_id,omitempty"` // where it differs
	Source     string `json:"source"`
	Duplicates int64  `json:"duplicates"` // that came with it
}

// entryOf returns the receipt for a message, or a *KeyError or another error of ClassMalformed.
func (in *Inbox) entryOf(m Message) (*entry, error) {
	eventID := m.EventID()
	key := eventID
	if in.dedupKey != nil {
		var err error
		if key, err = in.dedupKey(m); err != nil {
			return nil, malformedUnlessClassified(fmt.Errorf("dedup key: %w", err))
		}
	} else if eventID == "" {
		return nil, &KeyError{Consumer: in.consumer, Problem: "the message carries no event id: its producer must send one, as header " +
			eventIDHeaders[0] + " for example, or Config.DedupKey must find a key elsewhere"}
	}
	if problem := problemOf(key); problem != "" {
		return nil, &KeyError{Consumer: in.consumer, DedupKey: key, Problem: "the dedup key " + problem}
	}
	if eventID == key || problemOf(eventID) != "" {
		eventID = ""
	}
	return &entry{DedupKey: key, EventID: eventID, Source: printable(m.Coordinates)}, nil
}

func malformedUnlessClassified(err error) error {
	if ClassOf(err) != ClassRetry {
		return err
	}
	return Malformed(err)
}

// printable is text as every database takes it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// writeReceipts writes receipts in one statement and returns those that it met, by their keys. No two entries have the same
// key; it brings them into the order of their keys.
func (in *Inbox) writeReceipts(ctx context.Context, tx transaction, entries []*entry) (met map[string]Receipt, err error) {
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.DedupKey, b.DedupKey) })
	found, err := in.receiveAll(ctx, tx, entries)
	if err != nil {
		return nil, &databaseError{in.fail("write the receipt to", err)}
	}
	sent := make(map[string]int64, len(entries))
	for _, e := range entries {
		sent[e.DedupKey] = e.Duplicates
	}
	met = make(map[string]Receipt)
	for _, r := range found {
		if r.Duplicates > sent[r.DedupKey] {
			met[r.DedupKey] = r
		}
	}
	return met, nil
}

// receiveAll returns receipts among which are all that were met.
func (in *Inbox) receiveAll(ctx context.Context, tx transaction, entries []*entry) ([]Receipt, error) {
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	if !in.traits.counts {
		return in.readReceipts(ctx, tx.query, in.receive, in.consumer, string(text))
	}
	counted, err := tx.exec.ExecContext(ctx, in.receive, in.consumer, string(text))
	if err != nil {
		return nil, err
	}
	if n, err := counted.RowsAffected(); err != nil || n == int64(len(entries)) {
		return nil, err // all of them are new
	}
	return in.readReceipts(ctx, tx.query, in.met, string(text), in.consumer)
}

// written is the receipt of an entry that was new.
func (in *Inbox) written(e *entry) Receipt {
	eventID := e.EventID
	if eventID == "" {
		eventID = e.DedupKey
	}
	return Receipt{Consumer: in.consumer, DedupKey: e.DedupKey, EventID: eventID, Source: e.Source}
}
