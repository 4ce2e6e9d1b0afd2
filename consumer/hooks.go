package consumer

import (
	"time"

	"github.com/postrider/postrider/inbox"
)

// Hooks let a program watch a Consumer, for metrics and traces. Any field may be nil. They are called from several
// goroutines, on the hot path: they must be quick and must not block.
type Hooks struct {
	// Fetched is called after each fetch that brought messages.
	Fetched func(messages int)
	// Handled is called after each call of the Handler.
	Handled func(messages int, took time.Duration)
	// Applied is called for each message that was applied or a duplicate, also from the parking.
	Applied func(m inbox.Message, outcome inbox.Outcome)
	// Failed is called for each failure of a message, with what is done next: retry, retry topic, park, dead letter, drop or
	// pause (the database takes nothing).
	Failed func(m inbox.Message, class inbox.Class, err error, next string)
	// DeadLettered is called once a dead letter is durably written.
	DeadLettered func(m inbox.Message, topic string)
	// Dropped is called for each message that was given up without a dead letter.
	Dropped func(m inbox.Message, err error)
	// Refused is called each time that the sink refuses a message for a retry or dead-letter topic for good. It stays in hand,
	// blocks its key only, and is tried again.
	Refused func(m inbox.Message, topic string, err error)
	// Rejoined is called when the last parked message of a key was applied. key is what they were parked by: topic, NUL and key, or NUL first for a
	// message without a key.
	Rejoined func(key string)
	// LoopFailed is called when a loop of the consumer meets an error: fetch, handle, write, park.
	LoopFailed func(loop string, err error)
}

func (h *Hooks) fetched(n int) {
	if h.Fetched != nil {
		h.Fetched(n)
	}
}

func (h *Hooks) handled(n int, took time.Duration) {
	if h.Handled != nil {
		h.Handled(n, took)
	}
}

func (h *Hooks) applied(m inbox.Message, outcome inbox.Outcome) {
	if h.Applied != nil {
		h.Applied(m, outcome)
	}
}

func (h *Hooks) failed(m inbox.Message, err error, next step) {
	if h.Failed != nil {
		h.Failed(m, inbox.ClassOf(err), err, string(next))
	}
}

func (h *Hooks) deadLettered(m inbox.Message, topic string) {
	if h.DeadLettered != nil {
		h.DeadLettered(m, topic)
	}
}

func (h *Hooks) dropped(m inbox.Message, err error) {
	if h.Dropped != nil {
		h.Dropped(m, err)
	}
}

func (h *Hooks) refused(m inbox.Message, topic string, err error) {
	if h.Refused != nil {
		h.Refused(m, topic, err)
	}
}

func (h *Hooks) rejoined(key string) {
	if h.Rejoined != nil {
		h.Rejoined(key)
	}
}

func (h *Hooks) loopFailed(loop string, err error) {
	if h.LoopFailed != nil {
		h.LoopFailed(loop, err)
	}
}
