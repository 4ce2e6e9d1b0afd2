package postrider

// State is the state of one event. The words stand as they are in the status column.
type State string

// The states of an event. docs/state-machine.md draws the transitions between them.
const (
	StatePending    State = "PENDING"    // waits to be published: new, scheduled, or after a failed attempt
	StateProcessing State = "PROCESSING" // claimed by a relay (row claims only)
	StatePublished  State = "PUBLISHED"  // durably acknowledged by the broker
	StateDead       State = "DEAD"       // given up; an operator can redrive or discard it
	StateDiscarded  State = "DISCARDED"  // an operator decided, with a reason, that it is not to be sent
)

// States lists every state in the order of an event's life.
func States() []State {
	return []State{StatePending, StateProcessing, StatePublished, StateDead, StateDiscarded}
}
