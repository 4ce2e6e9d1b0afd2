package redis

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/relay"
)

const (
	smallestFieldLimit = 1 << 20 // no server can be told to take less
	limitAge           = time.Minute
)

// limits knows the largest field that each server takes. Its zero value knows none yet.
type limits struct {
	mu    sync.Mutex
	known map[*redis.Client]limit
}

type limit struct {
	bytes int
	until time.Time
}

// checkSize says why a message is too large. A server ends the connection when it meets such a field, and everything that
// stands behind it is lost; so its limit has to be known before.
func (s *Sink) checkSize(ctx context.Context, m relay.Message) error {
	total, largest := size(m)
	if total > s.config.MaxMessageBytes {
		return fmt.Errorf("stream %s: message of %d bytes with its headers is over the %d of max_message_bytes", m.Topic, total, s.config.MaxMessageBytes)
	}
	if largest <= smallestFieldLimit {
		return nil
	}
	node, err := s.node(ctx, m.Topic)
	if err != nil {
		return nil //nolint:nilerr // sending it meets the same error
	}
	if limit := s.limits.of(ctx, node); largest > limit {
		return fmt.Errorf("stream %s: a payload or header of %d bytes is over the server's proto-max-bulk-len of %d", m.Topic, largest, limit)
	}
	return nil
}

// of asks a server now and then. One that does not tell is taken to have no limit below that of the configuration.
func (l *limits) of(ctx context.Context, node *redis.Client) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.known[node]; time.Now().Before(known.until) {
		return known.bytes
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	setting, err := node.ConfigGet(ctx, "proto-max-bulk-len").Result()
	if err != nil && !isAnswer(err) {
		return largestMaxMessageBytes
	}
	bytes, err := strconv.Atoi(setting["proto-max-bulk-len"])
	if err != nil {
		bytes = largestMaxMessageBytes
	}
	if l.known == nil {
		l.known = make(map[*redis.Client]limit)
	}
	l.known[node] = limit{bytes, time.Now().Add(limitAge)}
	return bytes
}
