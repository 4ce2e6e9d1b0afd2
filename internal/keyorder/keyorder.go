// Package keyorder keeps the order of keys while a sink works through one batch.
//
// A sink asks what it may send now, sends it, and settles it. Once a message of a key was settled as anything but
// published, the key's later messages are never offered again and come back as skipped.
package keyorder

import "github.com/postrider/postrider/relay"

// Batch is the progress of one batch. It is not safe for concurrent use.
type Batch struct {
	outcomes []relay.Outcome
	keys     []int // key number of each message
	failed   []int // by key number: the first message known not to be published, or the length of the batch
	pending  []int // messages without an outcome, in batch order; may hold ones that are settled by now
	offered  []int // by key number: the last round that offered the key
	rounds   int
}

// New starts with all messages pending.
func New(messages []relay.Message) *Batch {
	b := &Batch{
		outcomes: make([]relay.Outcome, len(messages)),
		keys:     make([]int, len(messages)),
		pending:  make([]int, len(messages)),
	}
	numbers := make(map[string]int, len(messages))
	for i, m := range messages {
		number, known := numbers[m.Key]
		if !known {
			number = len(numbers)
			numbers[m.Key] = number
			b.failed = append(b.failed, len(messages))
		}
		b.keys[i] = number
		b.pending[i] = i
	}
	b.offered = make([]int, len(numbers))
	return b
}

// Keys returns how many keys the batch has.
func (b *Batch) Keys() int { return len(b.failed) }

// Key returns the number of the key of message i, from 0 to Keys()-1.
func (b *Batch) Key(i int) int { return b.keys[i] }

// Pending returns the messages that may still be sent, in batch order. The slice is valid until the next call of a
// method.
func (b *Batch) Pending() []int {
	rest := b.pending[:0]
	for _, i := range b.pending {
		if b.outcomes[i].Class == 0 && i < b.failed[b.keys[i]] {
			rest = append(rest, i)
		}
	}
	b.pending = rest
	return rest
}

// Round returns the first pending message of each key. Messages of one round do not depend on each other. It is
// empty when nothing is pending.
func (b *Batch) Round() []int {
	b.rounds++
	var round []int
	for _, i := range b.Pending() {
		if key := b.keys[i]; b.offered[key] != b.rounds {
			b.offered[key] = b.rounds
			round = append(round, i)
		}
	}
	return round
}

// Settle records what became of message i. A message that can never be sent may be settled before the earlier ones of
// its key are sent; they stay pending.
func (b *Batch) Settle(i int, o relay.Outcome) {
	b.outcomes[i] = o
	if key := b.keys[i]; o.Class != relay.ClassPublished {
		b.failed[key] = min(b.failed[key], i)
	}
}

// SettleRest gives every pending message the outcome o.
func (b *Batch) SettleRest(o relay.Outcome) {
	for _, i := range b.Pending() {
		b.Settle(i, o)
	}
}

// Outcomes returns the outcomes in the order of the batch, once nothing is pending.
func (b *Batch) Outcomes() []relay.Outcome {
	for i := range b.outcomes {
		if i > b.failed[b.keys[i]] && b.outcomes[i].Class != relay.ClassPublished {
			b.outcomes[i] = relay.Skipped()
		}
	}
	return b.outcomes
}
