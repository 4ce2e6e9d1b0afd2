package kafka

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Retention is how long the topics keep events, the longest of them; 0 when one has no bound in time. A topic that is bounded
// by its size may keep them for less. It returns within about ten seconds when nothing answers.
func (s *Sink) Retention(ctx context.Context, topics []string) (longest time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	configs, err := kadm.NewClient(s.client).DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return 0, fmt.Errorf("kafka: settings of topics %q: %w", topics, err)
	}
	for _, topic := range topics {
		milliseconds, err := strconv.ParseInt(config(configs, topic, "retention.ms"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("kafka: topic %s does not tell its retention.ms: %w", topic, err)
		}
		if milliseconds < 0 {
			return 0, nil
		}
		longest = max(longest, time.Duration(milliseconds)*time.Millisecond)
	}
	return longest, nil
}
