// Package dlt looks at dead-letter topics, to which consumers send what they cannot apply, and sends it back to where it was first
// read.
//
// # What a redrive promises
//
// A letter goes back to its origin topic with its event id, key and payload as they are. It is taken out of the dead-letter
// topic, or marked there as redriven, once the sink has reported that it is durably back. When this program dies
// in between, the next redrive sends up to a batch of letters again: a consumer with an inbox absorbs them by their event id.
// Letters of a key go back in the order of the dead-letter topic, and when one is refused the later ones of its key stay; but what
// was applied since they failed is before them.
//
// The message gets another id for the broker's own deduplication than the first time, so that a duplicate window does not swallow it; and
// the same one when it is redriven twice.
package dlt

import (
	"context"

	"github.com/postrider/postrider/operator"
)

// Topic is one dead-letter topic at its broker. Its methods are called by one goroutine.
type Topic interface {
	// Scan calls visit for each letter that is there when it begins and was not redriven, and consumes none: the oldest first, where
	// the broker has partitions within each of them. It ends with the error of visit, which may call Settle. A topic that does not
	// exist is an error.
	Scan(ctx context.Context, visit func(Letter) error) error

	// Settle takes letters of the scan that is going on, or was the last one, out of the topic because they were redriven, or marks
	// them so. When it returns nil that outlives a crash of this program.
	Settle(ctx context.Context, letters []Letter, by operator.Action) error

	// Close ends the connections.
	Close() error
}

// Names of the headers of a mark: a record in a dead-letter topic that says that a letter was redriven, where letters cannot be taken
// out (Kafka). A mark has no payload. Whoever else reads the topic leaves out what has the first one and does not say where it was first
// read, as every dead letter of a Consumer does.
const (
	HeaderRedriven       = "X-Redriven" // partition@offset of the letter
	HeaderRedrivenBy     = "X-Redriven-By"
	HeaderRedrivenAt     = "X-Redriven-At" // RFC 3339 in UTC
	HeaderRedrivenReason = "X-Redriven-Reason"
)
