// Package event is what the services know of each other: the types of their events, the payloads, and the headers that tell
// where an event came from.
package event

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

// The types of events. Each has a stream of its name.
const (
	LessonCompleted  = "lesson.completed"  // a Lesson, by the lessons service
	MissionCompleted = "mission.completed" // a Mission, by the progress service
	RewardGranted    = "reward.granted"    // a Reward, by the rewards service
)

// Lesson is the payload of LessonCompleted.
type Lesson struct {
	Learner string `json:"learner"`
	Lesson  string `json:"lesson"`
	Course  string `json:"course"`
	Points  int    `json:"points"` // that it is worth
}

// Mission is the payload of MissionCompleted.
type Mission struct {
	Learner string `json:"learner"`
	Mission string `json:"mission"`
}

// Reward is the payload of RewardGranted.
type Reward struct {
	Learner string `json:"learner"`
	Quest   string `json:"quest"`
	Coins   int    `json:"coins"`
}

// Headers of an event that was caused by another one. The first of a chain has neither.
const (
	HeaderCausation   = "X-Causation-Id"   // the id of the event that caused it
	HeaderCorrelation = "X-Correlation-Id" // the id of the first event of the chain
)

// New makes an event about a learner, whose events stay in order. headers are those of After, or nil for the first of a chain.
func New(eventType, learner string, payload any, headers map[string]string) postrider.Event {
	text, err := json.Marshal(payload)
	if err != nil {
		panic(err) // the payloads are plain structs
	}
	return postrider.Event{AggregateType: "learner", AggregateID: learner, Type: eventType, Payload: text, Headers: headers}
}

// After returns the headers of an event that is caused by a message: they name its causes, and carry its trace on.
func After(cause inbox.Message) map[string]string {
	headers := map[string]string{
		HeaderCausation:   cause.EventID(),
		HeaderCorrelation: cmp.Or(cause.Header(HeaderCorrelation), cause.EventID()),
	}
	for _, name := range []string{"traceparent", "tracestate"} {
		if value := cause.Header(name); value != "" {
			headers[name] = value
		}
	}
	return headers
}

// Read returns the payload of a message. Its error says that no retry helps.
func Read[T any](m inbox.Message) (payload T, err error) {
	if err := json.Unmarshal(m.Payload, &payload); err != nil {
		return payload, inbox.Malformed(fmt.Errorf("payload of %s: %w", m.EventType(), err))
	}
	return payload, nil
}
