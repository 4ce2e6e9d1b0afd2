// Package nats publishes events to NATS JetStream.
//
// # What published means
//
// An event is published once a stream has acknowledged it with the stream's name and sequence; they are its
// coordinates, such as nats:ORDERS@1042. Use streams with file storage: what a stream in memory acknowledges is gone
// when the server ends. Check warns about that and about other settings of streams that lose events.
//
// # Duplicates
//
// The event's id is sent as Nats-Msg-Id. A stream drops a message whose id it has seen within its duplicate window,
// two minutes unless it says otherwise, and acknowledges it all the same. So an event that is sent again, because its
// acknowledgement was lost or another relay has taken over, is stored once as long as that happens within the window.
// Make the window longer than the outages you expect. Because of the window, Publish does not wait for a server that
// does not answer: after ten seconds, or when its context ends, the event is told as unavailable, and sending it again
// is safe. A redrive that must be stored again within the window needs another id.
//
// # Order
//
// Publish sends the batch in rounds: one message of each key, all at once, and the next ones when these are
// acknowledged. A batch with many keys is fast; one with a single key takes a round trip for each event.
//
// # What becomes of failures
//
//   - Permanent: what NATS cannot carry (subjects that are empty, have empty parts, white space or wildcards, or
//     belong to the server; header names outside of ASCII or beginning with Nats-; header values with line breaks or
//     white space at the ends) and messages larger than the server or the stream takes.
//   - Retry: no stream takes the subject, another stream than the expected one does, or the login may not publish to it.
//   - Unavailable: no connection, login refused, JetStream not enabled or short of resources, a full stream, no
//     acknowledgement.
//
// JetStream has no message key; consumers find it in the headers. Names of headers keep their case, their order is
// lost.
package nats
