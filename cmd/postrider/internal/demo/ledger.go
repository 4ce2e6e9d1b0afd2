package demo

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/relay"
)

// Ledger holds what was committed against what became of it.
type Ledger struct {
	Committed           int     `json:"committed"`            // events of committed transactions
	RolledBack          int     `json:"rolled_back"`          // events of transactions that were rolled back
	Published           int     `json:"published"`            // different events in the stream
	Applied             int     `json:"applied"`              // different events that the consumer applied
	DuplicatesPublished int     `json:"duplicates_published"` // messages in the stream beyond the first of each event
	DuplicatesApplied   int     `json:"duplicates_applied"`   // effects beyond the first of each event
	Missing             int     `json:"missing"`              // committed events that are not in the stream, or not applied
	Ghosts              int     `json:"ghosts"`               // events in the stream, or applied, that were never committed
	OutOfOrder          int     `json:"out_of_order"`         // first messages of events that come behind a later one of their key
	Seconds             float64 `json:"seconds"`
}

// Sound says that nothing is missing, made up or out of order, and nothing was applied twice.
func (l Ledger) Sound() bool {
	return l.Missing+l.Ghosts+l.OutOfOrder+l.DuplicatesApplied == 0
}

// message is what the ledger needs of a message in the stream.
type message struct{ eventID, key string }

// audit reads what was committed from the application's own tables, what was published from the stream, and what was
// applied from the consumer's table. It takes no relay's word for anything.
func audit(ctx context.Context, db *sql.DB, stream jetstream.Stream) (Ledger, error) {
	committed, err := readVersions(ctx, db)
	if err != nil {
		return Ledger{}, fmt.Errorf("read what was committed: %w", err)
	}
	applied, err := readApplied(ctx, db)
	if err != nil {
		return Ledger{}, fmt.Errorf("read what was applied: %w", err)
	}
	messages, err := readStream(ctx, stream)
	if err != nil {
		return Ledger{}, fmt.Errorf("read the stream: %w", err)
	}
	l := compare(committed, messages, applied)
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM rolled_back`).Scan(&l.RolledBack)
	return l, err
}

// compare makes the ledger from the versions of the committed events by event id, the messages in the order of the
// stream, and how often each event was applied.
func compare(committed map[string]int, messages []message, applied map[string]int) Ledger {
	l := Ledger{Committed: len(committed), Applied: len(applied)}
	published := make(map[string]bool)
	ghosts := make(map[string]bool)
	latest := make(map[string]int) // by key
	for _, m := range messages {
		if published[m.eventID] {
			l.DuplicatesPublished++
			continue
		}
		published[m.eventID] = true
		version, ok := committed[m.eventID]
		switch {
		case !ok:
			ghosts[m.eventID] = true
		case version < latest[m.key]:
			l.OutOfOrder++
		default:
			latest[m.key] = version
		}
	}
	for eventID, times := range applied {
		l.DuplicatesApplied += times - 1
		if _, ok := committed[eventID]; !ok {
			ghosts[eventID] = true
		}
	}
	for eventID := range committed {
		if !published[eventID] || applied[eventID] == 0 {
			l.Missing++
		}
	}
	l.Published, l.Ghosts = len(published), len(ghosts)
	return l
}

func readVersions(ctx context.Context, db *sql.DB) (map[string]int, error) {
	return readCounts(ctx, db, `SELECT event_id, version FROM order_changes`)
}

func readApplied(ctx context.Context, db *sql.DB) (map[string]int, error) {
	return readCounts(ctx, db, `SELECT event_id, count(*) FROM shipments GROUP BY event_id`)
}

func readCounts(ctx context.Context, db *sql.DB, query string) (map[string]int, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := make(map[string]int)
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		counts[id] = n
	}
	return counts, rows.Err()
}

// readStream reads every message that is in the stream now, in its order, with a consumer of its own.
func readStream(ctx context.Context, stream jetstream.Stream) ([]message, error) {
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.State.Msgs == 0 {
		return nil, nil
	}
	ordered, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	incoming, err := ordered.Messages()
	if err != nil {
		return nil, err
	}
	defer incoming.Stop()
	var messages []message
	for {
		m, err := incoming.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, err
		}
		h := m.Headers()
		messages = append(messages, message{header(h, relay.HeaderEventID), header(h, relay.HeaderAggregateID)})
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		if meta.Sequence.Stream >= info.State.LastSeq {
			return messages, nil
		}
	}
}
