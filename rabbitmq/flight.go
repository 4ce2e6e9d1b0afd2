package rabbitmq

import (
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

const (
	channelWindow  = 128              // messages on one channel at a time
	confirmTimeout = 30 * time.Second // for the confirmations of a flight
)

var errNotConfirmed = fmt.Errorf("not confirmed within %s", confirmTimeout)

// flight is what is on its way at the same time: at most one message of each key, in bundles.
type flight struct {
	session *session
	config  *Config
	bundles []*bundle
}

// bundle are messages for one target, on a channel of their own. What the server refuses by closing the channel, such as
// an exchange that does not exist, is the same for all of them, and nobody else is on the channel.
type bundle struct {
	target   target
	messages []int // numbers in the batch
	channel  *channel
	confirms []*amqp.DeferredConfirmation // of each message that was sent
	failed   error                        // why the rest was not sent
}

// newFlight takes what can be sent now of a round, with at most so many bundles. The rest of the round is offered again.
//
// A message larger than any that this server has taken flies alone, the largest first: were it too large, the server
// would close the channel, and nobody could tell what became of the others on it. Suspects fly alone for the same reason.
func newFlight(s *session, c *Config, round []int, messages []message, suspects map[int]bool, most int) *flight {
	f := &flight{session: s, config: c}
	filling := make(map[target]*bundle)
	for _, i := range withoutRisk(s, round, messages, suspects) {
		t := messages[i].target
		b := filling[t]
		if b == nil || len(b.messages) == channelWindow {
			if len(f.bundles) == most {
				continue
			}
			b = &bundle{target: t}
			filling[t] = b
			f.bundles = append(f.bundles, b)
		}
		b.messages = append(b.messages, i)
	}
	return f
}

// withoutRisk returns the round, or the one message of it that has to fly alone first.
func withoutRisk(s *session, round []int, messages []message, suspects map[int]bool) []int {
	largest := 0
	for n, i := range round {
		if suspects[i] {
			return round[n : n+1]
		}
		if messages[i].payload() > messages[round[largest]].payload() {
			largest = n
		}
	}
	if messages[round[largest]].payload() > s.taken.Load() {
		return round[largest : largest+1]
	}
	return round
}

// fly sends the flight, waits until it is known what became of each message, and settles them. Those that were refused
// together become suspects instead. It returns an error when sending more makes no sense.
func (f *flight) fly(messages []message, suspects map[int]bool, b *keyorder.Batch) (unavailable error) {
	for _, bundle := range f.bundles {
		bundle.send(f.session, f.config.unroutable(bundle.target.exchange) != UnroutableAllow, messages)
	}
	inTime := f.await()
	for _, bundle := range f.bundles {
		for n, o := range f.outcomes(bundle, messages) {
			i := bundle.messages[n]
			switch o.Class {
			case 0:
				suspects[i] = true
				continue
			case relay.ClassUnavailable:
				unavailable = o.Err
			}
			b.Settle(i, o)
		}
		f.release(bundle)
	}
	if !inTime && f.session.blocked.Load() == nil {
		f.session.kill() // a server that is blocked will tell when it no longer is; this one is better asked anew
	}
	return unavailable
}

func (b *bundle) send(s *session, mandatory bool, messages []message) {
	if b.failed = s.state(); b.failed != nil {
		return
	}
	if b.channel, b.failed = s.take(); b.failed != nil {
		return
	}
	for _, i := range b.messages {
		if b.failed = s.state(); b.failed != nil {
			return
		}
		confirm, err := b.channel.PublishWithDeferredConfirm(b.target.exchange, b.target.key, mandatory, false, messages[i].publishing)
		if err != nil {
			b.failed = err
			return
		}
		b.confirms = append(b.confirms, confirm)
	}
}

// await waits for the confirmations. It is false when some are missing. A channel or a connection that ends settles all
// of its own.
func (f *flight) await() bool {
	timeout := time.NewTimer(confirmTimeout)
	defer timeout.Stop()
	for _, b := range f.bundles {
		for _, confirm := range b.confirms {
			select {
			case <-confirm.Done():
			case <-timeout.C:
				return false
			}
		}
	}
	return true
}

// answer is what the server has said to one message.
type answer uint8

const (
	answerNone answer = iota
	answerNack        // or the channel was closed
	answerAck
)

// outcomes tells what became of the messages of a bundle. Those that have to be sent again alone have no outcome.
//
// Confirmations are looked at first, then whether the channel is closed, then what was returned: the client settles
// confirmations as if by a nack after it has marked their channel as closed, and a return comes before its confirmation.
func (f *flight) outcomes(b *bundle, messages []message) []relay.Outcome {
	answers := b.answers()
	refused := f.refusal(b)
	returned := b.returned()
	outcomes := make([]relay.Outcome, len(b.messages))
	for n, i := range b.messages {
		id := messages[i].publishing.MessageId
		reason, unroutable := returned[id]
		switch {
		case unroutable: // it was acknowledged all the same
			outcomes[n] = f.unroutable(b.target, reason)
		case answers[n] == answerAck:
			outcomes[n] = relay.Published("rabbitmq:" + b.target.String() + "@" + id)
		case refused != nil:
			outcomes[n] = f.refused(b, refused)
		case answers[n] == answerNack:
			outcomes[n] = relay.Retry(errorAbout(b.target, errNack))
		case b.failed != nil && n >= len(b.confirms):
			outcomes[n] = relay.Unavailable(errorAbout(b.target, b.failed))
		default:
			outcomes[n] = relay.Unavailable(errorAbout(b.target, f.overdue()))
		}
		if c := outcomes[n].Class; c == relay.ClassPublished || c == relay.ClassRetry {
			f.session.learn(messages[i].payload())
		}
	}
	return outcomes
}

func (b *bundle) answers() []answer {
	answers := make([]answer, len(b.messages))
	for n, confirm := range b.confirms {
		if !isDone(confirm) {
			continue
		}
		answers[n] = answerNack
		if confirm.Acked() {
			answers[n] = answerAck
		}
	}
	return answers
}

// returned reads what the server has returned, and why, by message id.
func (b *bundle) returned() map[string]string {
	returned := make(map[string]string)
	for b.channel != nil {
		select {
		case r, open := <-b.channel.returns:
			if !open {
				return returned
			}
			returned[r.MessageId] = fmt.Sprintf("%s (%d)", r.ReplyText, r.ReplyCode)
		default:
			return returned
		}
	}
	return returned
}

// refusal tells why the bundle's channel is closed, nil if it is not.
func (f *flight) refusal(b *bundle) error {
	switch {
	case b.channel == nil || !b.channel.IsClosed():
		return nil
	case f.session.conn.IsClosed():
		return f.session.state()
	}
	if reason := <-b.channel.closed; reason != nil {
		return reason
	}
	return errors.New("the channel has ended")
}

// overdue says why a confirmation may be missing.
func (f *flight) overdue() error {
	if err := f.session.state(); err != nil {
		return fmt.Errorf("%w: %w", errNotConfirmed, err)
	}
	return errNotConfirmed
}

// release gives the channel back if nothing is on its way on it.
func (f *flight) release(b *bundle) {
	switch {
	case b.channel == nil || b.channel.IsClosed():
	case slices.ContainsFunc(b.confirms, func(c *amqp.DeferredConfirmation) bool { return !isDone(c) }):
		f.session.drop(b.channel)
	default:
		f.session.give(b.channel)
	}
}

func isDone(confirm *amqp.DeferredConfirmation) bool {
	select {
	case <-confirm.Done():
		return true
	default:
		return false
	}
}
