// Package nats publishes events to NATS JetStream, and reads them from there.
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
// is safe.
//
// A stream recognizes a repetition also when the message was purged, deleted or pushed out by a limit. So Publish asks
// the stream for the message before it takes such an acknowledgement as success. What is gone is published again, within
// the window too, with a Nats-Msg-Id that follows from the old one and the sequence of the message that is gone, such as
// ID@1042: relays that do the same at the same time store it once. Consumers recognize the event by its own headers,
// which stay as they are.
//
// Streams with work-queue or interest retention drop what was consumed, and do not tell it from what was purged. There
// the acknowledgement counts: the event was stored, and it is not sent again. To redrive what was purged from such a
// stream, wait until the window is over.
//
// Asking needs the permission to publish to $JS.API.STREAM.MSG.GET.STREAM, and to $JS.API.STREAM.INFO.STREAM when the
// message is gone. Check tells when it is missing. Without it, or when the stream belongs to another account, such an
// event is to be retried, and is stored again once the window is over.
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
//     white space at the ends) and messages larger than the server or the stream takes: max_payload, max_msg_size, 64 KiB
//     of headers, 32 MiB of a message on disk.
//   - Retry: no stream takes the subject, another stream than the expected one does, or the login may not publish to it;
//     the stream is sealed, counts instead of storing events, or refuses new messages of a subject that is full; it has
//     seen the event and may not be asked whether it still holds it.
//   - Unavailable: no connection, login refused, JetStream not enabled, the server or account short of resources, a full
//     stream, no acknowledgement, and every other answer.
//
// JetStream has no message key; consumers find it in the headers. Names of headers keep their case, their order is
// lost.
//
// # Reading
//
// A Source pulls from durable consumers of a stream, which the members of a group share. Unless one exists it is created, from the start
// of the stream, with explicit acknowledgements and no limit of deliveries. An existing one is used as it is, but refused if it
// acknowledges by another policy, gives messages up after max_deliver, leaves payloads out, pushes, has priority groups, or gets
// other subjects than asked for. If max_ack_pending is set, it is for all members together: make it at least Prefetch for each.
//
// SourceConfig.Consumer gets every subject but retry topics. Those of each delay have a consumer CONSUMER-retry-DELAY, such as
// billing-retry-5m, because messages that wait there for their time would fill the other one.
//
// A message's Topic is the subject, its Partition the stream, its Offset the sequence, and At the time at which the stream
// stored it. Its Coordinates are those that the sink tells. It has no Key: a consumer orders by the aggregate id, which is in the
// headers. Headers whose names begin with Nats- are left out, because they are between a publisher and the server; where no header
// carries an event id, Nats-Msg-Id stands as X-Event-Id, so that messages of other producers can be recognized.
//
// A lane is what such a consumer gets. Retry topics that come by a wildcard, or because no subjects are named, are a lane too,
// but one that shares the consumer, and Prefetch, with everything else.
//
// A consumer that is deleted while it is read is not created again, because that would begin at the start of the stream: Fetch tells.
// Deliveries of a stream that was deleted and made anew are forgotten.
//
// JetStream hands messages out one by one to whoever asks. The order of a key is kept by a consumer alone, but not across several
// processes that share a durable consumer. To have both, partition the subjects of the stream (by a subject transform with
// partition()), and have one durable consumer for each partition, read by one process at a time.
//
// The login needs to publish to $JS.API.STREAM.INFO.STREAM, $JS.API.CONSUMER.INFO.STREAM.CONSUMER,
// $JS.API.CONSUMER.MSG.NEXT.STREAM.CONSUMER and $JS.ACK.STREAM.CONSUMER.>, to $JS.API.CONSUMER.CREATE.STREAM.CONSUMER unless the consumer
// exists, all of that for CONSUMER-retry-DELAY too, and to subscribe to _INBOX.>.
package nats
