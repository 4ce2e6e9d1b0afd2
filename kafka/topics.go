package kafka

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicMaxAge is how long a topic's number of partitions and limit are trusted.
const topicMaxAge = time.Minute

// topic is what the sink knows of one topic.
type topic struct {
	name            string
	partitions      int
	maxMessageBytes int          // the topic's setting; 0 when we may not read it
	learned         atomic.Int64 // a batch size that the broker did not refuse yet; 0 when it refused none
	err             error        // set when the topic cannot be used; such a topic is not kept
	loaded          time.Time
	partitioner     kgo.TopicPartitioner
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
	client *kgo.Client

	mu    sync.Mutex
	known map[string]*topic
}

func newTopics(client *kgo.Client) *topics {
	return &topics{client: client, known: make(map[string]*topic)}
}

// lookup returns all named topics. When the cluster does not answer, topics known from earlier are used even if they
// are old; if one is not known at all, the error says why it cannot be learned.
func (t *topics) lookup(ctx context.Context, names map[string]bool) (map[string]*topic, error) {
	found, stale := t.remembered(names)
	if len(stale) == 0 {
		return found, nil
	}
	loaded, err := t.load(ctx, stale)
	if err != nil && len(found) < len(names) {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, topic := range loaded {
		known := t.known[name]
		switch {
		case topic.err == nil:
			t.known[name] = topic
			found[name] = topic
		case known == nil:
			found[name] = topic
		default:
			// Brokers that have just started may not know it yet. Sending tells for sure.
			delete(t.known, name)
		}
	}
	return found, nil
}

// remembered returns the topics that are known, and the names that must be asked for.
func (t *topics) remembered(names map[string]bool) (found map[string]*topic, stale []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found = make(map[string]*topic, len(names))
	for name := range names {
		known := t.known[name]
		if known != nil {
			found[name] = known
		}
		if known == nil || time.Since(known.loaded) > topicMaxAge {
			stale = append(stale, name)
		}
	}
	return found, stale
}

// forget makes the next lookup ask the cluster.
func (t *topics) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, name)
}

// load asks the cluster. The result has every name.
func (t *topics) load(ctx context.Context, names []string) (map[string]*topic, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		asked := kmsg.NewMetadataRequestTopic()
		asked.Topic = &name
		request.Topics = append(request.Topics, asked)
	}
	response, err := request.RequestWith(ctx, t.client)
	if err != nil {
		return nil, err
	}
	// Without the right to read them, the broker's own refusal tells the limit.
	configs, _ := kadm.NewClient(t.client).DescribeTopicConfigs(ctx, names...)
	loaded := make(map[string]*topic, len(names))
	for _, name := range names {
		loaded[name] = &topic{
			name:            name,
			maxMessageBytes: configNumber(configs, name, "max.message.bytes"),
			err:             kerr.UnknownTopicOrPartition,
			loaded:          time.Now(),
			partitioner:     kgo.StickyKeyPartitioner(nil).ForTopic(name),
		}
	}
	for _, r := range response.Topics {
		if r.Topic == nil || loaded[*r.Topic] == nil {
			continue
		}
		topic := loaded[*r.Topic]
		topic.partitions = len(r.Partitions)
		topic.err = kerr.ErrorForCode(r.ErrorCode)
		if topic.err == nil && topic.partitions == 0 {
			topic.err = kerr.LeaderNotAvailable
		}
	}
	return loaded, nil
}
