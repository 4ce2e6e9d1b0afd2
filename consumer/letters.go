package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider/relay"
)

// letter is a message on its way to a retry or dead-letter topic. Its item stays in hand, and its key waits, until the topic has it.
type letter struct {
	item    *item
	message relay.Message
	dead    bool
	writing bool
	due     time.Time
	tries   int
	cut     bool  // HeaderFailureMessage was left out
	refused error // why the sink refuses it for good
}

const (
	// letterBatch is how many letters one Publish call has at most.
	letterBatch = 100
	// refusedPause is how long a message that the sink refuses for good waits for its next try: people may make the topic, or
	// let it take more.
	refusedPause = time.Minute

	outageName = "handler"
)

// post puts a letter on its way. The rest of its queue stays behind it.
func (e *engine) post(l *letter, rest []*item) {
	e.putBack(l.item.queue, rest, time.Time{}, false)
	e.mu.Lock()
	e.letters = append(e.letters, l)
	e.changed()
	e.mu.Unlock()
}

// write writes the letters that are due, or waits for one.
func (e *engine) write(ctx context.Context) error {
	letters, changes, wait := e.dueLetters()
	if len(letters) == 0 {
		awaitChange(ctx, changes, wait)
		return nil
	}
	messages := make([]relay.Message, len(letters))
	for i, l := range letters {
		messages[i] = l.message
	}
	return e.settleLetters(letters, e.publish(ctx, messages))
}

// dueLetters takes what may be written now. When there is nothing, changes and wait say what to wait for.
func (e *engine) dueLetters() (due []*letter, changes <-chan struct{}, wait time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	limit, wait := e.outlet.permit(now, letterBatch)
	for _, l := range e.letters {
		switch after := l.due.Sub(now); {
		case len(due) >= limit:
		case after <= 0:
			l.writing = true
			due = append(due, l)
		case wait == 0 || after < wait:
			wait = after
		}
	}
	return due, e.changes, wait
}

// publish has one outcome for each message, whatever the sink does.
func (e *engine) publish(ctx context.Context, messages []relay.Message) (outcomes []relay.Outcome) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.PublishTimeout)
	defer cancel()
	err := guard(func() error {
		outcomes = e.cfg.Sink.Publish(ctx, messages)
		if len(outcomes) != len(messages) {
			return fmt.Errorf("the sink gave %d outcomes for %d messages", len(outcomes), len(messages))
		}
		return nil
	})
	if err != nil {
		return slices.Repeat([]relay.Outcome{relay.Unavailable(err)}, len(messages))
	}
	return outcomes
}

// publishOne writes a dead letter, without the error's text when the sink does not take it so. It returns nil once the topic has it.
func (e *engine) publishOne(ctx context.Context, m relay.Message) error {
	o := e.publish(ctx, []relay.Message{m})[0]
	if o.Class == relay.ClassPermanent {
		o = e.publish(ctx, []relay.Message{withoutFailureMessage(m)})[0]
	}
	if o.Class == relay.ClassPublished {
		return nil
	}
	return reasonOf(o)
}

func reasonOf(o relay.Outcome) error {
	if o.Err != nil {
		return o.Err
	}
	return fmt.Errorf("the sink reports %s", o.Class)
}

// settleLetters finishes what was written and says when the rest is tried again. It returns why the sink takes nothing, if it does not.
func (e *engine) settleLetters(letters []*letter, outcomes []relay.Outcome) error {
	now := time.Now()
	var written []*letter
	var down, problem error
	up := false
	e.mu.Lock()
	for i, l := range letters {
		l.writing = false
		switch o := outcomes[i]; o.Class {
		case relay.ClassPublished:
			up = true
			written = append(written, l)
		case relay.ClassUnavailable:
			down = reasonOf(o)
		case relay.ClassPermanent:
			up = true
			l.turnedDown(now, o)
		case relay.ClassRetry:
			up = true
			l.tries++
			l.due = now.Add(max(o.After, backoff(l.tries)))
			problem = reasonOf(o)
		}
	}
	if down != nil {
		e.outlet.failed(now)
	} else if up {
		e.outlet.failures = 0
	}
	e.mu.Unlock()
	e.settleWritten(written)
	e.reportRefused(letters, now)
	e.returnLetters(func(l *letter) bool {
		return !l.writing && (e.stopping || isRevoked(l.item)) && slices.Contains(letters, l)
	})
	e.turnLanes()
	e.watch.note(outletName, errors.Join(down, problem))
	return nil
}

const outletName = "retry and dead-letter topics"

// turnedDown notes that the sink refuses the letter for good: it may be the added text that makes it too large.
func (l *letter) turnedDown(now time.Time, o relay.Outcome) {
	if !l.cut {
		l.cut, l.message = true, withoutFailureMessage(l.message)
		return
	}
	l.refused = reasonOf(o)
	l.due = now.Add(refusedPause)
}

// settleWritten finishes the items of letters that their topics have.
func (e *engine) settleWritten(written []*letter) {
	for _, l := range written {
		if !e.dropLetter(l) {
			continue // a stop has returned it before the sink answered
		}
		if m := l.item.delivery.Message; l.dead {
			e.watch.deadLettered(m, l.message.Topic)
		} else {
			e.watch.count(func(s *Stats) { s.RetryTopics++ })
		}
		e.finish(l.item)
		e.putBack(l.item.queue, nil, time.Time{}, true)
	}
}

// dropLetter reports whether the letter was there.
func (e *engine) dropLetter(l *letter) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := slices.Index(e.letters, l)
	if at < 0 {
		return false
	}
	e.letters = slices.Delete(e.letters, at, at+1)
	return true
}

func (e *engine) reportRefused(letters []*letter, now time.Time) {
	for _, l := range letters {
		if l.refused != nil && l.due.After(now) {
			e.cfg.Logger.Error("a message can go nowhere: its key waits until the topic takes it",
				"message", l.item.delivery.Message.String(), "topic", l.message.Topic, "error", l.refused)
			e.cfg.Hooks.refused(l.item.delivery.Message, l.message.Topic, l.refused)
		}
	}
}

// refusals lists what the sink refuses for good.
func (e *engine) refusals() (reasons []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.letters {
		if l.refused != nil {
			reasons = append(reasons, fmt.Sprintf("%s is refused by %s, and its key waits: %v", l.item.delivery.Message, l.message.Topic, l.refused))
		}
	}
	return reasons
}

// awaitLetters waits until every letter was written or returned.
func (e *engine) awaitLetters(ctx context.Context) {
	for ctx.Err() == nil {
		e.mu.Lock()
		left, changes := len(e.letters), e.changes
		e.mu.Unlock()
		if left == 0 {
			return
		}
		awaitChange(ctx, changes, 0)
	}
}

// returnLetters returns the messages of letters that match wants to the source.
func (e *engine) returnLetters(match func(*letter) bool) {
	var gone []*item
	e.mu.Lock()
	e.letters = slices.DeleteFunc(e.letters, func(l *letter) bool {
		if !match(l) {
			return false
		}
		gone = append(gone, l.item)
		return true
	})
	e.schedule.done(gone...)
	for _, it := range gone {
		e.schedule.release(it.queue, time.Time{}, time.Now())
	}
	e.changed()
	e.mu.Unlock()
	e.giveBack(gone)
}
