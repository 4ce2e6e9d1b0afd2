package outboxtest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
)

// DefaultPartitions is how many partitions a topic has unless BrokerConfig says otherwise.
const DefaultPartitions = 3

// BrokerConfig says how a Broker is. The zero value is one where every topic exists.
type BrokerConfig struct {
	// Topics is how many partitions each topic has; no other topic exists then. Nil makes a topic of
	// DefaultPartitions partitions as soon as it is named.
	Topics map[string]int

	// MaxMessage is how large key, headers and payload of a message may be together, in bytes. 0 sets no bound.
	MaxMessage int
}

// Broker is a broker in memory: topics with partitions, consumer groups with positions. It is a stand-in for the logic of an
// application, and PROVES NOTHING ABOUT A SERVER; see the package documentation. What it does by itself is the best that a
// broker can do; everything worse is asked for by its methods.
//
// It starts no goroutine, and waits for no time: what it does happens in the calls of its methods, and in a bubble of
// testing/synctest it must be made inside. It is safe for concurrent use, and keeps every message until it is garbage.
type Broker struct {
	cfg BrokerConfig

	mu      sync.Mutex
	topics  map[string]*topic
	groups  map[string]*group
	changed chan struct{} // closed, and made anew, with every change

	broken   error
	fail     []relay.Outcome
	confirms int // that are still to be lost
}

type topic struct {
	partitions [][]inbox.Message
	all        []inbox.Message // in the order in which they were stored
}

// NewBroker returns an empty broker. It panics when a topic has no partition.
func NewBroker(cfg BrokerConfig) *Broker {
	b := &Broker{cfg: cfg, topics: make(map[string]*topic), groups: make(map[string]*group), changed: make(chan struct{})}
	for _, name := range slices.Sorted(maps.Keys(cfg.Topics)) {
		if cfg.Topics[name] < 1 {
			panic(fmt.Sprintf("outboxtest.BrokerConfig: topic %q has %d partitions, must be above 0", name, cfg.Topics[name]))
		}
		b.topics[name] = &topic{partitions: make([][]inbox.Message, cfg.Topics[name])}
	}
	return b
}

// Messages returns what was ever stored in a topic, in that order.
func (b *Broker) Messages(name string) []inbox.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.topics[name]; t != nil {
		return slices.Clone(t.all)
	}
	return nil
}

// FailNext lets the next messages that are published come back with these outcomes, one each, without being stored. It panics
// for an outcome that says published, or skipped.
func (b *Broker) FailNext(outcomes ...relay.Outcome) {
	for _, o := range outcomes {
		if o.Class != relay.ClassRetry && o.Class != relay.ClassPermanent && o.Class != relay.ClassUnavailable {
			panic(fmt.Sprintf("outboxtest.Broker.FailNext: the outcome %s is no failure of a message", o.Class))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = append(b.fail, outcomes...)
}

// LoseConfirms lets the next n messages be stored, and their publisher be told that the broker is unavailable: whoever is
// right sends them again, and consumers get them twice.
func (b *Broker) LoseConfirms(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.confirms += n
}

// LoseAcks lets the next n messages that the group finishes be forgotten: they, and what was finished behind them in their
// partitions, are delivered again once the partition goes to another member, or to the same one again.
func (b *Broker) LoseAcks(groupName string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.group(groupName).loseAcks += n
}

// Rewind lets everything in a topic be delivered to the group again, from the start, as somebody does who resets its
// positions. What is in the hands of its members stays there.
func (b *Broker) Rewind(groupName, topicName string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.group(groupName).lanes {
		if l.topic == topicName {
			l.rewind()
		}
	}
	b.wake()
}

// Break makes the broker unreachable, with err as the reason, until Mend: publishing is unavailable, and fetching fails.
func (b *Broker) Break(err error) {
	if err == nil {
		err = errors.New("the broker is broken")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = err
	b.wake()
}

// Mend ends what Break began.
func (b *Broker) Mend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = nil
	b.wake()
}

// wake tells everybody who waits that something has changed.
func (b *Broker) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// topic returns nil when there is no such topic.
func (b *Broker) topic(name string) *topic {
	t := b.topics[name]
	if t == nil && b.cfg.Topics == nil {
		t = &topic{partitions: make([][]inbox.Message, DefaultPartitions)}
		b.topics[name] = t
	}
	return t
}

func (b *Broker) store(t *topic, m relay.Message) string {
	p := b.partition(t, m.Key)
	offset := len(t.partitions[p])
	stored := inbox.Message{
		Topic:       m.Topic,
		Partition:   strconv.Itoa(p),
		Offset:      strconv.Itoa(offset),
		Coordinates: fmt.Sprintf("memory:%s@%d", laneName(m.Topic, p), offset),
		Key:         m.Key,
		Payload:     slices.Clone(m.Payload),
		At:          time.Now(),
	}
	for _, h := range m.Headers {
		stored.Headers = append(stored.Headers, inbox.Header(h))
	}
	t.partitions[p] = append(t.partitions[p], stored)
	t.all = append(t.all, stored)
	b.wake()
	return stored.Coordinates
}

// partition spreads messages without a key.
func (b *Broker) partition(t *topic, key string) int {
	if key == "" {
		return len(t.all) % len(t.partitions)
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(len(t.partitions)))
}

func laneName(topicName string, partition int) string {
	return topicName + "/" + strconv.Itoa(partition)
}
