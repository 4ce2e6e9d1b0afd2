package dlt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/sendid"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// Redrive says which letters of a topic go back, and how. Topic and Sink must be set.
type Redrive struct {
	Topic  Topic
	Sink   relay.Sink // of the same broker
	Filter Filter

	// Action is who does it and why. Topics that mark letters keep it.
	Action operator.Action

	// Rate is how many letters a second are sent at most; 0 means no bound.
	Rate int

	// KeepHeaders leaves the headers that tell of the failure (X-Origin-*, X-Failure-*) on the messages. They mean nothing to a
	// Consumer: one that fails again has those of the new failure.
	KeepHeaders bool
}

// Result counts letters that the filter has chosen.
type Result struct {
	Redriven int   `json:"redriven"`
	NoOrigin int   `json:"no_origin"` // left there: they do not say where they were first read
	Refused  int   `json:"refused"`   // left there: the sink did not take them
	Behind   int   `json:"behind"`    // left there: an earlier one of their key is
	Refusal  error `json:"-"`         // why the sink did not take one of them
}

const (
	mostInABatch = 100
	batchTimeout = time.Minute // for a batch to be sent, and to be settled
)

// Run sends the letters that are in the topic when it begins. When ctx ends, the batch that is on its way is sent and settled, and Run
// returns the error of ctx. It ends early, too, when the sink is unavailable or letters cannot be settled; the result tells
// how far it came. The first batch is a single letter, so that little is repeated where none can be settled.
func (r Redrive) Run(ctx context.Context) (Result, error) {
	run := &run{Redrive: r, left: make(map[string]bool), size: 1}
	err := r.Topic.Scan(ctx, func(l Letter) error {
		if !r.Filter.Matches(l) {
			return nil
		}
		return run.add(ctx, l)
	})
	if err == nil {
		err = run.send(ctx)
	}
	return run.result, err
}

// run is a redrive on its way.
type run struct {
	Redrive
	result Result
	batch  []Letter
	size   int             // of the batch
	left   map[string]bool // keys of which a letter stays
}

func (r *run) add(ctx context.Context, l Letter) error {
	switch {
	case l.OriginTopic() == "":
		r.result.NoOrigin++
	case l.key() != "" && r.left[l.key()]:
		r.result.Behind++
	default:
		r.batch = append(r.batch, l)
	}
	if len(r.batch) < r.size {
		return nil
	}
	return r.send(ctx)
}

// send sends and settles the batch, and waits as the rate wants it.
func (r *run) send(ctx context.Context) error {
	if len(r.batch) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	batch, begun := r.batch, time.Now()
	r.batch, r.size = nil, r.nextSize()
	working, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	sent, unavailable := r.publish(working, batch)
	if len(sent) > 0 {
		if err := r.Topic.Settle(working, sent, r.Action); err != nil {
			return fmt.Errorf("%d letters were sent, and the dead-letter topic does not know: the next redrive sends them again, with the same event ids: %w",
				len(sent), err)
		}
		r.result.Redriven += len(sent)
	}
	if unavailable != nil {
		return unavailable
	}
	if r.Rate > 0 {
		return sleep(ctx, time.Until(begun.Add(time.Duration(len(batch))*time.Second/time.Duration(r.Rate))))
	}
	return nil
}

// nextSize has about ten batches a second where there is a rate.
func (r *run) nextSize() int {
	if r.Rate == 0 {
		return mostInABatch
	}
	return min(mostInABatch, max(1, r.Rate/10))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// publish returns what the sink has taken. It returns an error when the sink takes nothing more.
func (r *run) publish(ctx context.Context, batch []Letter) (sent []Letter, unavailable error) {
	messages := make([]relay.Message, len(batch))
	for i, l := range batch {
		messages[i] = r.message(l)
	}
	for i, o := range r.Sink.Publish(ctx, messages) {
		if o.Class == relay.ClassPublished {
			sent = append(sent, batch[i])
			continue
		}
		if key := batch[i].key(); key != "" {
			r.left[key] = true
		}
		switch o.Class {
		case relay.ClassUnavailable:
			unavailable = o.Err
		case relay.ClassSkipped:
			r.result.Behind++
		default:
			r.result.Refused++
			r.result.Refusal = fmt.Errorf("%s to %s: %w", batch[i].Message, batch[i].OriginTopic(), o.Err)
		}
	}
	return sent, unavailable
}

// message is what goes back. Its id for the broker says which letter it was; it is hashed so that it does not grow when a letter comes
// back time and again.
func (r *run) message(l Letter) relay.Message {
	m := l.Message
	sum := sha256.Sum256([]byte(m.Coordinates))
	return relay.Message{
		EventID: m.EventID() + sendid.Redrive + hex.EncodeToString(sum[:8]),
		Key:     m.Key,
		Topic:   l.OriginTopic(),
		Headers: r.headers(l),
		Payload: m.Payload,
	}
}

// failureHeaders are what a consumer adds to a dead letter. X-Retry-At would make a message one of a retry topic.
var failureHeaders = []string{
	consumer.HeaderOriginTopic, consumer.HeaderOriginPartition, consumer.HeaderOriginOffset, consumer.HeaderFailureConsumer,
	consumer.HeaderFailureClass, consumer.HeaderFailureMessage, consumer.HeaderFailureAttempts, consumer.HeaderFailureFirstAt,
	consumer.HeaderFailureLastAt,
}

// headers has each name once, as sinks want it.
func (r *run) headers(l Letter) []relay.Header {
	left := map[string]bool{strings.ToLower(consumer.HeaderRetryAt): true}
	if !r.KeepHeaders {
		for _, name := range failureHeaders {
			left[strings.ToLower(name)] = true
		}
	}
	headers := make([]relay.Header, 0, len(l.Message.Headers))
	for _, h := range l.Message.Headers {
		if name := strings.ToLower(h.Name); !left[name] {
			left[name] = true
			headers = append(headers, relay.Header(h))
		}
	}
	return headers
}
