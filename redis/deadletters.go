package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/operator"
)

// letterPage is how many letters are read at a time.
const letterPage = 100

// DeadLetters is a dead-letter topic. It implements dlt.Topic. Letters are read without a group, and deleted from the stream when they were
// redriven: a group that reads the stream as well sees that as a gap.
type DeadLetters struct {
	client redis.UniversalClient
	stream string
}

var _ dlt.Topic = (*DeadLetters)(nil)

// OpenDeadLetters checks the configuration, of which it needs how to reach the server; Scan connects. The caller closes what it returns.
func OpenDeadLetters(c Config, stream string) (*DeadLetters, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return &DeadLetters{client: c.client(), stream: stream}, nil
}

// Scan implements dlt.Topic.
func (d *DeadLetters) Scan(ctx context.Context, visit func(dlt.Letter) error) error {
	last, err := d.last(ctx)
	if err != nil {
		return fmt.Errorf("redis: read stream %s: %w", d.stream, err)
	}
	for from := "-"; ; {
		answer, err := d.client.Do(ctx, "XRANGE", d.stream, from, last, "COUNT", letterPage).Result()
		if err != nil {
			return fmt.Errorf("redis: read stream %s: %w", d.stream, err)
		}
		entries, err := records(answer)
		if err != nil {
			return fmt.Errorf("redis: read stream %s: %w", d.stream, err)
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := visit(dlt.Letter{Message: decode(d.stream, e), Ref: e.id}); err != nil {
				return err
			}
			from = "(" + e.id
		}
		if len(entries) < letterPage {
			return nil
		}
	}
}

// last is the id that ends the scan.
func (d *DeadLetters) last(ctx context.Context) (string, error) {
	info, err := d.client.XInfoStream(ctx, d.stream).Result()
	if err != nil {
		return "", err // the server's words for a key that is missing are clear
	}
	return info.LastGeneratedID, nil
}

// Settle implements dlt.Topic. Who did it and why is not kept.
func (d *DeadLetters) Settle(ctx context.Context, letters []dlt.Letter, _ operator.Action) error {
	ids := make([]string, len(letters))
	for i, l := range letters {
		ids[i] = l.Ref.(string)
	}
	if err := d.client.XDel(ctx, d.stream, ids...).Err(); err != nil {
		return fmt.Errorf("redis: delete from stream %s: %w", d.stream, err)
	}
	return nil
}

// Close implements dlt.Topic.
func (d *DeadLetters) Close() error { return d.client.Close() }
