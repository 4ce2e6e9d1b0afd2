package inbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// countLimit bounds how many receipts of a consumer are counted.
const countLimit = 10_000

// ConsumerStatus is what the tables tell of a consumer.
type ConsumerStatus struct {
	Consumer string `json:"consumer"`

	// Receipts are counted up to 10,000, so that looking does not scan the table; More says that there are more.
	Receipts int64 `json:"receipts"`
	More     bool  `json:"more"`

	// Duplicates is how many were absorbed by those receipts, which are the newest.
	Duplicates int64 `json:"duplicates"`

	Oldest        *time.Time `json:"oldest"`         // when the oldest receipt was written; nil when there is none
	WindowSeconds *int64     `json:"window_seconds"` // nil for a consumer that never cleans
	CleanedAt     *time.Time `json:"cleaned_at"`     // nil when it never has
}

// Consumers lists the consumers that have receipts or have cleaned, by name.
func (t *Tables) Consumers(ctx context.Context, db *sql.DB) ([]ConsumerStatus, error) {
	consumers, err := t.consumers(ctx, queryOf(db))
	if err != nil {
		return nil, t.fail("list the consumers of", err)
	}
	return consumers, nil
}

func (t *Tables) consumers(ctx context.Context, query queryFunc) ([]ConsumerStatus, error) {
	texts, err := query(ctx, t.statement("consumers"))
	if err != nil {
		return nil, err
	}
	consumers := make([]ConsumerStatus, len(texts))
	for i, text := range texts {
		if err := t.status(ctx, query, text, &consumers[i]); err != nil {
			return nil, err
		}
	}
	return consumers, nil
}

func (t *Tables) status(ctx context.Context, query queryFunc, text string, c *ConsumerStatus) error {
	var cleaned, oldest moment
	if err := parseArray(text, &c.Consumer, &c.WindowSeconds, &cleaned); err != nil {
		return err
	}
	counts, err := query(ctx, t.statement("count"), c.Consumer, c.Consumer, countLimit+1) // one more shows that there are more
	if err != nil {
		return err
	}
	if err := parseArray(counts[0], &c.Receipts, &c.Duplicates, &oldest); err != nil {
		return err
	}
	c.CleanedAt, c.Oldest = cleaned.at, oldest.at
	if c.Receipts > countLimit {
		c.Receipts, c.More = countLimit, true
	}
	return nil
}

// parseArray reads a JSON array, which is how statements return several values as one text.
func parseArray(text string, fields ...any) error {
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return fmt.Errorf("%.200q: %w", text, err)
	}
	return nil
}

// moment is a time as statements return it: in UTC, or null.
type moment struct{ at *time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (m *moment) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		return err
	}
	at, err := time.Parse(time.DateTime, *text)
	m.at = &at
	return err
}
