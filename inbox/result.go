package inbox

import (
	"fmt"
	"time"
)

// Outcome tells what became of a message that was taken.
type Outcome string

// The outcomes. Both are successes: acknowledge the message.
const (
	Applied   Outcome = "applied"   // the effect ran
	Duplicate Outcome = "duplicate" // the receipt was there: nothing was done but to count it
)

// Result tells what became of a message: an Outcome or an error.
type Result struct {
	Outcome Outcome // empty with Err

	// Receipt is the one that was written, whose times are not yet known and zero, or the one that a duplicate met, which
	// has counted it.
	Receipt Receipt

	// Err says why the message was not applied. ClassOf tells what that means for it.
	Err error
}

// Receipt says that a consumer has applied a message.
type Receipt struct {
	Consumer string `json:"consumer"`
	DedupKey string `json:"dedup_key"`
	EventID  string `json:"event_id"` // the dedup key, unless the receipt tells another

	// Source is where the message that was applied came from: its coordinates. It is empty where whoever applied it told nothing.
	Source string `json:"source"`

	At              time.Time  `json:"at"`         // when it was applied, by the database's clock, in UTC
	Duplicates      int64      `json:"duplicates"` // how often the message, or one with the same key, came again
	LastDuplicateAt *time.Time `json:"last_duplicate_at"`
}

// parseReceipt reads what the statements return for {receipt}: one text, so that every API of databases can carry it.
func parseReceipt(text string) (Receipt, error) {
	var r Receipt
	var eventID, source *string
	var at, lastDuplicate moment
	if err := parseArray(text, &r.Consumer, &r.DedupKey, &eventID, &source, &at, &r.Duplicates, &lastDuplicate); err != nil {
		return Receipt{}, fmt.Errorf("receipt: %w", err)
	}
	r.EventID, r.At, r.LastDuplicateAt = r.DedupKey, *at.at, lastDuplicate.at
	if eventID != nil {
		r.EventID = *eventID
	}
	if source != nil {
		r.Source = *source
	}
	return r, nil
}
