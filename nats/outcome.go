package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/relay"
)

var errNoAck = fmt.Errorf("no acknowledgement within %s", ackTimeout)

// Codes of the server's answers, as in its list of errors.
const (
	codeMessageTooLarge jetstream.ErrorCode = 10054
	codeHeaderTooLarge  jetstream.ErrorCode = 10097
	codeWrongStream     jetstream.ErrorCode = 10060
	codeNotStored       jetstream.ErrorCode = 10077
	codeSealed          jetstream.ErrorCode = 10109
	codeCounter         jetstream.ErrorCode = 10169
	codeNoMessage       jetstream.ErrorCode = 10037
	codeNoStream        jetstream.ErrorCode = 10059
	codeNotEnabled      jetstream.ErrorCode = 10039
)

// What a server says about a message that it has not stored, when that is about this message and not about the stream.
const (
	largerThanStore = "message too large"
	subjectFull     = "maximum messages per subject exceeded"
)

// outcomeOf classifies an error about a message to the subject.
func (s *Sink) outcomeOf(ctx context.Context, err error, subject string) relay.Outcome {
	reason := fmt.Errorf("nats subject %s: %w", subject, err)
	var answer *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return s.unanswered(ctx, subject)
	case errors.Is(err, nats.ErrMaxPayload):
		return relay.Permanent(reason)
	case !errors.As(err, &answer):
		return relay.Unavailable(reason)
	}
	switch answer.ErrorCode {
	case codeMessageTooLarge, codeHeaderTooLarge:
		return relay.Permanent(reason)
	case codeNotStored:
		return notStored(answer, reason)
	case codeWrongStream:
		return relay.Retry(fmt.Errorf("nats subject %s: stored by another stream than %s: %w", subject, s.stream, err))
	case codeSealed, codeCounter:
		return relay.Retry(reason)
	default:
		return relay.Unavailable(reason)
	}
}

// notStored tells a full stream from a message, or its subject, that alone cannot be stored.
func notStored(answer *jetstream.APIError, reason error) relay.Outcome {
	switch answer.Description {
	case largerThanStore:
		return relay.Permanent(reason)
	case subjectFull:
		return relay.Retry(reason)
	default:
		return relay.Unavailable(reason)
	}
}

// unanswered finds out why nobody took a message: no stream has the subject, or its stream is not at work.
func (s *Sink) unanswered(ctx context.Context, subject string) relay.Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	stream, err := s.js.StreamNameBySubject(ctx, subject)
	switch {
	case err == nil:
		return relay.Unavailable(fmt.Errorf("nats subject %s: stream %s does not answer", subject, stream))
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return relay.Retry(fmt.Errorf("nats subject %s: no stream takes this subject", subject))
	default:
		return relay.Unavailable(fmt.Errorf("nats subject %s: no stream answers, and asking which one should: %w", subject, err))
	}
}
