package nats

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

// round publishes messages that do not depend on each other.
type round struct {
	*Sink
	batch       []relay.Message
	book        *keyorder.Batch
	heard       *listener
	unavailable error // set when sending more makes no sense
}

// parcel is a message of the batch on its way to a stream.
type parcel struct {
	index int    // of the message in the batch
	id    string // by which the stream recognizes a repetition
	sent  jetstream.PubAckFuture
	ack   *jetstream.PubAck
}

// publishRound sends the messages with these indices and waits for their acknowledgements. It returns an error when
// sending more makes no sense; then messages of which copies are stored may be left without an outcome.
func (s *Sink) publishRound(ctx context.Context, batch []relay.Message, book *keyorder.Batch, indices []int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, ackTimeout, errNoAck)
	defer cancel()
	r := &round{Sink: s, batch: batch, book: book, heard: s.complaints.listen()}
	defer r.heard.stop()
	parcels := make([]*parcel, len(indices))
	for n, i := range indices {
		parcels[n] = &parcel{index: i, id: batch[i].EventID}
	}
	for len(parcels) > 0 && r.unavailable == nil {
		duplicates := r.await(ctx, r.send(ctx, parcels))
		parcels = r.missing(ctx, duplicates)
	}
	return r.unavailable
}

func (r *round) settle(p *parcel, o relay.Outcome) {
	if o.Class == relay.ClassUnavailable {
		r.unavailable = o.Err
	}
	r.book.Settle(p.index, o)
}

// send returns those that are on their way.
func (r *round) send(ctx context.Context, parcels []*parcel) (sent []*parcel) {
	for _, p := range parcels {
		topic := r.batch[p.index].Topic
		message, err := encode(r.batch[p.index], p.id, r.stream)
		if err == nil {
			err = r.fits(message)
		}
		if err != nil {
			r.settle(p, relay.Permanent(fmt.Errorf("nats: %w", err)))
			continue
		}
		if p.sent, err = r.js.PublishMsgAsync(message, jetstream.WithStallWait(timeLeft(ctx))); err != nil {
			r.settle(p, r.outcomeOf(ctx, err, topic))
			continue
		}
		sent = append(sent, p)
	}
	return sent
}

// timeLeft is above zero, also when ctx has ended.
func timeLeft(ctx context.Context) time.Duration {
	end, _ := ctx.Deadline()
	return max(time.Millisecond, time.Until(end))
}

// await waits for the acknowledgements and returns those that say that the stream has seen the message before.
func (r *round) await(ctx context.Context, sent []*parcel) (duplicates []*parcel) {
	for _, p := range sent {
		o := r.acknowledged(ctx, p)
		if o.Class == relay.ClassPublished && p.ack.Duplicate {
			duplicates = append(duplicates, p)
			continue
		}
		r.settle(p, o)
	}
	return duplicates
}

func (r *round) acknowledged(ctx context.Context, p *parcel) relay.Outcome {
	subject := r.batch[p.index].Topic
	for {
		next := r.heard.next()
		if complaint := r.heard.about(subject); complaint != nil {
			return relay.Retry(fmt.Errorf("nats subject %s: %w", subject, complaint))
		}
		select {
		case p.ack = <-p.sent.Ok():
			return p.published()
		case err := <-p.sent.Err():
			return r.outcomeOf(ctx, err, subject)
		case <-ctx.Done():
			return r.outcomeOf(ctx, context.Cause(ctx), subject)
		case <-next:
		}
	}
}

func (p *parcel) published() relay.Outcome {
	return relay.Published(fmt.Sprintf("nats:%s@%d", p.ack.Stream, p.ack.Sequence))
}
