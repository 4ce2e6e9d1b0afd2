package kafka

import (
	"testing"
	"time"
)

func TestRetentionIsTheLongest(t *testing.T) {
	sink := openSink(t, Config{Brokers: brokers(t)})
	hour, day, ever := newTopic(t, 1, "retention.ms", "3600000"), newTopic(t, 1, "retention.ms", "86400000"), newTopic(t, 1, "retention.ms", "-1")
	for _, c := range []struct {
		topics []string
		want   time.Duration
	}{{[]string{hour}, time.Hour}, {[]string{day, hour}, 24 * time.Hour}, {[]string{hour, ever, day}, 0}} {
		if got, err := sink.Retention(testContext(t), c.topics); got != c.want || err != nil {
			t.Errorf("%v: %v, %v; want %v", c.topics, got, err, c.want)
		}
	}
	if got, err := sink.Retention(testContext(t), []string{hour + "-missing"}); err == nil {
		t.Errorf("%v for a topic that is missing", got)
	}
}
