package redis

import (
	"context"
	_ "embed"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/relay"
)

const (
	trimEvery = 2 * time.Second
	trimLimit = 200_000 // entries in one go, which takes a server some milliseconds
)

//go:embed trim.lua
var trimSource string

var trimScript = redis.NewScript(trimSource)

// trimmer knows when each stream is due. Its zero value knows no stream.
type trimmer struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// due tells whether to trim a stream now.
func (t *trimmer) due(stream string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.last[stream]) < trimEvery {
		return false
	}
	if t.last == nil {
		t.last = make(map[string]time.Time)
	}
	t.last[stream] = time.Now()
	return true
}

// trim trims the streams of what was accepted, where it is due. Failures concern no message and are only logged.
func (s *Sink) trim(ctx context.Context, batch []relay.Message, accepted []int) {
	if s.config.Trim == TrimNone {
		return
	}
	for _, i := range accepted {
		stream := batch[i].Topic
		if ctx.Err() != nil || !s.trimmer.due(stream) {
			continue
		}
		if err := s.trimStream(ctx, stream, s.config.MaxEntries); err != nil {
			s.config.Logger.Warn("stream not trimmed", slog.String("stream", stream), slog.Any("error", err))
		}
	}
}

// trimStream removes entries beyond the newest ones.
func (s *Sink) trimStream(ctx context.Context, stream string, keep int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if s.config.Trim == TrimAlways {
		return s.client.XTrimMaxLenApprox(ctx, stream, keep, trimLimit).Err()
	}
	return trimScript.Run(ctx, s.client, []string{stream}, keep, trimLimit).Err()
}
