package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/operator"
)

// DeadLetters is a dead-letter topic. It implements dlt.Topic. Letters are read without a group. Kafka cannot delete one of them, so a
// mark in its partition says that it was redriven (see dlt.HeaderRedriven), which lives as long as what is behind the letter. A scan reads
// the topic twice, first for the marks, of which it keeps the offsets in memory. It fails when nothing comes for ten seconds. The login
// needs to read, describe and write to the topic.
type DeadLetters struct {
	options []kgo.Opt
	client  *kgo.Client // for questions and marks
	topic   string
}

var _ dlt.Topic = (*DeadLetters)(nil)

// OpenDeadLetters checks the configuration, of which it needs how to reach the brokers; Scan connects. The caller closes what it returns.
func OpenDeadLetters(c Config, topic string) (*DeadLetters, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	d := &DeadLetters{options: c.clientOptions(), topic: topic}
	d.client, err = kgo.NewClient(append(c.clientOptions(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProduceRequestTimeout(answerTimeout),
		kgo.RecordDeliveryTimeout(answerTimeout+answerOverhead),
	)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return d, nil
}

// Scan implements dlt.Topic.
func (d *DeadLetters) Scan(ctx context.Context, visit func(dlt.Letter) error) error {
	if err := d.scan(ctx, visit); err != nil {
		return fmt.Errorf("kafka: topic %s: %w", d.topic, err)
	}
	return nil
}

func (d *DeadLetters) scan(ctx context.Context, visit func(dlt.Letter) error) error {
	ends, err := d.ends(ctx)
	if err != nil {
		return err
	}
	marked := make(map[string]bool)
	err = d.read(ctx, ends, func(r *kgo.Record) error {
		if letter := markOf(r); letter != "" {
			marked[letter] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.read(ctx, ends, func(r *kgo.Record) error {
		if marked[placeOf(r)] || markOf(r) != "" {
			return nil
		}
		return visit(dlt.Letter{Message: messageOf(r), Ref: r})
	})
}

// placeOf is how a mark names a letter.
func placeOf(r *kgo.Record) string { return fmt.Sprintf("%d@%d", r.Partition, r.Offset) }

// markKey is the prefix of a mark's key. A compacted topic keeps the mark by it, whatever the keys of letters are.
const markKey = "redriven:"

// markOf returns the place of the letter that a record marks, empty for a record that is no mark. A header alone makes none: whoever
// sends a message decides on its headers, and a consumer that fails to apply a mark makes a letter of it, which says where it was read.
func markOf(r *kgo.Record) string {
	place, marks := strings.CutPrefix(string(r.Key), markKey)
	if !marks || len(r.Value) > 0 || headerOf(r, dlt.HeaderRedriven) != place || headerOf(r, consumer.HeaderOriginTopic) != "" {
		return ""
	}
	return place
}

// headerOf returns the value of the first header with the name, without regard to case, or "".
func headerOf(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if strings.EqualFold(h.Key, name) {
			return string(h.Value)
		}
	}
	return ""
}

// ends returns the offsets behind the last record of the partitions that have any, by partition.
func (d *DeadLetters) ends(ctx context.Context) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	admin := kadm.NewClient(d.client)
	starts, err := admin.ListStartOffsets(ctx, d.topic)
	if err != nil {
		return nil, err
	}
	offsets, err := admin.ListCommittedOffsets(ctx, d.topic)
	if err != nil {
		return nil, err
	}
	ends := make(map[int32]int64)
	for _, end := range offsets[d.topic] {
		start, _ := starts.Lookup(d.topic, end.Partition)
		switch {
		case end.Err != nil:
			return nil, end.Err
		case start.Err != nil:
			return nil, start.Err
		case start.Offset < end.Offset:
			ends[end.Partition] = end.Offset
		}
	}
	return ends, nil
}

// read reads the partitions from the start up to these ends. Records that are control records of transactions are counted, for they may be the
// last ones, and not visited.
func (d *DeadLetters) read(ctx context.Context, ends map[int32]int64, visit func(*kgo.Record) error) error {
	open, from := make(map[int32]int64, len(ends)), make(map[int32]kgo.Offset, len(ends))
	for partition, end := range ends {
		open[partition], from[partition] = end, kgo.NewOffset().AtStart()
	}
	if len(open) == 0 {
		return nil
	}
	client, err := kgo.NewClient(append(d.options,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{d.topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
	)...)
	if err != nil {
		return err
	}
	defer client.Close()
	for len(open) > 0 {
		fetches, err := poll(ctx, client)
		if err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			end, reading := open[r.Partition]
			if !reading || r.Offset >= end { // the last record before the end may be one that nobody gets
				delete(open, r.Partition)
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if !r.Attrs.IsControl() {
				if err := visit(r); err != nil {
					return err
				}
			}
			if r.Offset == end-1 {
				delete(open, r.Partition)
			}
		}
	}
	return nil
}

// letterPage is how many records are taken from the client at a time.
const letterPage = 500

// poll waits for records, which there are. They do not come when retention deletes the rest meanwhile, and when a transaction is open
// whose neighbours before it were given up: nobody gets those, and nobody gets to see that there is nothing else.
func poll(ctx context.Context, client *kgo.Client) (kgo.Fetches, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fetches := client.PollRecords(waiting, letterPage)
	err := fetches.Err() // that of waiting, too
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("no more records came within %s: the brokers are away, or a transaction is open, or what was there was deleted; "+
			"try again", patience)
	}
	return fetches, err
}

// Settle implements dlt.Topic. The marks tell who did it and why.
func (d *DeadLetters) Settle(ctx context.Context, letters []dlt.Letter, by operator.Action) error {
	marks := make([]*kgo.Record, len(letters))
	at := time.Now().UTC().Format(time.RFC3339)
	for i, l := range letters {
		r := l.Ref.(*kgo.Record)
		header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
		marks[i] = &kgo.Record{
			Topic: d.topic, Partition: r.Partition, Key: []byte(markKey + placeOf(r)), Value: []byte{}, // no tombstone
			Headers: []kgo.RecordHeader{
				header(dlt.HeaderRedriven, placeOf(r)), header(dlt.HeaderRedrivenBy, by.Who),
				header(dlt.HeaderRedrivenAt, at), header(dlt.HeaderRedrivenReason, by.Reason),
			},
		}
	}
	if err := d.client.ProduceSync(ctx, marks...).FirstErr(); err != nil {
		return fmt.Errorf("kafka: mark letters of topic %s as redriven: %w", d.topic, err)
	}
	return nil
}

// Close implements dlt.Topic.
func (d *DeadLetters) Close() error {
	d.client.Close()
	return nil
}
