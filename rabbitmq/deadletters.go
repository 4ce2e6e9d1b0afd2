package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/operator"
)

// DeadLetters is a dead-letter topic: a queue, classic or quorum. It implements dlt.Topic.
//
// RabbitMQ shows messages only to those who consume them. So a scan has every message delivered and acknowledges none: until the
// next scan or Close, nobody else gets them. Then they go back in their order, counted as delivered once more: keep the delivery limit of a
// quorum queue off (see the package comment), or it drops letters that were looked at too often. Close, and the next scan, tell of letters
// that are not back. A program that dies meanwhile gives them back as well, but a quorum queue may then change their order. At RabbitMQ 3,
// letters that come to a quorum queue during a scan stand before the others afterwards. A scan must not take longer than the server's
// consumer_timeout. Letters that were redriven are acknowledged.
type DeadLetters struct {
	config  Config
	line    line
	queue   string
	session *session      // of the last scan
	channel *amqp.Channel // of the last scan
	held    [][]uint64    // tags of what each page has delivered and was not settled
	left    int           // how many letters the last scan has still to take
	last    amqp.Delivery // of the last scan
}

var _ dlt.Topic = (*DeadLetters)(nil)

// OpenDeadLetters checks the configuration, of which it needs how to reach the server; Scan connects. The topic is a slash and the name
// of the queue. The caller closes what it returns.
func OpenDeadLetters(c Config, topic string) (*DeadLetters, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	if len(topic) < 2 || topic[0] != '/' {
		return nil, fmt.Errorf("rabbitmq: topic %q names no queue: write a slash and the name of the queue, such as /orders.dlt", topic)
	}
	c.Declare = nil // a look changes nothing
	d := &DeadLetters{config: c, queue: topic[1:]}
	d.line.config = &d.config
	return d, nil
}

