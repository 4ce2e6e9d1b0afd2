package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider/inbox"
)

// outcomeParked is that of a message that was stored behind the parked ones of its key.
const outcomeParked inbox.Outcome = "parked"

// handleNext handles the next batch, or waits for one.
func (e *engine) handleNext(ctx context.Context) error {
	batch, probe, changes, wait := e.take()
	if len(batch) == 0 {
		awaitChange(ctx, changes, wait)
		return nil
	}
	defer e.handled(probe)
	e.settle(batch, e.try(batch))
	return nil
}

// awaitChange waits for a change, for ctx, and for wait unless that is 0.
func awaitChange(ctx context.Context, changes <-chan struct{}, wait time.Duration) {
	var due <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
	case <-changes:
	case <-due:
	}
}

// take gets a batch. When there is none, changes and wait say what to wait for.
func (e *engine) take() (batch []*item, probe bool, changes <-chan struct{}, wait time.Duration) {
	var revoked []*item
	defer func() { e.giveBack(revoked) }()
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.stopping {
		return nil, false, e.changes, 0
	}
	limit, wait := e.outage.permit(now, e.cfg.Batch)
	if limit == 0 {
		return nil, false, e.changes, wait
	}
	batch, revoked = e.schedule.take(now, limit, e.idle)
	if len(batch) == 0 {
		if at := e.schedule.next(); !at.IsZero() {
			wait = max(at.Sub(now), time.Nanosecond)
		}
		return nil, false, e.changes, wait
	}
	e.idle--
	if probe = e.outage.failures > 0; probe {
		e.outage.probing = true
	}
	return batch, probe, nil, 0
}

// handled notes that a worker is idle again.
func (e *engine) handled(probe bool) {
	e.mu.Lock()
	e.idle++
	if probe {
		e.outage.probing = false
	}
	e.changed()
	e.mu.Unlock()
	e.turnLanes()
}

// try has a batch handled: what belongs behind parked messages is stored there, what is of an unknown type is malformed, and the rest
// goes to the Handler.
func (e *engine) try(batch []*item) []inbox.Result {
	results := make([]inbox.Result, len(batch))
	e.appendParked(batch, results)
	stopped := make(map[*queue]bool)
	var rest []*item
	var places []int
	for i, it := range batch {
		m := it.delivery.Message
		switch {
		case results[i].Outcome == outcomeParked:
		case stopped[it.queue]:
			results[i].Err = inbox.ErrSkipped
		case results[i].Err != nil:
			stopped[it.queue] = true
		case !e.knows(m.EventType()):
			results[i].Err = inbox.Malformed(fmt.Errorf("the event type %.80q is unknown to the consumer: see Config.Types", m.EventType()))
			stopped[it.queue] = true
		default:
			rest, places = append(rest, it), append(places, i)
		}
	}
	for i, r := range e.call(e.work, rest) {
		results[places[i]] = r
	}
	return results
}

func (e *engine) knows(eventType string) bool { return len(e.types) == 0 || e.types[eventType] }

// call calls the Handler. When it panics, or does not give a result for each message, it is called for one after the other.
func (e *engine) call(ctx context.Context, items []*item) []inbox.Result {
	if len(items) == 0 {
		return nil
	}
	results, err := e.callOnce(ctx, items)
	if err == nil {
		return results
	}
	if len(items) == 1 {
		return []inbox.Result{{Err: err}}
	}
	e.cfg.Logger.Warn("the handler failed for a batch, which is handled one by one", "messages", len(items), "error", err)
	results = make([]inbox.Result, len(items))
	stopped := make(map[*queue]bool)
	for i, it := range items {
		if stopped[it.queue] {
			results[i].Err = inbox.ErrSkipped
			continue
		}
		single, err := e.callOnce(ctx, items[i:i+1])
		if err != nil {
			single = []inbox.Result{{Err: err}}
		}
		results[i] = single[0]
		stopped[it.queue] = single[0].Err != nil
	}
	return results
}

