package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/operator"
)

// DeadLetters is a dead-letter topic: a subject of a stream. It implements dlt.Topic. Letters are read one by one and without a
// consumer, whatever the stream's retention, and deleted from the stream when they were redriven; a stream that denies that cannot be
// redriven from. The login needs to publish to $JS.API.STREAM.NAMES, $JS.API.STREAM.INFO.STREAM, $JS.API.STREAM.MSG.GET.STREAM and
// $JS.API.STREAM.MSG.DELETE.STREAM.
type DeadLetters struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	subject string
	name    string           // of the stream; empty until it is found
	stream  jetstream.Stream // of the last scan
}

var _ dlt.Topic = (*DeadLetters)(nil)

// OpenDeadLetters checks the configuration, of which it needs how to reach the server, and Stream if it is set; else the stream is the
// one that takes the subject. It connects in the background. The caller closes what it returns.
func OpenDeadLetters(c Config, subject string) (*DeadLetters, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	d := &DeadLetters{subject: subject, name: c.Stream}
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // every call tells its own error
	if d.conn, err = nats.Connect(c.url(), append(c.options(), quiet)...); err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	if d.js, err = jetstream.New(d.conn); err != nil {
		d.conn.Close()
		return nil, fmt.Errorf("nats: %w", err)
	}
	return d, nil
}

// Scan implements dlt.Topic.
func (d *DeadLetters) Scan(ctx context.Context, visit func(dlt.Letter) error) error {
	if err := connected(ctx, d.conn); err != nil {
		return err
	}
	last, err := d.find(ctx)
	if err != nil {
		return err
	}
	for sequence := uint64(1); sequence <= last; {
		m, err := d.next(ctx, sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence > last {
			return nil
		}
		if err != nil {
			return fmt.Errorf("nats: read subject %s of stream %s: %w", d.subject, d.name, err)
		}
		letter := dlt.Letter{Message: messageAt(d.name, m.Sequence, m.Subject, m.Time, m.Header, m.Data), Ref: m.Sequence}
		if err := visit(letter); err != nil {
			return err
		}
		sequence = m.Sequence + 1
	}
	return nil
}

// find finds the stream, and the number of its last message.
func (d *DeadLetters) find(ctx context.Context) (last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if d.name == "" {
		if d.name, err = d.js.StreamNameBySubject(ctx, d.subject); err != nil {
			return 0, fmt.Errorf("nats: stream of subject %s: %w", d.subject, err)
		}
	}
	if d.stream, err = d.js.Stream(ctx, d.name); err != nil {
		return 0, fmt.Errorf("nats: stream %s: %w", d.name, err)
	}
	info := d.stream.CachedInfo()
	info.Config.AllowDirect = false // the leader is asked then: a replica may lack the last letters, or know of one that is deleted
	return info.State.LastSeq, nil
}

// next returns the first message of the subject from a number on.
func (d *DeadLetters) next(ctx context.Context, sequence uint64) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.stream.GetMsg(ctx, sequence, jetstream.WithGetMsgSubject(d.subject))
}

// Settle implements dlt.Topic. Who did it and why is not kept. A letter that is gone is settled: another redrive was faster, or the stream
// has let go of it.
func (d *DeadLetters) Settle(ctx context.Context, letters []dlt.Letter, _ operator.Action) error {
	for _, l := range letters {
		sequence := l.Ref.(uint64)
		err := d.stream.DeleteMsg(ctx, sequence)
		if err != nil && !d.isGone(ctx, sequence) {
			return fmt.Errorf("nats: delete message %d of stream %s: %w", sequence, d.name, err)
		}
	}
	return nil
}

// isGone asks for the message, because the error of a deletion does not tell why the server refused it.
func (d *DeadLetters) isGone(ctx context.Context, sequence uint64) bool {
	_, err := d.stream.GetMsg(ctx, sequence)
	return errors.Is(err, jetstream.ErrMsgNotFound)
}

// Close implements dlt.Topic.
func (d *DeadLetters) Close() error {
	d.conn.Close()
	return nil
}
