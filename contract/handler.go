package contract

import (
	"context"

	"github.com/postrider/postrider/inbox"
)

// Handler returns a handler of a consumer.Consumer that gives next only those messages that keep their contract. Others come back
// with the error of Message, and the later ones of their key with inbox.ErrSkipped, until the consumer has done with them
// what its policy for malformed messages says.
func (c *Contract) Handler(
	next func(ctx context.Context, batch []inbox.Message) []inbox.Result,
) func(ctx context.Context, batch []inbox.Message) []inbox.Result {
	return func(ctx context.Context, batch []inbox.Message) []inbox.Result {
		results := make([]inbox.Result, len(batch))
		stopped := make(map[string]bool) // by key
		var good []inbox.Message
		var places []int
		for i, m := range batch {
			if stopped[keyOf(m)] {
				continue
			}
			if results[i].Err = c.Message(m); results[i].Err != nil {
				stop(stopped, m)
				continue
			}
			good, places = append(good, m), append(places, i)
		}
		if len(good) > 0 {
			applied := next(ctx, good)
			if len(applied) != len(good) {
				return nil // which the consumer knows how to take
			}
			for i, r := range applied {
				results[places[i]] = r
			}
		}
		skipBehindFailures(batch, results)
		return results
	}
}

// skipBehindFailures sees to it that only the first failure of a key is told as one.
func skipBehindFailures(batch []inbox.Message, results []inbox.Result) {
	failed := make(map[string]bool) // by key
	for i, m := range batch {
		if failed[keyOf(m)] {
			results[i] = inbox.Result{Err: inbox.ErrSkipped}
		} else if results[i].Err != nil {
			stop(failed, m)
		}
	}
}

// keyOf is what messages that must stay in order have in common, or "".
func keyOf(m inbox.Message) string {
	if m.Key != "" {
		return m.Key
	}
	return m.AggregateID()
}

func stop(stopped map[string]bool, m inbox.Message) {
	if key := keyOf(m); key != "" {
		stopped[key] = true
	}
}
