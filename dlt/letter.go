package dlt

import (
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/operator"
)

// Letter is one dead letter: a message of a dead-letter topic. What is known of its failure is in its headers; a message that no
// Consumer wrote has none.
type Letter struct {
	Message inbox.Message

	// Ref is the topic's own.
	Ref any
}

// OriginTopic is where the message was first read, and where a redrive sends it; empty if it does not say.
func (l Letter) OriginTopic() string { return l.Message.Header(consumer.HeaderOriginTopic) }

// Consumer is the name of the consumer that could not apply it.
func (l Letter) Consumer() string { return l.Message.Header(consumer.HeaderFailureConsumer) }

// Class is the class of the error.
func (l Letter) Class() inbox.Class {
	return inbox.Class(l.Message.Header(consumer.HeaderFailureClass))
}

// Failure is the text of the error.
func (l Letter) Failure() string { return l.Message.Header(consumer.HeaderFailureMessage) }

// At is when it failed for the last time, else when the broker stored it; zero if neither is known.
func (l Letter) At() time.Time {
	if at, err := time.Parse(time.RFC3339, l.Message.Header(consumer.HeaderFailureLastAt)); err == nil {
		return at
	}
	return l.Message.At.UTC()
}

// key is what an order is kept by.
func (l Letter) key() string {
	if l.Message.Key != "" {
		return l.Message.Key
	}
	return l.Message.AggregateID()
}

// Filter chooses letters. Every field that is set must hold; the zero value chooses all.
type Filter struct {
	Refs          []string // event ids or coordinates
	OriginTopic   string
	Consumer      string
	EventType     string
	Class         inbox.Class
	ErrorContains string
	Key           string    // the key, or the aggregate id of a message without a key
	Since, Until  time.Time // failed for the last time not before, and before
}

// Matches reports whether the filter chooses the letter.
func (f Filter) Matches(l Letter) bool {
	at := l.At()
	return (len(f.Refs) == 0 || slices.Contains(f.Refs, l.Message.Coordinates) || slices.Contains(f.Refs, l.Message.EventID())) &&
		(f.OriginTopic == "" || f.OriginTopic == l.OriginTopic()) &&
		(f.Consumer == "" || f.Consumer == l.Consumer()) &&
		(f.EventType == "" || f.EventType == l.Message.EventType()) &&
		(f.Class == "" || f.Class == l.Class()) &&
		strings.Contains(l.Failure(), f.ErrorContains) &&
		(f.Key == "" || f.Key == l.key()) &&
		(f.Since.IsZero() || !at.Before(f.Since)) &&
		(f.Until.IsZero() || at.Before(f.Until))
}

// Group is letters of one cause.
type Group struct {
	Letters     int         `json:"letters"`
	OriginTopic string      `json:"origin_topic"`
	Consumer    string      `json:"consumer"`
	EventType   string      `json:"event_type"`
	Class       inbox.Class `json:"class"`
	Error       string      `json:"error"` // without ids and numbers, see operator.Fingerprint
	Oldest      time.Time   `json:"oldest"`
	Newest      time.Time   `json:"newest"`
	Sample      string      `json:"sample"` // coordinates of one of them
}

// Groups adds letters up by their cause. Its zero value has none.
type Groups struct{ all map[cause]*Group }

type cause struct {
	originTopic, consumer, eventType, err string
	class                                 inbox.Class
}

// Add adds a letter.
func (g *Groups) Add(l Letter) {
	at := l.At()
	c := cause{l.OriginTopic(), l.Consumer(), l.Message.EventType(), operator.Fingerprint(l.Failure()), l.Class()}
	group := g.all[c]
	if group == nil {
		group = &Group{OriginTopic: c.originTopic, Consumer: c.consumer, EventType: c.eventType, Class: c.class, Error: c.err,
			Oldest: at, Newest: at, Sample: l.Message.Coordinates}
		if g.all == nil {
			g.all = make(map[cause]*Group)
		}
		g.all[c] = group
	}
	group.Letters++
	if at.Before(group.Oldest) {
		group.Oldest = at
	}
	if at.After(group.Newest) {
		group.Newest = at
	}
}

// List returns the groups, the largest first.
func (g *Groups) List() []Group {
	list := make([]Group, 0, len(g.all))
	for _, group := range g.all {
		list = append(list, *group)
	}
	slices.SortFunc(list, func(a, b Group) int {
		if a.Letters != b.Letters {
			return b.Letters - a.Letters
		}
		return strings.Compare(a.Sample, b.Sample)
	})
	return list
}