func (e *engine) callOnce(ctx context.Context, items []*item) (results []inbox.Result, err error) {
	messages := messagesOf(items)
	began := time.Now()
	err = guard(func() error {
		results = e.cfg.Handler(ctx, messages)
		if len(results) != len(messages) {
			return fmt.Errorf("the handler gave %d results for %d messages", len(results), len(messages))
		}
		return nil
	})
	e.cfg.Hooks.handled(len(messages), time.Since(began))
	return results, err
}

func messagesOf(items []*item) []inbox.Message {
	messages := make([]inbox.Message, len(items))
	for i, it := range items {
		messages[i] = it.delivery.Message
	}
	return messages
}

// group is what is left of the items of one queue in a batch.
type group struct {
	failed *item
	err    error
	rest   []*item // behind it
}

// settle does what the results ask for.
func (e *engine) settle(batch []*item, results []inbox.Result) {
	groups, order := make(map[*queue]*group), []*queue(nil)
	var done []*item
	for i, it := range batch {
		g := groups[it.queue]
		if g == nil {
			g = &group{}
			groups[it.queue], order = g, append(order, it.queue)
		}
		switch err := results[i].Err; {
		case err == nil:
			e.succeeded(it, results[i].Outcome)
			done = append(done, it)
		case g.failed == nil:
			g.failed, g.err = it, err
		default:
			g.rest = append(g.rest, it)
		}
	}
	e.noteOutage(results)
	e.finish(done...)
	for _, q := range order {
		if g := groups[q]; g.failed == nil {
			e.putBack(q, nil, time.Time{}, true)
		} else {
			e.settleFailure(q, g)
		}
	}
}

func (e *engine) succeeded(it *item, outcome inbox.Outcome) {
	if outcome == outcomeParked {
		e.watch.count(func(s *Stats) { s.Parked++ })
		return
	}
	e.watch.applied(it.delivery.Message, outcome)
}

// noteOutage pauses everything when a result says that the database takes nothing, and ends the pause when one says that it does.
func (e *engine) noteOutage(results []inbox.Result) {
	var down error
	up := false
	for _, r := range results {
		switch inbox.ClassOf(r.Err) {
		case inbox.ClassUnavailable:
			down = r.Err
		case inbox.ClassSkipped:
		default:
			up = true
		}
	}
	if down != nil {
		e.pause(down)
	} else if up {
		e.resume()
	}
}

func (e *engine) pause(err error) {
	e.mu.Lock()
	e.outage.failed(time.Now())
	e.mu.Unlock()
	e.watch.note(outageName, err)
}

func (e *engine) resume() {
	e.mu.Lock()
	was := e.outage.failures
	e.outage.failures = 0
	e.mu.Unlock()
	if was > 0 {
		e.watch.note(outageName, nil)
	}
}

// settleFailure does the next step with the first message of a queue that was not applied, and with those behind it.
func (e *engine) settleFailure(q *queue, g *group) {
	it, now := g.failed, time.Now()
	all := append([]*item{it}, g.rest...)
	m := it.delivery.Message
	policy := e.cfg.policyOf(m.EventType())
	next, after := policy.decide(inbox.ClassOf(g.err), it.attempts+1, rand.Float64())
	if e.work.Err() != nil { // it may have failed because it was told to end
		next = stepAgain
	}
	if next == stepAgain {
		e.putBack(q, all, now.Add(again), true)
		return
	}
	e.watch.failed(m, g.err, next)
	if next == stepPause {
		e.putBack(q, all, time.Time{}, true)
		return
	}
	it.attempts++
	if it.first.IsZero() {
		it.first = now
	}
	f := failure{err: g.err, attempts: it.attempts, first: it.first, last: now}
	switch next {
	case stepRetry:
		e.watch.count(func(s *Stats) { s.Retried++ })
		e.putBack(q, all, now.Add(after), true)
	case stepPark:
		e.park(q, all, f, after)
	case stepDrop:
		e.watch.dropped(m, g.err)
		e.finish(it)
		e.putBack(q, g.rest, time.Time{}, true)
	case stepRetryTopic:
		e.post(&letter{item: it, message: retryLetter(m, e.cfg.Name, f, after)}, g.rest)
	case stepDeadLetter:
		e.post(&letter{item: it, message: deadLetter(m, e.cfg.Name, f), dead: true}, g.rest)
	}
}

