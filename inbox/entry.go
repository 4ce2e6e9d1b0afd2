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
func (id *identity) entryOf(m Message) (*entry, error) {
	eventID := m.EventID()
	key := eventID
	if id.dedupKey != nil {
		var err error
		if key, err = id.dedupKey(m); err != nil {
			return nil, malformedUnlessClassified(fmt.Errorf("dedup key: %w", err))
		}
	} else if eventID == "" {
		return nil, &KeyError{Consumer: id.consumer, Problem: "the message carries no event id: its producer must send one, as header " +
			eventIDHeaders[0] + " for example, or Config.DedupKey must find a key elsewhere"}
	}
	if problem := problemOf(key); problem != "" {
		return nil, &KeyError{Consumer: id.consumer, DedupKey: key, Problem: "the dedup key " + problem}
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

// sortByKey brings entries into the order of their keys: whoever locks several locks them in that order.
func sortByKey(entries []*entry) {
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.DedupKey, b.DedupKey) })
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

// writerTo writes receipts in one statement.
func (in *Inbox) writerTo(tx transaction) writeFunc {
	return func(ctx context.Context, entries []*entry) (map[string]Receipt, error) {
		return in.writeReceipts(ctx, tx, entries)
	}
}

func (in *Inbox) writeReceipts(ctx context.Context, tx transaction, entries []*entry) (met map[string]Receipt, err error) {
	sortByKey(entries)
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

// readMet returns the receipts of entries, by their keys.
func (in *Inbox) readMet(ctx context.Context, tx transaction, entries []*entry) (map[string]Receipt, error) {
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	found, err := in.readReceipts(ctx, tx.query, in.met, string(text), in.consumer)
	return byKey(found), err
}

func byKey(receipts []Receipt) map[string]Receipt {
	found := make(map[string]Receipt, len(receipts))
	for _, r := range receipts {
		found[r.DedupKey] = r
	}
	return found
}

// written is the receipt of an entry that was new.
func (id *identity) written(e *entry) Receipt {
	eventID := e.EventID
	if eventID == "" {
		eventID = e.DedupKey
	}
	return Receipt{Consumer: id.consumer, DedupKey: e.DedupKey, EventID: eventID, Source: e.Source}
}
