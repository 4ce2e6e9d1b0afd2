package kafka

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// SourceConfig says what a Source reads. Brokers, Group and Topics must be set.
type SourceConfig struct {
	Brokers  []string    // as for a sink
	TLS      *tls.Config // as for a sink
	SASL     SASL        // as for a sink
	ClientID string      // as for a sink

	Group  string   // the consumer group: its members share the partitions, and its committed offsets are the position
	Topics []string // retry topics among them

	// InstanceID is the name of a static member, which no other member of the group may have. A process that was killed and
	// comes back under its name gets its partitions at once, instead of after SessionTimeout; one that leaves in order keeps
	// them for that long as well. Empty, the member is dynamic.
	InstanceID string

	// SessionTimeout is how long a member that has died keeps its partitions. The brokers bound it (6s to 30min). Default 45s.
	SessionTimeout time.Duration

	// RebalanceTimeout is how long members may take to give partitions up: two thirds of it are for what is in hand. Default 60s.
	RebalanceTimeout time.Duration

	// CommitInterval is how often offsets are committed, besides at a rebalance, by Flush and by Close. A process that dies
	// gets again what it finished since. Default 500ms.
	CommitInterval time.Duration
}

const (
	defaultSessionTimeout   = 45 * time.Second
	defaultRebalanceTimeout = time.Minute
	defaultCommitInterval   = 500 * time.Millisecond
)

func (c SourceConfig) withDefaults() (SourceConfig, error) {
	shared, err := Config{Brokers: c.Brokers, TLS: c.TLS, SASL: c.SASL, ClientID: c.ClientID}.withDefaults()
	problems := []error{err}
	c.Brokers, c.ClientID = shared.Brokers, shared.ClientID
	if c.Group == "" {
		problems = append(problems, errors.New("Group is missing"))
	}
	if len(c.Topics) == 0 {
		problems = append(problems, errors.New("Topics is missing"))
	}
	for i, topic := range c.Topics {
		if topic == "" {
			problems = append(problems, fmt.Errorf("Topics[%d] is empty", i))
		}
	}
	c.SessionTimeout = cmp.Or(c.SessionTimeout, defaultSessionTimeout)
	c.RebalanceTimeout = cmp.Or(c.RebalanceTimeout, defaultRebalanceTimeout)
	c.CommitInterval = cmp.Or(c.CommitInterval, defaultCommitInterval)
	for name, d := range map[string]time.Duration{
		"SessionTimeout": c.SessionTimeout, "RebalanceTimeout": c.RebalanceTimeout, "CommitInterval": c.CommitInterval,
	} {
		if d < time.Millisecond {
			problems = append(problems, fmt.Errorf("%s is %v: it must be at least 1ms", name, d))
		}
	}
	return c, errors.Join(problems...)
}

// options are those of the client, but for its callbacks.
func (c SourceConfig) options() []kgo.Opt {
	opts := append(Config{Brokers: c.Brokers, TLS: c.TLS, SASL: c.SASL, ClientID: c.ClientID}.clientOptions(),
		kgo.ConsumerGroup(c.Group),
		kgo.ConsumeTopics(c.Topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), // a message that nobody has taken yet is not passed over
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.SessionTimeout),
		kgo.HeartbeatInterval(c.SessionTimeout/10),
		kgo.RebalanceTimeout(c.RebalanceTimeout),
		kgo.DisableAutoCommit(),
	)
	if c.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(c.InstanceID))
	}
	return opts
}
