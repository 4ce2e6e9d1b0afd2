package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/inbox"
)

// Filter is an inbox.Filter that the processes of a consumer share: a key in Redis for each message that was applied lately. What
// Redis loses or evicts costs time and harms nothing. While it does not answer, every message goes the usual way; it is asked again
// after a second.
type Filter struct {
	client redis.UniversalClient
	keep   time.Duration
	silent atomic.Int64 // until when it is not asked, in Unix nanoseconds
}

var _ inbox.Filter = (*Filter)(nil)

const (
	filterPrefix   = "postrider:inbox:"
	filterPatience = 100 * time.Millisecond // for an answer: the receipts would answer as well
	filterPause    = time.Second            // after none came
)

// OpenFilter checks the configuration, of which it needs how to reach the server; it connects with the first question. A key lives
// for keep, which must be a millisecond or more. The caller closes what it returns.
func OpenFilter(c Config, keep time.Duration) (*Filter, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if keep < time.Millisecond {
		return nil, fmt.Errorf("redis: a filter that keeps keys for %v: it must be a millisecond or more", keep)
	}
	return &Filter{client: c.client(), keep: keep}, nil
}

// Likely implements inbox.Filter.
func (f *Filter) Likely(ctx context.Context, consumer string, keys []string) []bool {
	answers := f.ask(ctx, keys, func(p redis.Pipeliner, key string) { p.Exists(ctx, filterKey(consumer, key)) })
	if answers == nil {
		return nil
	}
	likely := make([]bool, len(answers))
	for i, answer := range answers {
		likely[i] = answer.(*redis.IntCmd).Val() == 1
	}
	return likely
}

// Applied implements inbox.Filter.
func (f *Filter) Applied(ctx context.Context, consumer string, keys []string) {
	f.ask(ctx, keys, func(p redis.Pipeliner, key string) { p.Set(ctx, filterKey(consumer, key), "", f.keep) })
}

// ask sends a command for each key; nil means that there is no answer.
func (f *Filter) ask(ctx context.Context, keys []string, command func(redis.Pipeliner, string)) []redis.Cmder {
	if time.Now().UnixNano() < f.silent.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, filterPatience)
	defer cancel()
	answers, err := f.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			command(p, key)
		}
		return nil
	})
	if err != nil {
		if !errors.Is(err, context.Canceled) { // then the caller has given up
			f.silent.Store(time.Now().Add(filterPause).UnixNano())
		}
		return nil
	}
	return answers
}

// filterKey has the same length whatever the key is.
func filterKey(consumer, key string) string {
	sum := sha256.Sum256([]byte(consumer + "\x00" + key))
	return filterPrefix + hex.EncodeToString(sum[:16])
}

// Close ends the connections.
func (f *Filter) Close() error { return f.client.Close() }
