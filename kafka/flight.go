package kafka

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/relay"
)

// flight is one record batch on its way to its partition.
//
// It is the context of its records. The client gives records up when their context ends, which is right as long
// as the broker cannot have them. Once a request that may have carried them was written, they may be at the broker,
// even if it answered with a refusal that may pass: a broker that shuts down refuses what it has just stored. Only
// repeating them under the same sequence number can tell, so from then on the context never ends.
type flight struct {
	context.Context // set when the flight is sent

	partition *partition
	limit     int   // in bytes, for all but the first message
	bytes     int   // size of the record batch before compression
	messages  []int // numbers in the delivery
	records   []*kgo.Record
	errs      []error // by message

	leader atomic.Int32 // the broker that led the partition when the flight began
	sent   atomic.Bool  // a request that may have carried it was written
}

// Done is nil, which never ends, for a flight whose whereabouts are unknown.
func (f *flight) Done() <-chan struct{} {
	if f.sent.Load() {
		return nil
	}
	return f.Context.Done()
}

func (f *flight) Err() error {
	if f.sent.Load() {
		return nil
	}
	return f.Context.Err()
}

// launch prepares the flight for being sent.
func (f *flight) launch(ctx context.Context, leader int32) {
	f.Context = ctx
	f.errs = make([]error, len(f.records))
	for _, r := range f.records {
		r.Context = f //nolint:fatcontext // each record has its own; a record that was refused with others before has another one
	}
	f.leader.Store(leader)
}

// mayHaveGoneTo tells whether a request to that broker may have carried the flight. A partition that still has the
// leader it had can only have been sent there; for one that has moved, no broker can be ruled out.
func (f *flight) mayHaveGoneTo(broker, leader int32) bool {
	return f.leader.Load() == broker || f.leader.Load() != leader
}

// add takes message i of the delivery if there is room.
func (f *flight) add(i int, d *delivery) bool {
	size := d.sizes[i].at(len(f.messages))
	full := f.bytes+size > f.limit || f.partition.most > 0 && len(f.messages) >= f.partition.most
	if full && len(f.messages) > 0 {
		return false
	}
	f.bytes += size
	f.messages = append(f.messages, i)
	f.records = append(f.records, &d.records[i])
	return true
}

// err returns the first error, nil when all records were acknowledged.
func (f *flight) err() error {
	for _, err := range f.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// refused returns why the broker refused the whole batch, nil if it did not.
func (f *flight) refused() error {
	for _, err := range f.errs {
		if !isRefusal(err) {
			return nil
		}
	}
	return f.err()
}

// split makes the partition's next batches smaller, so that in the end only the guilty message is refused.
func (f *flight) split(refused error) {
	f.partition.most = len(f.messages) / 2
	if isTooLarge(refused) {
		f.partition.topic.learn(f.bytes)
	}
}

// outcome tells what became of the n-th message.
func (f *flight) outcome(n int) relay.Outcome {
	if err := f.errs[n]; err != nil {
		return outcomeOf(err, f.partition.name)
	}
	coordinates := "kafka:" + f.partition.name
	if offset := f.records[n].Offset; offset >= 0 { // a broker that recognized a repetition may not know it any more
		coordinates += "@" + strconv.FormatInt(offset, 10)
	}
	return relay.Published(coordinates)
}