// park stores items, which are all of one queue and in order. They are finished once they are in the database.
func (e *engine) park(q *queue, items []*item, f failure, after time.Duration) {
	err := guard(func() error {
		return e.cfg.Parking.Park(e.work, e.cfg.Name, parkingKey(items[0]), messagesOf(items), f.parked(after))
	})
	if err != nil {
		items[0].attempts-- // it is tried again because it could not be stored
		e.pause(fmt.Errorf("park %s: %w", items[0].delivery.Message, err))
		e.putBack(q, items, time.Time{}, true)
		return
	}
	e.watch.count(func(s *Stats) { s.Parked += int64(len(items)) })
	e.finish(items...)
	e.putBack(q, nil, time.Time{}, true)
}

func (f failure) parked(after time.Duration) ParkedFailure {
	return ParkedFailure{Err: cleanError(f.err), Class: inbox.ClassOf(f.err), Attempts: f.attempts, FirstAt: f.first, After: after}
}

// parkingKey is the key under which a message is parked: one without order is parked alone.
func parkingKey(it *item) string {
	if it.key != "" {
		return it.key
	}
	m := it.delivery.Message
	return "\x00" + m.EventID() + "\x00" + m.Coordinates
}

// appendParked stores what is of parked keys behind what is parked of them.
func (e *engine) appendParked(batch []*item, results []inbox.Result) {
	if e.cfg.Parking == nil {
		return
	}
	places := make(map[string][]int)
	var keys []string
	for i, it := range batch {
		if it.key == "" {
			continue
		}
		if places[it.key] == nil {
			keys = append(keys, it.key)
		}
		places[it.key] = append(places[it.key], i)
	}
	if len(keys) == 0 {
		return
	}
	var parked []string
	err := guard(func() (err error) {
		parked, err = e.cfg.Parking.Parked(e.work, e.cfg.Name, keys)
		return err
	})
	if err != nil {
		for i := range results {
			results[i].Err = inbox.Unavailable(fmt.Errorf("look for parked keys: %w", err))
		}
		return
	}
	for _, key := range parked {
		r := e.appendTo(key, batch, places[key])
		for _, i := range places[key] {
			results[i] = r
		}
	}
}

// appendTo stores messages of one key. The result is empty when the key has rejoined in this moment: they are to be handled.
func (e *engine) appendTo(key string, batch []*item, places []int) (r inbox.Result) {
	var messages []inbox.Message
	for _, i := range places {
		messages = append(messages, batch[i].delivery.Message)
	}
	err := guard(func() error {
		stored, err := e.cfg.Parking.Append(e.work, e.cfg.Name, key, messages)
		if stored {
			r.Outcome = outcomeParked
		}
		return err
	})
	if err != nil {
		return inbox.Result{Err: inbox.Unavailable(fmt.Errorf("store behind the parked messages of the key: %w", err))}
	}
	return r
}

// tryParked tries the parked key that is due, or waits.
func (e *engine) tryParked(ctx context.Context) error {
	began := time.Now() // before the claim begins, so that no effect is committed after it has run out
	k, err := e.cfg.Parking.Claim(ctx, e.cfg.Name, e.cfg.ParkingLease, e.cfg.Batch)
	if err != nil {
		return err
	}
	if k == nil {
		sleep(ctx, e.cfg.ParkingPoll)
		return nil
	}
	handling, cancel := context.WithDeadline(e.work, began.Add(e.cfg.ParkingLease))
	defer cancel()
	done, next := e.applyParked(handling, k)
	settling, cancelSettling := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.ParkingLease)
	defer cancelSettling()
	rejoined, err := e.cfg.Parking.Settle(settling, k, done, next)
	if err != nil {
		return fmt.Errorf("settle %d parked messages after %v: %w", done, time.Since(began).Round(time.Millisecond), err)
	}
	if rejoined {
		e.cfg.Hooks.rejoined(k.Key)
	}
	return nil
}

