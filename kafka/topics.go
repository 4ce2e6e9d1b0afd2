package kafka

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topicMaxAge is how long a topic's number of partitions and limit are trusted.
const topicMaxAge = time.Minute

// topic is what the sink knows of one topic.
type topic struct {
	name       string
	partitions int
	loaded     time.Time
	err        error // set when the topic cannot be used; such a topic is not kept

	maxMessageBytes int          // the topic's setting; 0 when we may not read it
	learned         atomic.Int64 // a batch size that the broker did not refuse yet; 0 when it refused none

	partitioner kgo.TopicPartitioner
}

// partitionOf chooses the partition as other Kafka clients do for the same key.
func (t *topic) partitionOf(r *kgo.Record) int32 {
	return int32(t.partitioner.Partition(r, t.partitions))
}

// batchLimit is the largest record batch that should hold several messages.
func (t *topic) batchLimit() int {
	limit := largestBatch
	if t.maxMessageBytes > 0 {
		limit = min(limit, t.maxMessageBytes)
	}
	if learned := int(t.learned.Load()); learned > 0 {
		limit = min(limit, learned)
	}
	return limit
}

// learn remembers that a batch of this size was too large.
func (t *topic) learn(refused int) { t.learned.Store(int64(refused / 2)) }

// topics looks up topics and remembers them for a while.
type topics struct {
	admin *kadm.Client

	mu    sync.Mutex
	known map[string]*topic
}

func newTopics(client *kgo.Client) *topics {
	return &topics{admin: kadm.NewClient(client), known: make(map[string]*topic)}
}

// lookup returns all named topics. When the cluster does not answer, topics known from earlier are used even if
// they are old; if one is not known at all, the error says why it cannot be learned.
func (t *topics) lookup(ctx context.Context, names map[string]bool) (map[string]*topic, error) {
	found := make(map[string]*topic, len(names))
	var wanted []string
	complete := true
	t.mu.Lock()
	for name := range names {
		known := t.known[name]
		if known != nil {
			found[name] = known
		} else {
			complete = false
		}
		if known == nil || time.Since(known.loaded) > topicMaxAge {
			wanted = append(wanted, name)
		}
	}
	t.mu.Unlock()
	if len(wanted) == 0 {
		return found, nil
	}
	loaded, err := t.load(ctx, wanted)
	if err != nil {
		if complete {
			return found, nil
		}
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range loaded {
		found[topic.name] = topic
		if topic.err == nil {
			t.known[topic.name] = topic
		} else {
			delete(t.known, topic.name)
		}
	}
	return found, nil
}

// forget makes the next lookup ask the cluster.
func (t *topics) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, name)
}

func (t *topics) load(ctx context.Context, names []string) ([]*topic, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	details, err := t.admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, err
	}
	// Without the right to read it, the broker's own refusal tells the limit.
	configs, _ := t.admin.DescribeTopicConfigs(ctx, names...)
	loaded := make([]*topic, 0, len(names))
	for _, name := range names {
		topic := &topic{
			name:        name,
			partitions:  len(details[name].Partitions),
			err:         details[name].Err,
			loaded:      time.Now(),
			partitioner: kgo.StickyKeyPartitioner(nil).ForTopic(name),

			maxMessageBytes: configNumber(configs, name, "max.message.bytes"),
		}
		loaded = append(loaded, topic)
	}
	return loaded, nil
}
