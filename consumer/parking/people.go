package parking

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	cleaner "github.com/postrider/postrider/internal/text"
)

// ErrNotParked says that a message is not parked.
var ErrNotParked = errors.New("no such message is parked: it was applied or ended meanwhile, or never was")

// Parked is what people see of a parked key and its first message.
type Parked struct {
	ID       int64  `json:"id,string"` // of the first message
	Consumer string `json:"consumer"`
	Topic    string `json:"topic"`
	Key      string `json:"key"`      // empty for a message without one, which is parked alone
	EventID  string `json:"event_id"` // of the first message
	Messages int64  `json:"messages"` // that wait

	At            time.Time   `json:"at"`          // when the key was parked, by the database's clock, in UTC
	DueSeconds    float64     `json:"due_seconds"` // until the next try; negative while nobody has taken it
	Claimed       bool        `json:"claimed"`     // it is being tried, or was by a process that died: until DueSeconds have passed
	Attempts      int         `json:"attempts"`    // of the first message
	Class         inbox.Class `json:"class"`       // of its last error; empty while it has not failed itself
	Error         string      `json:"error"`
	FirstFailedAt time.Time   `json:"first_failed_at,omitzero"`

	GivenUp     *consumer.GivenUp `json:"given_up"`     // the first message; nil unless people have given it up
	LetterError string            `json:"letter_error"` // why its dead letter could not be written
}

// List returns up to limit parked keys of a consumer, of all of them with an empty name, those first that are parked for the longest
// time.
func (t *Table) List(ctx context.Context, name string, limit int) ([]Parked, error) {
	list, err := t.list(ctx, name, "", limit)
	return list, t.failed("list", err)
}

func (t *Table) list(ctx context.Context, name, hash string, limit int) ([]Parked, error) {
	rows, err := t.db.QueryContext(ctx, t.texts["list"], name, hash, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Parked
	for rows.Next() {
		p, err := readParked(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, rows.Err()
}

func readParked(rows *sql.Rows) (p Parked, err error) {
	var key []byte
	var at, firstAt, envelope string
	var by, reason sql.NullString
	err = rows.Scan(&p.Consumer, &key, &at, &p.DueSeconds, &p.Claimed, &p.Attempts, &p.Class, &p.Error, &p.LetterError, &firstAt,
		&p.ID, &envelope, &by, &reason, &p.Messages)
	if err != nil {
		return p, err
	}
	if p.At, err = time.Parse(time.DateTime, at); err != nil {
		return p, err
	}
	p.FirstFailedAt, _ = time.Parse(time.RFC3339, firstAt) // zero where nothing is known
	first, err := readEnvelope(envelope, nil)
	if err != nil {
		return p, fmt.Errorf("parked message %d: %w", p.ID, err)
	}
	p.Topic, p.EventID, p.GivenUp = first.Topic, first.EventID(), givenUp(by, reason)
	if topic, key, ok := strings.Cut(string(key), "\x00"); ok && topic != "" {
		p.Topic, p.Key = topic, key
	}
	return p, nil
}

// givenUp makes the columns of a mark one.
func givenUp(by, reason sql.NullString) *consumer.GivenUp {
	if !by.Valid {
		return nil
	}
	return &consumer.GivenUp{By: by.String, Reason: reason.String}
}

// Show returns the parked key of the message with the id, and up to limit of the key's messages, from the first one on. The error is
// ErrNotParked when there is no such message.
func (t *Table) Show(ctx context.Context, id int64, limit int) (Parked, []consumer.ParkedMessage, error) {
	p, messages, err := t.show(ctx, id, limit)
	return p, messages, t.failed(fmt.Sprintf("show message %d of", id), err)
}

func (t *Table) show(ctx context.Context, id int64, limit int) (Parked, []consumer.ParkedMessage, error) {
	for {
		name, hash, _, err := t.find(ctx, id)
		if err != nil {
			return Parked{}, nil, err
		}
		list, err := t.list(ctx, name, hash, 1)
		if err != nil {
			return Parked{}, nil, err
		}
		messages, err := t.messages(ctx, name, hash, limit)
		if err != nil {
			return Parked{}, nil, err
		}
		if len(list) > 0 && len(messages) > 0 && list[0].ID == messages[0].ID { // else the key has gone on in between
			return list[0], messages, nil
		}
	}
}

// find returns the consumer and the hash of the key of a message, and the message without its payload.
func (t *Table) find(ctx context.Context, id int64) (name, hash string, m inbox.Message, err error) {
	var envelope string
	err = t.db.QueryRowContext(ctx, t.texts["message"], id).Scan(&name, &hash, &envelope)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotParked
	}
	if err != nil {
		return "", "", m, err
	}
	m, err = readEnvelope(envelope, nil)
	return name, hash, m, err
}

// Retry makes the parked key of the message with the id due at once. One that is being tried at this moment is tried again at once
// unless that succeeds. The error is ErrNotParked when there is no such message.
func (t *Table) Retry(ctx context.Context, id int64) error {
	name, hash, _, err := t.find(ctx, id)
	if err == nil {
		err = existing(t.db.ExecContext(ctx, t.texts["retry"], name, hash))
	}
	return t.failed(fmt.Sprintf("retry message %d of", id), err)
}

// RetryAll does what Retry does to all parked keys of a consumer, of all of them with an empty name, and returns how many they are.
func (t *Table) RetryAll(ctx context.Context, name string) (n int64, err error) {
	err = t.inTx(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, t.texts["retry_all"], name)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return n, t.failed("retry all keys of", err)
}

// GiveUp marks the parked message with the id as one that is not to be applied, and makes its key due at once. The consumer ends the
// message as Policy.Exhausted says when its turn comes, with who and reason in the error of its dead letter, and goes on with the
// next one of the key. One that is being applied at this moment is applied, unless that fails. When a message is given up again
// the latest reason counts.
//
// In the same transaction who and why are written to the audit table of the inbox, neither of which may be empty. The error is
// ErrNotParked, and nothing is changed, when there is no such message.
func (t *Table) GiveUp(ctx context.Context, id int64, who, reason string) error {
	what := fmt.Sprintf("give up message %d of", id)
	who, reason = cleaner.Clean(who), cleaner.Clean(reason)
	if who == "" || len(who) > postrider.MaxField {
		return t.failed(what, fmt.Errorf("who does it has %d bytes: it must have 1 to %d", len(who), postrider.MaxField))
	}
	if reason == "" {
		return t.failed(what, errors.New("the reason is empty"))
	}
	name, hash, m, err := t.find(ctx, id)
	if err != nil {
		return t.failed(what, err)
	}
	return t.failed(what, t.inTx(ctx, func(tx *sql.Tx) error {
		if err := existing(tx.ExecContext(ctx, t.texts["retry"], name, hash)); err != nil {
			return err
		}
		if err := existing(tx.ExecContext(ctx, t.texts["audit"], who, reason, subject(m), id)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, t.texts["give_up"], who, reason, id)
		return err
	}))
}

// existing makes ErrNotParked of a statement that changed nothing.
func existing(result sql.Result, err error) error {
	changed, err := changes(result, err)
	if err == nil && !changed {
		err = ErrNotParked
	}
	return err
}

// subject names a message in the audit table, as far as it fits: it may be there because its event id is broken.
func subject(m inbox.Message) string {
	return fmt.Sprintf("%.*s", postrider.MaxField, cleaner.Clean(cmp.Or(m.EventID(), m.Coordinates)))
}
