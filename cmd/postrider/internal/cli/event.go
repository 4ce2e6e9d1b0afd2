package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/operator"
)

// showsEvent completes a command that shows one event.
func (c *command) showsEvent(show func(foundEvent) error, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withOutbox(func(_ *config.Config, o *wiring.Outbox) error {
			ctx, cancel := looking(cmd)
			defer cancel()
			found, err := findEvent(ctx, o, args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(found.json())
			}
			return show(found)
		})
	}
	return c.printsJSON(cmd)
}

// foundEvent is all that is known of one event. Its row is a copy when only copies are left.
type foundEvent struct {
	row      operator.Row
	attempts []operator.Attempt
	receipts []inbox.Receipt
	copies   []wiring.Copy // at the destinations of an event that goes to several sinks
}

func findEvent(ctx context.Context, o *wiring.Outbox, ref string) (foundEvent, error) {
	row, err := o.Store.Event(ctx, ref)
	if errors.Is(err, operator.ErrNotFound) {
		return findCopies(ctx, o, ref, err)
	}
	if err != nil {
		return foundEvent{}, err
	}
	attempts, err := o.Store.Attempts(ctx, row.ID)
	if err != nil {
		return foundEvent{}, err
	}
	copies, err := o.Copies(ctx, row.EventID)
	if err != nil {
		return foundEvent{}, err
	}
	receipts, err := o.Receipts(ctx, row.EventID)
	return foundEvent{row, attempts, receipts, copies}, err
}

// findCopies finds an event that is no longer in the outbox, but was handed over. An outbox id says nothing elsewhere.
func findCopies(ctx context.Context, o *wiring.Outbox, ref string, notFound error) (foundEvent, error) {
	if _, err := strconv.ParseUint(ref, 10, 64); err == nil {
		return foundEvent{}, notFound
	}
	copies, err := o.Copies(ctx, ref)
	if err != nil {
		return foundEvent{}, err
	}
	if len(copies) == 0 {
		return foundEvent{}, notFound
	}
	receipts, err := o.Receipts(ctx, ref)
	return foundEvent{row: copies[0].Row, receipts: receipts, copies: copies}, err
}

// eventJSON is an event's columns. The payload stands as it is when it is JSON, else as a string in base64.
type eventJSON struct {
	operator.Row
	Payload         json.RawMessage `json:"payload"`
	PayloadEncoding string          `json:"payload_encoding"` // json or base64
}

func newEventJSON(r operator.Row) eventJSON {
	if isJSON(r.Payload) {
		return eventJSON{r, r.Payload, "json"}
	}
	return eventJSON{r, strconv.AppendQuote(nil, base64.StdEncoding.EncodeToString(r.Payload)), "base64"}
}

func isJSON(payload []byte) bool { return utf8.Valid(payload) && json.Valid(payload) }

func (f foundEvent) json() any {
	return struct {
		eventJSON
		Attempts []operator.Attempt `json:"attempts"`
		Receipts []inbox.Receipt    `json:"receipts"`
		Copies   []copyJSON         `json:"destinations,omitempty"`
	}{newEventJSON(f.row), append([]operator.Attempt{}, f.attempts...), append([]inbox.Receipt{}, f.receipts...), copiesJSON(f.copies)}
}

// copyJSON is what became of an event at one of its destinations.
type copyJSON struct {
	Sink          string             `json:"sink"`
	Table         string             `json:"table"`
	ID            string             `json:"id"` // in that table
	Status        postrider.State    `json:"status"`
	RetryCount    int                `json:"retry_count"`
	NextAttemptAt time.Time          `json:"next_attempt_at"`
	LastError     string             `json:"last_error"`
	PublishedTo   string             `json:"published_to"`
	CreatedAt     time.Time          `json:"created_at"`
	PublishedAt   *time.Time         `json:"published_at"`
	Attempts      []operator.Attempt `json:"attempts"`
}

func copiesJSON(copies []wiring.Copy) (list []copyJSON) {
	for _, c := range copies {
		r := c.Row
		list = append(list, copyJSON{
			Sink: c.Sink, Table: c.Table, ID: r.ID, Status: r.Status, RetryCount: r.RetryCount, NextAttemptAt: r.NextAttemptAt,
			LastError: r.LastError, PublishedTo: r.PublishedTo, CreatedAt: r.CreatedAt, PublishedAt: r.PublishedAt,
			Attempts: append([]operator.Attempt{}, c.Attempts...),
		})
	}
	return list
}

func (c *command) printEvent(f foundEvent) error {
	if err := c.printColumns(f.row); err != nil {
		return err
	}
	if err := c.printPayload(f.row.Payload); err != nil {
		return err
	}
	if err := c.printAttempts(f.attempts); err != nil {
		return err
	}
	return c.printCopies(f.copies)
}

func (c *command) printCopies(copies []wiring.Copy) error {
	if len(copies) == 0 {
		return nil
	}
	fmt.Fprintln(c.stdout)
	t := newTable(c.stdout, "TO", "OUTBOX", "ID", "STATUS", "RETRIES", "PUBLISHED", "PUBLISHED TO", "LAST ERROR")
	for _, at := range copies {
		r, published := at.Row, ""
		if r.PublishedAt != nil {
			published = human.UTC(*r.PublishedAt)
		}
		t.row(at.Sink, at.Table, r.ID, string(r.Status), strconv.Itoa(r.RetryCount), published, r.PublishedTo, r.LastError)
	}
	return t.flush()
}

func (c *command) printColumns(r operator.Row) error {
	t := newTable(c.stdout)
	t.row("id", r.ID)
	t.row("event_id", r.EventID)
	t.row("status", string(r.Status))
	t.row("aggregate_type", r.AggregateType)
	t.row("aggregate_id", r.AggregateID)
	t.row("event_type", r.EventType)
	if r.AggregateVersion != nil {
		t.row("aggregate_version", strconv.FormatInt(*r.AggregateVersion, 10))
	}
	t.row("topic", r.Topic)
	t.row("content_type", r.ContentType)
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		t.row("header "+name, r.Headers[name])
	}
	t.row("dedup_key", r.DedupKey)
	t.row("retry_count", strconv.Itoa(r.RetryCount))
	t.row("next_attempt_at", human.UTC(r.NextAttemptAt))
	t.row("last_error", r.LastError)
	if r.Holds {
		t.row("holds", "the other events of its key, until it is redriven or discarded")
	}
	if r.Shard != nil {
		t.row("shard", strconv.Itoa(*r.Shard))
	}
	t.row("created_at", human.UTC(r.CreatedAt))
	if r.PublishedAt != nil {
		t.row("published_at", human.UTC(*r.PublishedAt))
	}
	t.row("published_to", r.PublishedTo)
	return t.flush()
}

func (c *command) printAttempts(attempts []operator.Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	fmt.Fprintln(c.stdout)
	t := newTable(c.stdout, "AT", "OUTCOME", "BY", "ERROR OR REASON")
	for _, a := range attempts {
		t.row(human.UTC(a.At), a.Outcome, a.By, a.Error)
	}
	return t.flush()
}

func (c *command) printPayload(payload []byte) error {
	if !isJSON(payload) {
		_, err := fmt.Fprintf(c.stdout, "\npayload (%d bytes, base64)\n%s\n", len(payload), base64.StdEncoding.EncodeToString(payload))
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, payload, "", "  "); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "\npayload (%d bytes)\n", len(payload))
	for line := range strings.Lines(indented.String()) {
		fmt.Fprintln(c.stdout, plain(strings.TrimSuffix(line, "\n")))
	}
	return nil
}
