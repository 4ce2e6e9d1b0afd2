package kafka

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
)

// ownedPartition is the lane of a partition that the source owns. The Source's lock guards it.
type ownedPartition struct {
	topic   string
	number  int32
	revoked chan struct{}

	inHand   []*loan // delivered, in the order of their offsets; the first one is not finished
	returned int     // how many of inHand are
	position kgo.EpochOffset
	moved    bool // position is above what was committed
	paused   bool
	going    bool // revoked is closed
}

// loan is a delivery that was not yet finished, or that waits for earlier ones.
type loan struct {
	partition *ownedPartition
	record    *kgo.Record
	finished  bool
	returned  bool
}

func newPartition(topic string, number int32) *ownedPartition {
	return &ownedPartition{topic: topic, number: number, revoked: make(chan struct{})}
}

func laneName(topic string, number int32) string { return topic + "/" + strconv.Itoa(int(number)) }

// deliver lends a record.
func (p *ownedPartition) deliver(r *kgo.Record) *consumer.Delivery {
	l := &loan{partition: p, record: r}
	p.inHand = append(p.inHand, l)
	return p.delivery(l)
}

// deliverAgain lends what was returned, up to limit.
func (p *ownedPartition) deliverAgain(limit int) (deliveries []*consumer.Delivery) {
	if !p.comesAgain() {
		return nil
	}
	for i, l := range p.inHand {
		if l.returned && len(deliveries) < limit {
			p.inHand[i] = &loan{partition: p, record: l.record} // the delivery that was returned settles nothing more
			p.returned--
			deliveries = append(deliveries, p.delivery(p.inHand[i]))
		}
	}
	return deliveries
}

func (p *ownedPartition) comesAgain() bool { return p.returned > 0 && !p.paused && !p.going }

func (p *ownedPartition) delivery(l *loan) *consumer.Delivery {
	return &consumer.Delivery{Message: messageOf(l.record), Lane: laneName(p.topic, p.number), Revoked: p.revoked, Ref: l}
}

func messageOf(r *kgo.Record) inbox.Message {
	headers := make([]inbox.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = inbox.Header{Name: h.Key, Value: string(h.Value)}
	}
	return inbox.Message{
		Topic:       r.Topic,
		Partition:   strconv.Itoa(int(r.Partition)),
		Offset:      strconv.FormatInt(r.Offset, 10),
		Coordinates: fmt.Sprintf("kafka:%s/%d@%d", r.Topic, r.Partition, r.Offset),
		Key:         string(r.Key),
		Headers:     headers,
		Payload:     r.Value,
		At:          r.Timestamp,
	}
}

// finish moves the position over everything that is finished without a gap. Offsets that the topic does not have, such as those
// of compacted records and of the marks of transactions, are no gap.
func (p *ownedPartition) finish(l *loan) {
	l.finished = true
	n := 0
	for n < len(p.inHand) && p.inHand[n].finished {
		n++
	}
	if n == 0 {
		return
	}
	last := p.inHand[n-1].record
	p.position, p.moved = kgo.EpochOffset{Epoch: last.LeaderEpoch, Offset: last.Offset + 1}, true
	clear(p.inHand[:n])
	p.inHand = p.inHand[n:]
}

// giveBack keeps the loan for the next Fetch. Later ones that are in hand stay there.
func (p *ownedPartition) giveBack(l *loan) {
	l.returned = true
	p.returned++
}

// open reports whether something is neither finished nor given back.
func (p *ownedPartition) open() bool {
	for _, l := range p.inHand {
		if !l.finished && !l.returned {
			return true
		}
	}
	return false
}
