package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay/internal/lifecycle"
)

// destination is a sink at work.
type destination struct {
	NamedSink
	index   int
	circuit *circuit
}

// stallGrace is what a Publish call may take beyond its context before the sink counts as unavailable.
const stallGrace = time.Second

// publishEvents sends the events of one sink until ctx ends. Several run for each sink.
func (e *engine) publishEvents(ctx context.Context, d *destination) {
	for {
		batch, wait := e.takeBatch(d)
		if len(batch) > 0 {
			e.publish(d, batch)
		} else if !e.waitForBatch(ctx, d, wait) {
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// takeBatch takes what may be sent now; wait is how long to sleep at most when that is nothing.
func (e *engine) takeBatch(d *destination) (batch []*flying, wait time.Duration) {
	now := time.Now()
	limit, wait := d.circuit.permit(now, d.Batch)
	if limit == 0 {
		return nil, wait
	}
	usable := func(l Lease) bool { return e.leases.remaining(l, now) >= e.cfg.PublishTimeout }
	batch = e.flight.take(d.index, limit, usable)
	if len(batch) == 0 {
		d.circuit.abandon()
	}
	return batch, e.cfg.PollMax
}

// waitForBatch reports whether to go on.
func (e *engine) waitForBatch(ctx context.Context, d *destination, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-e.flight.queues[d.index].kick:
	}
	return true
}

// publish sends a batch, tells the circuit, and passes what is decided on to the settler.
func (e *engine) publish(d *destination, batch []*flying) {
	e.sending.Add(1)
	defer e.sending.Add(-1)
	messages := make([]Message, len(batch))
	for i, f := range batch {
		messages[i] = f.route.message(&f.event)
	}
	// Not derived from the context of Run: a stop lets what is being sent come to its end. The grace period cancels
	// e.work.
	ctx, cancel := context.WithTimeout(e.work, e.cfg.PublishTimeout)
	defer cancel()
	stalled := time.AfterFunc(e.cfg.PublishTimeout+stallGrace, func() {
		d.circuit.failed(time.Now(), fmt.Errorf("no answer within %v", e.cfg.PublishTimeout))
	})
	start := time.Now()
	outcomes := send(ctx, d.Sink, messages)
	stalled.Stop()
	e.conclude(d, batch, outcomes, time.Since(start))
}

// conclude turns outcomes into settlements.
func (e *engine) conclude(d *destination, batch []*flying, outcomes []Outcome, took time.Duration) {
	classes := make(map[Class]int)
	decided := make([]Settlement, len(batch))
	var unavailable error
	for i, o := range outcomes {
		classes[o.Class]++
		switch o.Class {
		case ClassUnavailable:
			unavailable = o.Err
		case ClassSkipped:
		default:
			decided[i] = e.decide(d, batch[i], o)
		}
	}
	e.judgeSink(d, classes, unavailable)
	e.settleQueue.add(e.flight.report(batch, decided)...)
	e.cfg.Hooks.published(d.Name, classes, took)
}

// judgeSink tells the circuit what a batch says about the sink as a whole. What happens because the relay is being
// stopped says nothing.
func (e *engine) judgeSink(d *destination, classes map[Class]int, unavailable error) {
	now := time.Now()
	if classes[ClassPublished]+classes[ClassRetry]+classes[ClassPermanent] > 0 {
		d.circuit.succeeded(now)
	}
	switch {
	case classes[ClassUnavailable] == 0:
	case e.work.Err() != nil:
		d.circuit.abandon()
	default:
		e.log.Warn("sink is unavailable; its events wait and spend no attempt", "sink", d.Name, "error", unavailable)
		d.circuit.failed(now, unavailable)
	}
}

// decide asks the state machine what an outcome does to its event.
func (e *engine) decide(d *destination, f *flying, o Outcome) Settlement {
	result := lifecycle.Result{
		Published: o.Class == ClassPublished,
		Permanent: o.Class == ClassPermanent,
		After:     o.After,
	}
	change := lifecycle.Apply(f.route.retry, f.event.RetryCount, result, rand.Float64())
	s := Settlement{
		ID: f.event.ID, Lease: f.lease, State: change.State,
		RetryCount: change.RetryCount, RetryAfter: change.RetryAfter,
	}
	if change.State == postrider.StatePublished {
		s.PublishedTo = o.Coordinates
		e.cfg.Hooks.delivered(d.Name, f.event.Age+time.Since(f.readAt))
		return s
	}
	s.Error, s.Sink = o.Err.Error(), d.Name
	log := e.log.With("sink", d.Name, "event_id", f.event.EventID, "id", f.event.ID, "key", f.event.Key(), "error", s.Error)
	if change.State == postrider.StateDead {
		s.HoldsKey = f.route.OnDead == OnDeadHold
		log.Error("event is DEAD", "attempts", change.RetryCount, "cause", string(change.Cause), "holds_key", s.HoldsKey)
		e.cfg.Hooks.dead(d.Name, &f.event, s.Error)
		return s
	}
	log.Warn("event failed and will be retried", "attempts", change.RetryCount, "after", change.RetryAfter)
	return s
}

// send calls the sink and makes sure that there is one valid outcome for each message, whatever the sink does.
// A batch that makes the sink panic is sent again in halves, so that only the guilty message is charged.
func send(ctx context.Context, sink Sink, messages []Message) []Outcome {
	outcomes, err := call(ctx, sink, messages)
	switch {
	case err == nil:
		return outcomes
	case len(messages) == 1:
		return []Outcome{Retry(err)}
	}
	half := len(messages) / 2
	outcomes = send(ctx, sink, messages[:half])
	return append(outcomes, sendRest(ctx, sink, messages[half:], brokenKeys(messages[:half], outcomes))...)
}

// sendRest sends the messages whose keys are not broken and skips the others.
func sendRest(ctx context.Context, sink Sink, messages []Message, broken map[string]bool) []Outcome {
	outcomes := make([]Outcome, len(messages))
	var whole []Message
	var places []int
	for i, m := range messages {
		if broken[m.Key] {
			outcomes[i] = Skipped()
			continue
		}
		whole, places = append(whole, m), append(places, i)
	}
	if len(whole) == 0 {
		return outcomes
	}
	for i, o := range send(ctx, sink, whole) {
		outcomes[places[i]] = o
	}
	return outcomes
}

func brokenKeys(messages []Message, outcomes []Outcome) map[string]bool {
	broken := make(map[string]bool)
	for i, o := range outcomes {
		if o.Class != ClassPublished {
			broken[messages[i].Key] = true
		}
	}
	return broken
}

var errOutcomes = errors.New("the sink broke its contract: it must return one outcome for each message")

// call returns an error only when the sink panicked.
func call(ctx context.Context, sink Sink, messages []Message) (outcomes []Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the sink panicked: %v", p)
		}
	}()
	outcomes = sink.Publish(ctx, messages)
	if len(outcomes) != len(messages) {
		outcomes = make([]Outcome, len(messages))
	}
	for i, o := range outcomes {
		outcomes[i] = sound(o)
	}
	return outcomes, nil
}

// sound replaces outcomes that say nothing.
func sound(o Outcome) Outcome {
	switch {
	case o.Class < ClassPublished || o.Class > ClassSkipped:
		return Unavailable(errOutcomes)
	case o.Err == nil && o.Class != ClassPublished && o.Class != ClassSkipped:
		o.Err = errors.New("the sink gave no reason")
	}
	return o
}
