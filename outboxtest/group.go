package outboxtest

import "slices"

// group is a consumer group: its members share the lanes of their topics.
type group struct {
	members  []*source // in the order in which they came
	lanes    []*lane   // ordered by topic and partition
	loseAcks int
}

// lane is a partition as a group sees it.
type lane struct {
	topic     string
	partition int
	name      string

	owner, heir *source
	revoking    bool
	revoked     chan struct{}
	term        int // counts owners
	paused      bool

	position   int     // everything before it is acknowledged
	states     []state // by offset; what is behind its end is waiting
	low        int     // nothing before it is waiting
	out        int     // how many are fetched and neither finished nor returned
	deliveries []int   // by offset
}

type state uint8

const (
	waiting state = iota
	fetched
	finished
	forgotten // finished, but the acknowledgement was lost
)

// group returns the group with the name, which exists as soon as it is named.
func (b *Broker) group(name string) *group {
	g := b.groups[name]
	if g == nil {
		g = &group{}
		b.groups[name] = g
	}
	return g
}

// subscribe adds the lanes of a topic, unless they are there.
func (g *group) subscribe(name string, t *topic) {
	if slices.ContainsFunc(g.lanes, func(l *lane) bool { return l.topic == name }) {
		return
	}
	for p := range t.partitions {
		g.lanes = append(g.lanes, &lane{topic: name, partition: p, name: laneName(name, p)})
	}
}

// rebalance gives each lane to one of the members that want its topic. A lane that has deliveries in hand goes over when
// they have come back.
func (g *group) rebalance() {
	for _, l := range g.lanes {
		var subscribed []*source
		for _, m := range g.members {
			if slices.Contains(m.topics, l.topic) {
				subscribed = append(subscribed, m)
			}
		}
		l.heir = nil
		if len(subscribed) > 0 {
			l.heir = subscribed[l.partition%len(subscribed)]
		}
		if l.heir != l.owner && !l.revoking {
			l.revoke()
		}
		l.handOver()
	}
}

func (l *lane) revoke() {
	l.revoking = true
	if l.revoked != nil {
		close(l.revoked)
	}
}

// handOver completes a revocation. The new owner gets everything that is not acknowledged.
func (l *lane) handOver() {
	if !l.revoking || l.out > 0 {
		return
	}
	l.revoking = false
	l.owner, l.revoked, l.paused = l.heir, make(chan struct{}), false
	l.term++
	for i := l.position; i < len(l.states); i++ {
		l.states[i] = waiting
	}
	l.low = l.position
}

// abandon is what remains when the owner has gone: what it had in hand is delivered again.
func (l *lane) abandon() {
	l.out = 0
	if !l.revoking {
		l.revoke()
	}
}

// next returns the offset of the next message to be fetched.
func (l *lane) next(length int) (offset int, ok bool) {
	for l.low < len(l.states) && l.states[l.low] != waiting {
		l.low++
	}
	return l.low, l.low < length
}

func (l *lane) fetch(offset int) (deliveries int) {
	if offset == len(l.states) {
		l.states = append(l.states, waiting)
	}
	if offset == len(l.deliveries) {
		l.deliveries = append(l.deliveries, 0)
	}
	l.states[offset] = fetched
	l.out++
	l.deliveries[offset]++
	return l.deliveries[offset]
}

// settle ends the loan of a message.
func (l *lane) settle(offset int, s state) {
	if l.states[offset] != fetched {
		return
	}
	l.states[offset] = s
	l.out--
	if s == waiting {
		l.low = min(l.low, offset)
	}
	for l.position < len(l.states) && l.states[l.position] == finished {
		l.position++
	}
	l.handOver()
}

func (l *lane) rewind() {
	for i, s := range l.states {
		if s != fetched {
			l.states[i] = waiting
		}
	}
	l.position, l.low = 0, 0
}
