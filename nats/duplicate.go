package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/relay"
)

// missing settles the duplicates that their streams hold, and returns those that are gone, to be sent again. A stream
// recognizes a repetition within its window also after the message was purged or deleted.
//
// What is gone gets a new id, because the stream would drop it under the old one. The id follows from the sequence of
// the one that is gone, so that two relays that find the same give it the same.
func (r *round) missing(ctx context.Context, duplicates []*parcel) (gone []*parcel) {
	if len(duplicates) == 0 || r.unavailable != nil {
		return nil
	}
	questions := make([]*question, len(duplicates))
	for n, p := range duplicates {
		questions[n] = &question{
			subject: apiSubject(p.ack.Domain, "MSG.GET", p.ack.Stream),
			body:    fmt.Sprintf(`{"seq":%d}`, p.ack.Sequence),
		}
	}
	r.ask(ctx, r.heard, questions)
	consumed := &consumption{round: r, drops: make(map[string]bool)}
	for n, p := range duplicates {
		held, err := questions[n].holds(p.id)
		if err == nil && !held {
			held, err = consumed.explains(ctx, p.ack)
		}
		switch {
		case err != nil:
			r.settle(p, r.unproven(p, err))
		case held:
			r.settle(p, p.published())
		default:
			p.id = fmt.Sprintf("%s@%d", r.batch[p.index].EventID, p.ack.Sequence)
			gone = append(gone, p)
		}
	}
	return gone
}

// holds tells whether the answer is a message with that id.
func (q *question) holds(id string) (bool, error) {
	var answer struct {
		Message struct {
			Header []byte `json:"hdrs"`
		} `json:"message"`
	}
	err := q.decode(&answer)
	if hasCode(err, codeNoMessage) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	header, err := nats.DecodeHeadersMsg(answer.Message.Header)
	return err == nil && header.Get(jetstream.MsgIDHeader) == id, nil // what has no headers is not our message
}

// consumption knows which streams drop what was consumed. Such a stream does not tell whether a message that is gone was
// consumed or purged: it was stored, and it is not sent again.
type consumption struct {
	*round
	drops map[string]bool // by where the server answers about the stream
}

func (c *consumption) explains(ctx context.Context, ack *jetstream.PubAck) (bool, error) {
	subject := apiSubject(ack.Domain, "INFO", ack.Stream)
	if drops, known := c.drops[subject]; known {
		return drops, nil
	}
	q := &question{subject: subject}
	c.ask(ctx, c.heard, []*question{q})
	var info struct {
		Config struct {
			Retention jetstream.RetentionPolicy `json:"retention"`
		} `json:"config"`
	}
	if err := q.decode(&info); err != nil {
		return false, err
	}
	c.drops[subject] = info.Config.Retention != jetstream.LimitsPolicy
	return c.drops[subject], nil
}

// unproven is the outcome when nobody says whether the stream holds the message. Once the window is over, the stream
// stores it again.
func (r *round) unproven(p *parcel, err error) relay.Outcome {
	reason := fmt.Errorf("nats subject %s: stream %s has seen this event, as message %d, and does not tell whether it still holds it: %w",
		r.batch[p.index].Topic, p.ack.Stream, p.ack.Sequence, err)
	if errors.Is(err, nats.ErrPermissionViolation) || hasCode(err, codeNoStream) || hasCode(err, codeNotEnabled) {
		return relay.Retry(reason)
	}
	return relay.Unavailable(reason)
}
