package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

// Type is what sinks of this kind are called, and what their coordinates begin with.
const Type = "outbox"

// Config says where copies go. All fields but Committed must be set.
type Config struct {
	DB      *sql.DB // the caller closes it after the relay has ended
	Dialect postrider.Dialect
	Tables  []string // the outboxes, each with or without its schema; created with a binary payload column

	// Committed, when set, is called with a table after copies were committed to it, so that its relay can be told
	// (relay.Relay.Hint). It must be quick and must not block.
	Committed func(table string)
}

// Topic is the topic under which Publish hands an event over to tables.
func Topic(tables ...string) string { return strings.Join(tables, ",") }

// Sink hands events over to other outboxes. It implements relay.Sink. Its topics are those that Topic returns, so a
// relay.Route that ends here has KeepTopic set.
type Sink struct {
	config Config
	rules  postrider.Config // what an event must fulfil
	tables []table
	begin  *sql.TxOptions
	most   atomic.Int64 // events of one transaction, where the database was too slow for a whole batch
}

var _ relay.Sink = (*Sink)(nil)

type table struct {
	name   string
	outbox *postrider.Outbox
}

// Open returns a Sink, or an error with every mistake in the configuration. It does not connect.
func Open(c Config) (*Sink, error) {
	var mistakes []error
	if c.DB == nil {
		mistakes = append(mistakes, errors.New("DB is missing"))
	}
	if len(c.Tables) == 0 {
		mistakes = append(mistakes, errors.New("Tables is empty: there is nowhere to hand events over to"))
	}
	// What is in an outbox has passed the limit on payloads of whoever added it, if there was one.
	s := &Sink{config: c, rules: postrider.Config{Dialect: c.Dialect, Binary: true, MaxPayload: math.MaxInt}}
	for i, name := range c.Tables {
		if slices.Contains(c.Tables[:i], name) {
			mistakes = append(mistakes, fmt.Errorf("Tables[%d]: %q is there twice", i, name))
		}
		rules := s.rules
		rules.Table = name
		made, err := postrider.New(rules)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("Tables[%d]: %w", i, err))
		}
		s.tables = append(s.tables, table{name, made})
	}
	s.most.Store(math.MaxInt32)
	if c.Dialect == postrider.MySQL {
		// REPEATABLE READ, its default, would lock the gaps in which others insert.
		s.begin = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("outbox sink: %w", errors.Join(mistakes...))
	}
	return s, nil
}

// Publish hands the batch over in one transaction, or in several smaller ones while the database does not take a whole batch
// before ctx ends. An event that is not fit to be added comes back as permanent; an error of
// the database as unavailable. When the database refuses the batch but takes others of its events, the guilty one is found and
// comes back as retry.
func (s *Sink) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	h := &handover{sink: s, batch: batch, progress: keyorder.New(batch), places: make([][]bool, len(batch))}
	h.prepare(ctx)
	// A single guilty event is found within this many transactions that fail in a row.
	h.patience = bits.Len(uint(len(batch))) + 1
	err := h.handAll(ctx, slices.Clone(h.progress.Pending()))
	if err == nil {
		err = h.witness(ctx)
	}
	if err != nil {
		h.progress.SettleRest(relay.Unavailable(fmt.Errorf("outbox: hand events over: %w", err)))
	}
	return h.progress.Outcomes()
}

// Close does nothing: the caller closes Config.DB.
func (s *Sink) Close() error { return nil }

// handover is one call of Publish.
type handover struct {
	sink     *Sink
	batch    []relay.Message
	copies   []postrider.Event // by message
	places   [][]bool          // by message and table: whether a copy goes there
	progress *keyorder.Batch

	patience int           // after this many transactions that failed in a row the database is not asked any more
	inVain   int           // transactions that failed in a row
	handed   []int         // messages of the last transaction that committed
	suspects map[int]error // messages that the database refused alone, while it is not shown that it takes others
}

// prepare makes the copies and settles the messages that cannot have one.
func (h *handover) prepare(ctx context.Context) {
	h.suspects = make(map[int]error)
	h.copies = make([]postrider.Event, len(h.batch))
	for i, m := range h.batch {
		places, err := h.sink.placesOf(m.Topic)
		if m.Event == nil {
			err = errors.New("the message carries no event, so there is nothing to hand over")
		}
		if err != nil {
			h.progress.Settle(i, relay.Permanent(fmt.Errorf("outbox: %w", err)))
			continue
		}
		h.copies[i], h.places[i] = copyOf(m.Event), places
		if _, err := postrider.Prepare(ctx, h.sink.rules, h.copies[i:i+1]); err != nil {
			h.progress.Settle(i, relay.Permanent(fmt.Errorf("outbox: another outbox does not take the event: %w", err)))
		}
	}
}

