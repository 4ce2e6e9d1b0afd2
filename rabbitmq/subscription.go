package rabbitmq

import (
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/consumer"
)

// subscription is the reading of one queue, on a channel of its own, because a queue that is missing closes the channel. It is
// never repaired.
type subscription struct {
	queue    string
	prefetch int
	channel  *amqp.Channel
	session  *session
	closed   chan *amqp.Error
	ended    chan struct{} // closed when nothing more comes; cause is set
	cause    error

	mu      sync.Mutex
	settled uint64          // every delivery tag up to this one is settled
	apart   map[uint64]bool // settled tags above
	unsent  []uint64        // finished, and the server was not told
	news    chan struct{}   // has room for one: something is unsent
}

// loan is what a delivery was fetched from.
type loan struct {
	subscription *subscription
	tag          uint64
}

// subscribe begins to read a queue. Deliveries go to incoming, until the subscription ends or done is closed.
func (s *session) subscribe(queue string, prefetch int, incoming chan<- *consumer.Delivery, done <-chan struct{}) (*subscription, error) {
	answered := s.bounded()
	defer answered()
	channel, err := s.conn.Channel()
	if err != nil {
		return nil, err
	}
	sub := &subscription{
		queue: queue, prefetch: prefetch, channel: channel, session: s,
		closed: channel.NotifyClose(make(chan *amqp.Error, 1)), ended: make(chan struct{}), apart: make(map[uint64]bool),
		news: make(chan struct{}, 1),
	}
	if err := channel.Qos(prefetch, 0, false); err != nil {
		return nil, err
	}
	deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("queue %s: %w", queue, err)
	}
	go sub.pump(deliveries, incoming, done)
	go sub.tell()
	return sub, nil
}

// pump ends when the client closes deliveries: with the channel, or when the server has ended the subscription.
func (sub *subscription) pump(deliveries <-chan amqp.Delivery, incoming chan<- *consumer.Delivery, done <-chan struct{}) {
	defer close(sub.ended)
	for d := range deliveries {
		select {
		case incoming <- sub.deliver(d):
		case <-done:
			return
		}
	}
	select {
	case reason := <-sub.closed:
		sub.cause = fmt.Errorf("queue %s: the channel was closed: %w", sub.queue, reason)
	default:
		sub.cause = fmt.Errorf("queue %s: the server has ended the subscription: the queue was deleted, or has lost its node", sub.queue)
		_ = sub.channel.Close() // what is in hand can no longer be told apart from what comes again
	}
}

func (sub *subscription) isOver() bool {
	select {
	case <-sub.ended:
		return true
	default:
		return false
	}
}

func (sub *subscription) deliver(d amqp.Delivery) *consumer.Delivery {
	return &consumer.Delivery{Message: received(sub.queue, d), Deliveries: countOf(d), Ref: &loan{sub, d.DeliveryTag}}
}

// acknowledge has the server told, soon.
func (sub *subscription) acknowledge(tags []uint64) error {
	sub.mu.Lock()
	sub.unsent = append(sub.unsent, sub.note(tags)...)
	sub.mu.Unlock()
	select {
	case sub.news <- struct{}{}:
	default:
	}
	return nil
}

// tell sends acknowledgements until the subscription is over. What gathers while it does so goes together: a quorum queue takes few
// single ones at a time, and forgets at the end of the connection those that it has not got to.
func (sub *subscription) tell() {
	for {
		select {
		case <-sub.news:
			_ = sub.send() // fails when the channel has ended; then the messages come again
		case <-sub.ended:
			return
		}
	}
}

// send tells the server what is finished: by one frame whatever has no gap, and the rest one by one.
func (sub *subscription) send() error {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	var highest uint64 // of those that the server waits for: it refuses a tag that it does not
	for _, tag := range sub.unsent {
		if tag <= sub.settled {
			highest = max(highest, tag)
		}
	}
	if highest > 0 {
		if err := sub.channel.Ack(highest, true); err != nil {
			return err
		}
	}
	for _, tag := range sub.unsent {
		if tag > sub.settled {
			if err := sub.channel.Ack(tag, false); err != nil {
				return err
			}
		}
	}
	sub.unsent = nil
	return nil
}

// giveBack has the server queue the messages again, as far as it can where they were.
func (sub *subscription) giveBack(tags []uint64) error {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for _, tag := range tags {
		if tag <= sub.settled || sub.apart[tag] {
			continue
		}
		if err := sub.channel.Nack(tag, false, true); err != nil {
			return err
		}
		sub.note([]uint64{tag})
	}
	return nil
}

// note returns the tags that were not settled before. mu is held.
func (sub *subscription) note(tags []uint64) (fresh []uint64) {
	for _, tag := range tags {
		if tag > sub.settled && !sub.apart[tag] {
			sub.apart[tag] = true
			fresh = append(fresh, tag)
		}
	}
	for sub.apart[sub.settled+1] {
		sub.settled++
		delete(sub.apart, sub.settled)
	}
	return fresh
}

// flush returns once the server has read every acknowledgement.
func (sub *subscription) flush() error {
	if err := sub.send(); err != nil {
		return err
	}
	answered := sub.session.bounded()
	defer answered()
	return sub.channel.Qos(sub.prefetch, 0, false)
}
