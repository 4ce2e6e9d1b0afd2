package rabbitmq

import "slices"

// ledger keeps which deliveries of a channel are not settled, and what the server was not yet told.
type ledger struct {
	open     map[uint64]bool // delivered, and neither finished nor returned, by tag
	finished []uint64        // to be acknowledged
	returned []uint64        // to be queued again
}

// orders is what to tell the server, in this order.
type orders struct {
	requeue []uint64 // one by one, so that they come again in their order
	through uint64   // acknowledge it and everything before it that is not settled; 0 for none
	ack     []uint64 // one by one
}

func newLedger() ledger { return ledger{open: make(map[uint64]bool)} }

// add notes a delivery. Tags ascend.
func (l *ledger) add(tag uint64) { l.open[tag] = true }

// finish notes that a delivery is finished, unless it is settled.
func (l *ledger) finish(tag uint64) {
	if l.open[tag] {
		delete(l.open, tag)
		l.finished = append(l.finished, tag)
	}
}

// giveBack notes that a delivery is returned, unless it is settled.
func (l *ledger) giveBack(tag uint64) {
	if l.open[tag] {
		delete(l.open, tag)
		l.returned = append(l.returned, tag)
	}
}

// take returns what the server is to be told, which then counts as told. Several are acknowledged at once only below
// everything that is open: the server would take the open ones for acknowledged as well.
func (l *ledger) take() orders {
	o := orders{requeue: l.returned, ack: l.finished}
	l.returned, l.finished = nil, nil
	slices.Sort(o.requeue)
	slices.Sort(o.ack)
	if n := l.below(o.ack); n > 1 {
		o.through, o.ack = o.ack[n-1], o.ack[n:]
	}
	return o
}

// below counts the tags, which are sorted, that are below everything open.
func (l *ledger) below(tags []uint64) int {
	if len(tags) < 2 {
		return len(tags) // nothing to gain
	}
	n := len(tags)
	for tag := range l.open {
		at, _ := slices.BinarySearch(tags[:n], tag)
		n = at
	}
	return n
}