// placesOf tells which tables a topic names.
func (s *Sink) placesOf(topic string) ([]bool, error) {
	places := make([]bool, len(s.tables))
	for name := range strings.SplitSeq(topic, ",") {
		i := slices.IndexFunc(s.tables, func(t table) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is none of the outboxes that events are handed over to: correct the topic of the route and redrive", name)
		}
		places[i] = true
	}
	return places, nil
}

// handAll hands messages over, and learns how many the database takes in time.
func (h *handover) handAll(ctx context.Context, messages []int) error {
	most := &h.sink.most
	size := int(most.Load())
	for part := range slices.Chunk(messages, size) {
		if err := h.hand(ctx, part); err != nil {
			if ctx.Err() != nil && len(h.handed) == 0 {
				most.Store(int64(max(1, len(part)/2)))
			}
			return err
		}
	}
	if size < len(messages) {
		most.Store(int64(2 * size))
	}
	return nil
}

// hand hands messages over, all together if the database takes them. What it refuses is halved, until the messages remain that
// it refuses alone: these become suspects. It returns an error when it gave up.
func (h *handover) hand(ctx context.Context, messages []int) error {
	messages = h.stillPending(messages)
	if len(messages) == 0 {
		return nil
	}
	filled, err := h.transact(ctx, messages, (*sql.Tx).Commit)
	if err == nil {
		h.committed(messages, filled)
		return nil
	}
	h.inVain++
	switch {
	case ctx.Err() != nil || h.inVain >= h.patience:
		return err
	case len(messages) == 1:
		h.suspects[messages[0]] = err
		h.progress.Settle(messages[0], relay.Unavailable(err)) // and with it the later ones of its key
		return nil
	}
	half := len(messages) / 2
	if err := h.hand(ctx, messages[:half]); err != nil {
		return err
	}
	return h.hand(ctx, messages[half:])
}

func (h *handover) committed(messages []int, tables []string) {
	h.inVain, h.handed = 0, messages
	for _, i := range messages {
		h.progress.Settle(i, relay.Published(Type+":"+h.batch[i].Topic))
	}
	if tell := h.sink.config.Committed; tell != nil {
		for _, table := range tables {
			tell(table)
		}
	}
}

// stillPending leaves out what was settled, or skipped, meanwhile.
func (h *handover) stillPending(messages []int) []int {
	pending := h.progress.Pending()
	return slices.DeleteFunc(slices.Clone(messages), func(i int) bool {
		_, found := slices.BinarySearch(pending, i)
		return !found
	})
}

// witness decides about the suspects. An event is guilty only if the database takes others after it has refused this one: one
// that was handed over already is added again. It is rolled back, since its copy may be published and gone by now.
func (h *handover) witness(ctx context.Context) error {
	if len(h.suspects) == 0 || len(h.handed) == 0 {
		return nil
	}
	if _, err := h.transact(ctx, h.handed[:1], (*sql.Tx).Rollback); err != nil {
		return err
	}
	for i, err := range h.suspects {
		h.progress.Settle(i, relay.Retry(fmt.Errorf("outbox: the database takes other events, but not this one: %w", err)))
	}
	return nil
}

// transact adds the copies of messages in one transaction, and returns the tables that got any. They stand in the same order in
// each transaction, so that two never wait for each other's tables.
func (h *handover) transact(ctx context.Context, messages []int, end func(*sql.Tx) error) (filled []string, err error) {
	tx, err := h.sink.config.DB.BeginTx(ctx, h.sink.begin)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // changes nothing after the end
	for place, t := range h.sink.tables {
		var events []postrider.Event
		for _, i := range messages {
			if h.places[i][place] {
				events = append(events, h.copies[i])
			}
		}
		if len(events) == 0 {
			continue
		}
		filled = append(filled, t.name)
		if err := t.outbox.AddNew(ctx, tx, events...); err != nil {
			return nil, err
		}
	}
	return filled, end(tx)
}
