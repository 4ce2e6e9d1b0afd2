package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/relay"
)

var errNoAnswer = fmt.Errorf("no answer within %s", answerTimeout)

// outcomeOf classifies the answer to a message for the stream.
func (s *Sink) outcomeOf(ctx context.Context, a answer, stream string) relay.Outcome {
	err := a.err
	switch {
	case err == nil:
		return relay.Published("redis:" + stream + "@" + a.id)
	case !isAnswer(err):
		return s.unavailable(ctx, fmt.Errorf("stream %s: %w", stream, err))
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return relay.Retry(fmt.Errorf("redis stream %s: this key holds something else than a stream: choose another topic or remove it: %w", stream, err))
	case redis.HasErrorPrefix(err, "NOPERM") && !isCommandRefused(err):
		return relay.Retry(fmt.Errorf("redis stream %s: the login may not access it: %w", stream, err))
	case strings.Contains(err.Error(), "exhausted the last possible ID"):
		return relay.Retry(fmt.Errorf("redis stream %s: choose another topic or remove the entry with the highest id: %w", stream, err))
	case strings.Contains(err.Error(), "invalid bulk length"), strings.Contains(err.Error(), "too large to be stored"):
		return relay.Permanent(fmt.Errorf("redis stream %s: the message is larger than the server takes: %w", stream, err))
	case isRedirection(err) && s.cluster == nil:
		return s.unavailable(ctx, fmt.Errorf("stream %s: the server is a node of a cluster: set cluster: %w", stream, err))
	default:
		return s.unavailable(ctx, fmt.Errorf("stream %s: %w", stream, err))
	}
}

// unavailable tells that nothing can be sent. A cluster may have changed.
func (s *Sink) unavailable(ctx context.Context, err error) relay.Outcome {
	if s.cluster != nil {
		s.cluster.ReloadState(ctx)
	}
	return relay.Unavailable(fmt.Errorf("redis: %w", err))
}

// isAnswer tells what a server says from trouble with reaching it.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// isCommandRefused tells a login that may not use a command at all from one that may not use it on a key.
func isCommandRefused(err error) bool {
	return strings.Contains(err.Error(), "permissions to run")
}

// isRedirection tells that another node of the cluster has the key, or is about to.
func isRedirection(err error) bool {
	for _, word := range []string{"MOVED ", "ASK ", "TRYAGAIN "} {
		if redis.HasErrorPrefix(err, word) {
			return true
		}
	}
	return false
}
