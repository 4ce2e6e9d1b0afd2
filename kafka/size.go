package kafka

import (
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kgo"
)

// batchOverhead is what a record batch (format 2) adds to its records. Brokers compare the sum with
// max.message.bytes.
const batchOverhead = 61

// largestBatch bounds record batches of several messages. A larger one would save nothing.
const largestBatch = 1 << 20

// recordSize is the size of a record in a batch, before compression and less what depends on its place in it.
type recordSize int

// sizeOf measures a record. All records of a batch carry one timestamp, so that their difference takes one byte.
func sizeOf(r *kgo.Record) recordSize {
	n := 1 + 1 + // attributes, timestamp difference
		kbin.VarintLen(int32(len(r.Key))) + len(r.Key) +
		kbin.VarintLen(int32(len(r.Value))) + len(r.Value) +
		kbin.VarintLen(int32(len(r.Headers)))
	for _, h := range r.Headers {
		n += kbin.VarintLen(int32(len(h.Key))) + len(h.Key) +
			kbin.VarintLen(int32(len(h.Value))) + len(h.Value)
	}
	return recordSize(n)
}

// at returns the size with the length prefix, as the record with that number (from 0) in its batch.
func (s recordSize) at(place int) int {
	n := int(s) + kbin.VarintLen(int32(place))
	return kbin.VarintLen(int32(n)) + n
}
