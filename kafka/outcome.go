package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
)

// refusals are answers to a batch that lie in one of its records.
var refusals = []error{
	kerr.MessageTooLarge,
	kerr.RecordListTooLarge,
	kerr.InvalidRecord,
	kerr.InvalidTimestamp,
	kerr.PolicyViolation,
	kerr.CorruptMessage, // also the answer to a record that a compacted topic does not take
}

// troubles are answers that concern one topic. They may pass, but not for the sink as a whole.
var troubles = []error{
	kerr.UnknownTopicOrPartition,
	kerr.UnknownTopicID,
	kerr.TopicAuthorizationFailed,
}

func isRefusal(err error) bool { return isAny(err, refusals) }

func isTooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

func isAny(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// outcomeOf classifies an error about what was sent to a topic or partition.
func outcomeOf(err error, where string) relay.Outcome {
	reason := fmt.Errorf("kafka %s: %w", where, err)
	switch {
	case isRefusal(err), errors.Is(err, kerr.InvalidTopicException):
		return relay.Permanent(reason)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return relay.Retry(fmt.Errorf("kafka %s: the topic does not exist, or we may not see it: %w", where, err))
	case isAny(err, troubles):
		return relay.Retry(reason)
	default:
		return relay.Unavailable(reason)
	}
}

// unavailable tells a whole batch that nothing of it was sent.
func unavailable(batch []relay.Message, reason error) []relay.Outcome {
	b := keyorder.New(batch)
	b.SettleRest(relay.Unavailable(reason))
	return b.Outcomes()
}
