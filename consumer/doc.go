// Package consumer reads messages from a broker and has each applied: in parallel across keys, in order within a key, with
// retries, retry topics, dead-letter topics and parking for those that fail. What makes the effect happen once is package
// inbox; a Consumer acknowledges a message after it was applied, or durably stored elsewhere, and never before.
//
// # Order
//
// The messages of a key (Message.Key, else the aggregate id, within a topic) are handled one after the other; a batch may hold several of them,
// in order. Messages without either have no order. A message that fails holds up its key only: with RetryInPlace until it is
// applied or given up, with RetryPark in the database. RetryTopics gives the order of the key up.
//
// # Failures
//
// The class of an error (inbox.ClassOf) and the event type say what comes next, see Policy. An error of class unavailable, which is what
// package inbox makes of errors of the database itself, says nothing about the message: everything pauses, with backoff,
// and no attempt is spent.
//
// A message that goes to a retry or a dead-letter topic is acknowledged once the sink has reported that it is durably there. While the sink
// takes nothing, the message stays in hand and its key waits. One that the sink refuses for good is sent again without
// HeaderFailureMessage, which may have made it too large; when it is still refused, for it is too large by itself or the topic does not
// exist, it stays in hand, is tried again every minute, and shows in Health, Stats.Refused and Hooks.Refused. It is never lost.
//
// Attempts in place are counted in memory: a restart counts anew. Those of retry topics and of parked messages are kept.
//
// # Retry topics
//
// The same Consumer reads them: its Source must subscribe to RetryTopic of each topic and delay. Messages that are not due take little
// room (Config.RetryBuffer), because their lane is paused meanwhile, and hold up no other topic. Messages that another consumer
// of the same topic has sent there are acknowledged unread.
package consumer