// Scan implements dlt.Topic. It fails when other consumers take letters meanwhile.
func (d *DeadLetters) Scan(ctx context.Context, visit func(dlt.Letter) error) error {
	session, err := d.line.connect(ctx)
	if err != nil {
		return fmt.Errorf("rabbitmq: %w", err)
	}
	err = d.begin(session)
	for err == nil && d.left > 0 {
		err = d.page(ctx, min(d.left, letterPage), visit)
	}
	if err != nil && d.channel != nil {
		err = errors.Join(err, d.takeRest(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return fmt.Errorf("rabbitmq: read queue %s: %w", d.queue, err)
	}
	return nil
}

const (
	letterPage   = 500                   // letters that are asked for at a time
	letterTag    = "postrider-dlt-"      // and the number of the page: the consumer, as the server shows it
	giveBackLook = 20 * time.Millisecond // between looks whether the queue has its messages back
)

// begin ends the scan before, opens a channel, and counts what the queue has.
func (d *DeadLetters) begin(s *session) error {
	if err := d.giveBack(); err != nil {
		return err
	}
	answered := s.bounded()
	channel, err := s.conn.Channel()
	answered()
	if err != nil {
		return err
	}
	d.session, d.channel, d.last = s, channel, amqp.Delivery{}
	queue, err := d.look()
	d.left = queue.Messages
	return err
}

// page takes n messages, and visits them until visit fails or ctx ends: what is on its way when the subscription ends, the client loses, and
// the server gives it back behind everything else. What was settled meanwhile makes room for others. They are taken too, and visited as long
// as there is something left: behind it are letters that have come since the scan began.
func (d *DeadLetters) page(ctx context.Context, n int, visit func(dlt.Letter) error) error {
	page := len(d.held)
	d.held = append(d.held, nil)
	tag := letterTag + strconv.Itoa(page) // a quorum queue counts what an earlier one of the same name holds
	deliveries, err := d.subscribe(tag, n)
	if err != nil {
		return err
	}
	taken := 0
	take := func(m amqp.Delivery) {
		taken++
		d.last = m
		d.held[page] = append(d.held[page], m.DeliveryTag)
		if d.left == 0 {
			return
		}
		d.left--
		if err == nil {
			err = visit(dlt.Letter{Message: decode(d.queue, &m), Ref: m.DeliveryTag})
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	for taken < n {
		select {
		case m, ok := <-deliveries:
			if !ok {
				return errors.New("the server has ended the subscription")
			}
			take(m)
		case <-time.After(patience):
			err = errors.Join(err, fmt.Errorf("the queue had %d letters more, and none came within %s: other consumers take them", n-taken, patience))
			taken, d.left = n, 0
		}
	}
	if cancelled := d.unsubscribe(tag); cancelled != nil {
		return errors.Join(err, cancelled)
	}
	for m := range deliveries {
		take(m)
	}
	return err
}

// takeRest takes what a scan that has ended early has not come to, so that all goes back in its order. A quorum queue hands out what was given
// back before everything else, and puts what is given back behind it; that of RabbitMQ 3 puts it behind everything. Both show by the
// header that it matters. A classic queue puts everything where it was.
func (d *DeadLetters) takeRest(ctx context.Context) (err error) {
	for err == nil && d.left > 0 && d.last.Headers[headerDeliveryCount] != nil {
		err = d.page(ctx, min(d.left, letterPage), func(dlt.Letter) error { return nil })
	}
	return err
}

// subscribe has n messages delivered, and more only when some of them are settled.
func (d *DeadLetters) subscribe(tag string, n int) (<-chan amqp.Delivery, error) {
	defer d.session.bounded()()
	if err := d.channel.Qos(n, 0, false); err != nil {
		return nil, err
	}
	return d.channel.Consume(d.queue, tag, false, false, false, false, nil)
}

// unsubscribe leaves what was delivered where it is.
func (d *DeadLetters) unsubscribe(tag string) error {
	defer d.session.bounded()()
	return d.channel.Cancel(tag, false)
}

// giveBack ends the last scan, and waits a little until the queue has its messages back. Its connection may have ended before, and the
// server then gives everything back by itself. Messages keep their order in a quorum queue when they are given back one by one, and each
// page after the one before is back.
func (d *DeadLetters) giveBack() error {
	if d.channel == nil {
		return nil
	}
	missing := 0
	for _, tags := range d.held {
		missing += d.giveBackPage(tags, missing == 0)
	}
	_ = d.channel.Close()
	d.channel, d.held = nil, nil
	if missing > 0 {
		return fmt.Errorf("%d letters that were read are not back in the queue: other consumers have taken them, or its x-delivery-limit has dropped them",
			missing)
	}
	return nil
}

// giveBackPage returns how many messages the queue has not got back. It waits for them only if told to, so that others who take them do not
// hold up each page.
func (d *DeadLetters) giveBackPage(tags []uint64, wait bool) (missing int) {
	before, err := d.look()
	for _, tag := range tags {
		err = errors.Join(err, d.channel.Reject(tag, true))
	}
	for end := time.Now().Add(patience); err == nil; time.Sleep(giveBackLook) {
		var queue amqp.Queue
		if queue, err = d.look(); err != nil {
			break
		}
		missing = max(0, before.Messages+len(tags)-queue.Messages)
		if missing == 0 || !wait || time.Now().After(end) {
			return missing
		}
	}
	return 0 // the connection has ended, and the server gives everything back
}

func (d *DeadLetters) look() (amqp.Queue, error) {
	defer d.session.bounded()()
	return d.channel.QueueDeclarePassive(d.queue, true, false, false, false, nil)
}

// Settle implements dlt.Topic. Who did it and why is not kept.
func (d *DeadLetters) Settle(_ context.Context, letters []dlt.Letter, _ operator.Action) error {
	var failures []error
	for _, l := range letters {
		tag := l.Ref.(uint64)
		failures = append(failures, d.channel.Ack(tag, false))
		for page, tags := range d.held {
			if at, held := slices.BinarySearch(tags, tag); held {
				d.held[page] = slices.Delete(tags, at, at+1)
			}
		}
	}
	// An answer on the channel says that the server has read what was sent before.
	_, err := d.look()
	if err := errors.Join(append(failures, err)...); err != nil {
		return fmt.Errorf("rabbitmq: acknowledge letters of queue %s: %w", d.queue, err)
	}
	return nil
}

// Close implements dlt.Topic.
func (d *DeadLetters) Close() error {
	err := d.giveBack()
	d.line.close()
	if err != nil {
		return fmt.Errorf("rabbitmq: queue %s: %w", d.queue, err)
	}
	return nil
}
