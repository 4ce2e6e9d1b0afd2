package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/intake"
)

// Pauses between attempts to subscribe.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
)

// errCancelled is the server's word for a queue that was deleted, or whose node is gone.
var errCancelled = errors.New("the server has ended the subscription: the queue was deleted, or is no longer at work")

// reader keeps a queue subscribed to.
type reader struct {
	source   *Source
	queue    string
	prefetch int
	shelf    *intake.Shelf[*consumer.Delivery]
	current  *subscription // nil while there is none; the source's lock guards it
}

// subscription is a channel with one consumer on it. When it ends the next one begins from nothing.
type subscription struct {
	session    *session
	channel    *amqp.Channel
	prefetch   int
	deliveries <-chan amqp.Delivery
	closed     <-chan *amqp.Error
	ended      chan struct{} // closed when there are no more deliveries
	wake       chan struct{} // holds a token when there is something to tell the server

	// The source's lock guards what follows.
	ledger  ledger
	flushes []chan struct{} // to be closed when the server has taken what was finished before
}

// loan is the Ref of a delivery.
type loan struct {
	subscription *subscription
	tag          uint64
}

func (r *reader) run(ctx context.Context) {
	pause := shortestPause
	for {
		begun := time.Now()
		err := r.read(ctx)
		if ctx.Err() != nil {
			return
		}
		r.shelf.Fail(fmt.Errorf("rabbitmq: %w", err))
		if time.Since(begun) > longestPause {
			pause = shortestPause
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// read reads the queue until it cannot any more, and says why.
func (r *reader) read(ctx context.Context) error {
	session, err := r.source.line.connect(ctx)
	if err != nil {
		return err
	}
	sub, err := session.subscribe(r.queue, r.prefetch)
	if err != nil {
		return r.refused(session, err)
	}
	r.begin(sub)
	r.source.running.Go(func() { r.source.settleOn(sub) })
	defer r.finish(sub)
	for {
		select {
		case d, open := <-sub.deliveries:
			if !open {
				return r.refused(session, sub.reason())
			}
			r.add(sub, &d)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// refused says which queue an error is about, unless it is about the connection.
func (r *reader) refused(session *session, err error) error {
	if session.conn.IsClosed() {
		return session.state()
	}
	var refusal *amqp.Error
	if errors.As(err, &refusal) && refusal.Code == amqp.NotFound {
		return fmt.Errorf("queue %q does not exist: declare it: %w", r.queue, err)
	}
	return fmt.Errorf("read queue %q: %w", r.queue, err)
}

// subscribe begins to read. A stream is refused by the server because of the priority, which is what every other queue
// assumes anyway: read like a queue it would begin at its end, and pass over what is there.
func (s *session) subscribe(queue string, prefetch int) (*subscription, error) {
	defer s.bounded()()
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, err
	}
	sub := &subscription{
		session:  s,
		channel:  ch,
		prefetch: prefetch,
		closed:   ch.NotifyClose(make(chan *amqp.Error, 1)),
		ended:    make(chan struct{}),
		wake:     make(chan struct{}, 1),
		ledger:   newLedger(),
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return nil, err
	}
	if sub.deliveries, err = ch.Consume(queue, "", false, false, false, false, amqp.Table{"x-priority": int32(0)}); err != nil {
		_ = ch.Close() // what was refused has closed it
		return nil, err
	}
	return sub, nil
}

// reason says why there are no more deliveries.
func (sub *subscription) reason() error {
	select {
	case err := <-sub.closed:
		if err != nil {
			return err
		}
		return amqp.ErrClosed
	default:
		return errCancelled
	}
}

func (r *reader) begin(sub *subscription) {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	r.current = sub
}

func (r *reader) add(sub *subscription, d *amqp.Delivery) {
	delivery := &consumer.Delivery{
		Message:    decode(r.queue, d),
		Lane:       r.queue,
		Deliveries: deliveriesOf(d),
		Ref:        loan{sub, d.DeliveryTag},
	}
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	sub.ledger.add(d.DeliveryTag)
	r.shelf.Add(delivery)
}

// finish forgets what the subscription has brought: it comes again.
func (r *reader) finish(sub *subscription) {
	r.source.mu.Lock()
	r.current, r.shelf.Ready = nil, nil
	r.source.mu.Unlock()
	close(sub.ended)
}

// settleOn tells the server what is finished and returned, until the subscription ends. It leaves the channel closed.
func (s *Source) settleOn(sub *subscription) {
	for {
		select {
		case <-sub.wake:
			s.settleOnce(sub)
		case <-sub.ended:
			s.settleOnce(sub)
			sub.leave()
			return
		}
	}
}

// settleOnce does what is to be done now. When that fails the channel has ended, and nothing is left to wait for.
func (s *Source) settleOnce(sub *subscription) {
	s.mu.Lock()
	o, flushes := sub.ledger.take(), sub.flushes
	sub.flushes = nil
	s.mu.Unlock()
	if err := sub.settle(o); err == nil && len(flushes) > 0 {
		sub.sync()
	}
	for _, flushed := range flushes {
		close(flushed)
	}
}

// leave closes the channel, if it is not closed, and with that returns what is open. To end the consumer first would let the
// next one of a queue with a single active consumer have what comes after.
func (sub *subscription) leave() {
	if sub.channel.IsClosed() {
		return
	}
	defer sub.session.bounded()()
	_ = sub.channel.Close() // fails when the connection ends, and the channel with it
}

func (sub *subscription) settle(o orders) error {
	for _, tag := range o.requeue {
		if err := sub.channel.Nack(tag, false, true); err != nil {
			return err
		}
	}
	if o.through > 0 {
		if err := sub.channel.Ack(o.through, true); err != nil {
			return err
		}
	}
	for _, tag := range o.ack {
		if err := sub.channel.Ack(tag, false); err != nil {
			return err
		}
	}
	return nil
}

// sync returns when the server has taken what was sent on the channel, or the channel has ended. Acknowledgements have no
// answer of their own; so it asks for what is the case already, and the server answers in order.
func (sub *subscription) sync() {
	defer sub.session.bounded()()
	_ = sub.channel.Qos(sub.prefetch, 0, false)
}
