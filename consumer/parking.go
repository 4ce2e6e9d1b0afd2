package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/postrider/postrider/inbox"
)

// Parking keeps the messages of parked keys, in a database. Package parking has it for SQL databases. A key is parked while it has
// messages here, and each call for it is one transaction that locks the key: what comes to a parked key is stored behind what
// is there, or, when the key has rejoined in this moment, is told so. All methods may be called concurrently.
type Parking interface {
	// Parked returns those of keys that are parked.
	Parked(ctx context.Context, consumer string, keys []string) ([]string, error)

	// Park stores messages, which are all of the key and in order, behind those that it has; a key without any gets parked with the
	// failure. A message that is there already, by its event id and coordinates, is not stored again.
	Park(ctx context.Context, consumer, key string, messages []inbox.Message, f ParkedFailure) error

	// Append is Park for a key that is parked. It reports false, and stores nothing, when it is not any more.
	Append(ctx context.Context, consumer, key string, messages []inbox.Message) (bool, error)

	// Claim takes the key that is due for the longest time, for the lease, and returns it with its first limit messages; nil when
	// none is due.
	Claim(ctx context.Context, consumer string, lease time.Duration, limit int) (*ParkedKey, error)

	// Settle removes the first done messages of a claimed key, gives the claim back, and puts next in the place of what is known of
	// the failure: nil when the rest is due at once, as it also is when people have asked for a try since the claim. It reports
	// whether the key has rejoined, because no message is left. When the claim has run out and another has taken the key it
	// changes nothing, and the error is ErrClaimLost.
	Settle(ctx context.Context, claimed *ParkedKey, done int, next *ParkedFailure) (rejoined bool, err error)
}

// ParkedFailure is what is known of the failure of the first message of a parked key.
type ParkedFailure struct {
	Err      string        // cleaned, 1 KiB at most
	Class    inbox.Class   // of the error
	Attempts int           // tries of the first message
	FirstAt  time.Time     // of the first one that failed
	After    time.Duration // the next try comes after this time

	// LetterErr says why its dead letter could not be written, cleaned as Err is; empty unless that is what it waits for.
	LetterErr string
}

// ParkedKey is a claimed key.
type ParkedKey struct {
	Consumer string
	Key      string
	Token    string // of the claim
	Failure  ParkedFailure
	Messages []ParkedMessage // in order
}

// ParkedMessage is a message with its id in the table.
type ParkedMessage struct {
	ID      int64
	Message inbox.Message
	GivenUp *GivenUp // nil unless people have given it up
}

// GivenUp says who has decided that a parked message is not to be applied, and why. When its turn comes it is not handled, but ends
// as Policy.Exhausted says.
type GivenUp struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// ErrClaimLost says that a claim has run out and another process has taken the key.
var ErrClaimLost = errors.New("another process has claimed the parked key meanwhile")