// applyParked handles the first messages of a parked key. It says how many are done with, and what is known of the failure of the one
// that follows.
func (e *engine) applyParked(ctx context.Context, k *ParkedKey) (done int, next *ParkedFailure) {
	if len(k.Messages) == 0 {
		return 0, nil
	}
	q := &queue{}
	items := make([]*item, len(k.Messages))
	for i, m := range k.Messages {
		items[i] = &item{delivery: &Delivery{Message: m.Message}, queue: q}
	}
	items[0].attempts, items[0].first = k.Failure.Attempts, k.Failure.FirstAt
	fit := 0
	for fit < len(items) && k.Messages[fit].GivenUp == nil && e.knows(items[fit].delivery.Message.EventType()) {
		fit++
	}
	for i, r := range e.call(ctx, items[:fit]) {
		if r.Err != nil {
			return e.parkedFailure(ctx, items[i], i, r.Err)
		}
		e.watch.applied(items[i].delivery.Message, r.Outcome)
	}
	switch {
	case fit == len(items):
		return fit, nil
	case k.Messages[fit].GivenUp == nil:
		unknown := inbox.Malformed(errors.New("the event type is unknown to the consumer: see Config.Types"))
		return e.parkedFailure(ctx, items[fit], fit, unknown)
	case fit == 0:
		return e.endGivenUp(ctx, k.Messages[0], 0, k.Failure)
	default:
		return e.endGivenUp(ctx, k.Messages[fit], fit, ParkedFailure{})
	}
}

// parkedFailure decides about a parked message that failed behind done others. Only what is permanent or malformed leaves.
func (e *engine) parkedFailure(ctx context.Context, it *item, done int, err error) (int, *ParkedFailure) {
	m, now := it.delivery.Message, time.Now()
	policy := e.cfg.policyOf(m.EventType())
	policy.Retry = RetryPark
	next, after := policy.decide(inbox.ClassOf(err), it.attempts+1, rand.Float64())
	f := failure{err: err, attempts: it.attempts, first: it.first, last: now}
	if f.first.IsZero() {
		f.first = now
	}
	if next == stepPause || next == stepAgain || e.work.Err() != nil {
		parked := f.parked(maxPause)
		return done, &parked
	}
	f.attempts++
	e.watch.failed(m, err, next)
	parked := f.parked(after)
	if next == stepPark {
		return done, &parked
	}
	return e.endParked(ctx, m, done, next, f, parked)
}

// endGivenUp ends a parked message behind done others that people have given up. last is what is known of its failure, which stays
// the same until it has left.
func (e *engine) endGivenUp(ctx context.Context, given ParkedMessage, done int, last ParkedFailure) (int, *ParkedFailure) {
	m, now := given.Message, time.Now()
	end := e.cfg.policyOf(m.EventType()).Exhausted.step()
	g := given.GivenUp
	e.cfg.Logger.Warn("a parked message was given up by people", "message", m.String(), "by", g.By, "reason", g.Reason, "next", end)
	f := failure{err: g.over(last), attempts: last.Attempts, first: last.FirstAt, last: now}
	if f.first.IsZero() {
		f.first = now
	}
	return e.endParked(ctx, m, done, end, f, last)
}

// over is the error of a message that was given up, with its last error and of the same class.
func (g *GivenUp) over(last ParkedFailure) error {
	err := fmt.Errorf("given up by %s: %s", g.By, g.Reason)
	if last.Err != "" {
		err = fmt.Errorf("%w; its last error: %s", err, last.Err)
	}
	switch last.Class {
	case inbox.ClassPermanent:
		return inbox.Permanent(err)
	case inbox.ClassMalformed:
		return inbox.Malformed(err)
	default:
		return err
	}
}

// endParked ends a parked message behind done others. When its dead letter cannot be written it stays, with what is known of it.
func (e *engine) endParked(
	ctx context.Context, m inbox.Message, done int, end step, f failure, known ParkedFailure,
) (int, *ParkedFailure) {
	if end == stepDrop {
		e.watch.dropped(m, f.err)
		return done + 1, nil
	}
	letter := deadLetter(m, e.cfg.Name, f)
	if err := e.publishOne(ctx, letter); err != nil {
		known.After, known.LetterErr = refusedPause, cleanError(fmt.Errorf("%s: %w", letter.Topic, err))
		return done, &known
	}
	e.watch.deadLettered(m, letter.Topic)
	return done + 1, nil
}
