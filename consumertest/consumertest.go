// Package consumertest is the conformance suite for sources. A source that passes it against its real broker keeps the
// contract of consumer.Source.
//
//	func TestSourceConformance(t *testing.T) {
//		consumertest.Run(t, consumertest.Harness{Positions: true, Expiry: 6 * time.Second, Open: func(t testing.TB) consumertest.Group { ... }})
//	}
package consumertest

import (
	"testing"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// RetryDelay is the delay of the retry topic of a Group: longer than a case takes.
const RetryDelay = time.Hour

// Prefetch is how many messages of a lane a member can have in hand at a time. A source that is told how many it may have is to
// be told this, because a case has more than that wait for their time.
const Prefetch = 1000

// Harness says what the broker is like, and opens groups on it.
type Harness struct {
	// Open gives a case a topic that is empty and that nobody else uses, its retry topic for RetryDelay, and a consumer group
	// that reads both and has no member. It ends all of them with t.Cleanup.
	Open func(t testing.TB) Group

	// OpenPrivate is Open at a broker that nobody else uses, so that Group.Restart can end it. Nil, the case about it is not run.
	OpenPrivate func(t testing.TB) Group

	// Positions says that the broker keeps one position for each lane, and takes lanes away: Kafka. The topic must have at least
	// two then, and the keys must spread over them. Otherwise the broker keeps an acknowledgement of each message.
	Positions bool

	// Expiry is how long the broker waits for a member that has gone silent, or for an acknowledgement, before it gives what
	// the member has to others. Make it short, and it is what the cases that need it to pass wait for, several times.
	Expiry time.Duration

	// Coordinates says that the coordinates of a message are those that the sink told when it was published.
	Coordinates bool

	// Key says that the broker keeps the key of a message.
	Key bool

	// Cuts says that members have a Proxy. Otherwise the cases about it are not run.
	Cuts bool
}

// Group is a topic and a consumer group that reads it.
type Group struct {
	// Sink publishes to the topic, with connections of its own that no Proxy is on. The harness closes it.
	Sink relay.Sink

	// Topic is where Sink is to publish, and Message.Topic of what is read. Its retry topic is consumer.RetryTopic of it and
	// RetryDelay.
	Topic string

	// Join opens a source that is one more member of the group. The suite closes it.
	Join func(t testing.TB) Member

	// Restart ends the broker without warning and starts it again on its data; see Harness.OpenPrivate.
	Restart func(t testing.TB)
}

// Member is a source, and the network between it and the broker; see Harness.Cuts.
type Member struct {
	Source consumer.Source
	Proxy  *sinktest.Proxy
}

// Run runs the suite. Each case opens a group of its own. Cases run side by side.
func Run(t *testing.T, h Harness) {
	for _, c := range cases {
		if !c.appliesTo(h) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			open := h.Open
			if c.name == restarted {
				open = h.OpenPrivate
			}
			c.check(t, &fixture{t: t, Harness: h, Group: open(t)})
		})
	}
}

const restarted = "BrokerRestarted"

func always(Harness) bool        { return true }
func ofPositions(h Harness) bool { return h.Positions }
func ofCuts(h Harness) bool      { return h.Cuts }
func ofRestarts(h Harness) bool  { return h.OpenPrivate != nil }

var cases = []struct {
	name      string
	appliesTo func(Harness) bool
	check     func(t *testing.T, f *fixture)
}{
	{"FetchEndsWithItsContext", always, fetchEndsWithItsContext},
	{"LimitIsKept", always, limitIsKept},
	{"MessagesAreExact", always, messagesAreExact},
	{"OrderWithinALane", always, orderWithinALane},
	{"FinishedIsOver", always, finishedIsOver},
	{"UnfinishedComesAgainAfterClose", always, unfinishedComesAgainAfterClose},
	{"UnfinishedComesAgainAfterACut", ofCuts, unfinishedComesAgainAfterACut},
	{"UnfinishedInTheMiddle", always, unfinishedInTheMiddle},
	{"KeptWhileTheSourceLives", always, keptWhileTheSourceLives},
	{"ReturnedComesAgain", always, returnedComesAgain},
	{"ReturnedGoesToOthers", always, returnedGoesToOthers},
	{"MembersShareTheWork", always, membersShareTheWork},
	{"RevokedLanesWait", ofPositions, revokedLanesWait},
	{"PausedLanesWait", always, pausedLanesWait},
	{"RetriesLeaveRoom", always, retriesLeaveRoom},
	{"BrokerAwayAndBack", ofCuts, brokerAwayAndBack},
	{restarted, ofRestarts, brokerRestarted},
	{"ConcurrentUse", always, concurrentUse},
	{"OthersGoOnWhileALaneWaits", ofPositions, othersGoOnWhileALaneWaits},
}
