package kafka

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

// delivery is one call of Publish: its messages, and where each of them goes.
type delivery struct {
	*keyorder.Batch
	records    []kgo.Record
	sizes      []recordSize
	partitions []*partition // of each message; nil for one that is settled before it is sent
}

// partition is a partition that a delivery writes to.
type partition struct {
	topic  *topic
	number int32
	name   string  // topic/number
	most   int     // largest batch in messages, halved when the broker refuses one; 0 means any
	next   *flight // being filled for the coming wave
}

// newDelivery assigns each message its partition. Messages that can never or not now be sent are settled.
func newDelivery(batch []relay.Message, topics map[string]*topic, c *Config) *delivery {
	d := &delivery{
		Batch:      keyorder.New(batch),
		records:    make([]kgo.Record, len(batch)),
		sizes:      make([]recordSize, len(batch)),
		partitions: make([]*partition, len(batch)),
	}
	type place struct {
		topic  *topic
		number int32
	}
	partitions := make(map[place]*partition)
	now := time.Now()
	for i, m := range batch {
		topic, record := topics[m.Topic], &d.records[i]
		if topic.err != nil {
			d.Settle(i, outcomeOf(topic.err, m.Topic))
			continue
		}
		fillRecord(record, m, now)
		d.sizes[i] = sizeOf(record)
		if err := c.checkSize(batchOverhead+d.sizes[i].at(0), topic); err != nil {
			d.Settle(i, relay.Permanent(err))
			continue
		}
		at := place{topic, topic.partitionOf(record)}
		if partitions[at] == nil {
			partitions[at] = &partition{topic: topic, number: at.number, name: fmt.Sprintf("%s/%d", topic.name, at.number)}
		}
		record.Partition = at.number
		d.partitions[i] = partitions[at]
	}
	return d
}

func fillRecord(r *kgo.Record, m relay.Message, now time.Time) {
	r.Topic = m.Topic
	r.Key = []byte(m.Key)
	r.Value = m.Payload
	if r.Value == nil {
		r.Value = []byte{} // nil would delete the key from a compacted topic
	}
	r.Timestamp = now
	r.Headers = make([]kgo.RecordHeader, len(m.Headers))
	for i, h := range m.Headers {
		r.Headers[i] = kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)}
	}
}

// checkSize refuses what can be told to be too large. What compression may still make small enough for the topic is
// left to the broker.
func (c *Config) checkSize(size int, t *topic) error {
	if size > c.MaxMessageBytes {
		return fmt.Errorf("kafka: message of %d bytes with its headers is over this sink's max_message_bytes of %d: raise it together with the brokers' limit, or send a reference instead of the data", size, c.MaxMessageBytes)
	}
	if limit := t.maxMessageBytes; limit > 0 && size > limit && c.Compression == CompressionNone {
		return fmt.Errorf("kafka: message of %d bytes with its headers is over max.message.bytes %d of topic %s: raise it, or send a reference instead of the data", size, limit, t.name)
	}
	return nil
}

// nextWave takes what can be sent now: for each partition at most one record batch, which the broker takes or
// refuses as a whole. Messages of one key are together only within one record batch, so that none of them can
// arrive before an earlier one was acknowledged.
func (d *delivery) nextWave() []*flight {
	var wave []*flight
	of := make([]*partition, d.Keys()) // where the key's messages of this wave go
	blocked := make([]bool, d.Keys())
	for _, i := range d.Pending() {
		key, p := d.Key(i), d.partitions[i]
		if blocked[key] {
			continue
		}
		if of[key] != nil && of[key] != p {
			blocked[key] = true
			continue
		}
		if p.next == nil {
			p.next = &flight{partition: p, limit: p.topic.batchLimit(), bytes: batchOverhead}
			wave = append(wave, p.next)
		}
		if !p.next.add(i, d) {
			blocked[key] = true
			continue
		}
		of[key] = p
	}
	for _, f := range wave {
		f.partition.next = nil
	}
	return wave
}

// settle records what became of a wave. It returns an error when sending the rest makes no sense.
func (d *delivery) settle(wave []*flight) (unavailable error) {
	for _, f := range wave {
		if refused := f.refused(); refused != nil && len(f.messages) > 1 {
			f.split(refused)
			continue
		}
		f.partition.most *= 2
		for n, i := range f.messages {
			outcome := f.outcome(n)
			if outcome.Class == relay.ClassUnavailable {
				unavailable = outcome.Err
			}
			d.Settle(i, outcome)
		}
	}
	return unavailable
}
