// Package rabbitmq publishes events to RabbitMQ, and reads them from there.
//
// # Where events go
//
// A topic names an exchange and a routing key, or a queue:
//
//   - orders/order.created is the exchange orders and the routing key order.created. The first slash ends the name of the
//     exchange; orders/ has an empty key.
//   - orders is the exchange orders, with the event type as routing key.
//   - /invoices is the queue invoices, by the default exchange.
//
// Messages are persistent. The event id is the message-id, and the event type the type; the content type, and the second
// in which the message was sent, are properties as well. Headers are strings. AMQP has no message key; consumers find
// it in the headers.
//
// # What published means
//
// An event is published once the server has confirmed it and has not returned it: every queue that it was routed to
// has it, quorum queues and streams on a majority of their members. Its coordinates are topic and event id, such as
// rabbitmq:orders/order.created@0190c7f0-7b7e-7cc3-98c4-1f5e6a7b8c9d, because AMQP tells no position. Use quorum queues or
// streams: a classic queue keeps its messages on one node, and one that is not durable forgets them when that restarts.
//
// A message for which the exchange finds no queue is returned by the server and confirmed all the same. What becomes of
// it is a setting, for all exchanges or for single ones: Config.Unroutable and Config.UnroutableBy. What an alternate
// exchange takes counts as routed.
//
// A single server that is killed within seconds after a quorum queue was declared can forget the queue's messages,
// confirmed ones too. Declare queues some time before events go there.
//
// # Duplicates
//
// RabbitMQ does not recognize repetitions; consumers have to, by the event id. An event that is told as unavailable after
// it was sent may be there, and will be there twice when it is sent again. That can happen when a connection is lost, and
// when the server confirms nothing for half a minute. So Publish waits for what it has sent even if its context has
// ended, and sends nothing to a server that blocks publishers. An event that several queues get, of which one refuses it,
// comes to the others again with each retry.
//
// # Order
//
// Publish sends in flights: at most one message of each key, and the next ones when these are confirmed. So a message that
// is returned or refused in the middle is not overtaken by a later one of its key. A batch with many keys is fast; one
// with a single key takes a round trip for each event.
//
// A server answers a message to an exchange that does not exist by closing the channel, and whatever else is on that
// channel is lost from sight. Therefore every topic of a flight has channels of its own, with up to 128 messages on each;
// up to 32 channels are used by one call of Publish, and up to 8 calls send at the same time. A message larger than any
// that the server has taken on this connection flies alone, because one that is too large closes the channel too. If a
// channel is closed for a reason that may be in any of its messages, they are sent again at once, one by one; those that
// had arrived before are there twice.
//
// # What becomes of failures
//
//   - Permanent: what RabbitMQ cannot carry (topics that name nothing, are not UTF-8, or have a name or key over 255 bytes;
//     header names over 255 bytes, and CC and BCC, which are instructions to the server), a message over
//     Config.MaxMessageBytes, headers over the server's frame_max, a payload over its max_message_size, and
//     unroutable messages if they are to be dead.
//   - Retry: the exchange does not exist, the login may not write to it or with that routing key, a queue refuses the
//     message, and unroutable messages.
//   - Unavailable: no connection, login refused, a server that blocks publishers because it is short of memory or disk,
//     no confirmation within half a minute.
//
// RabbitMQ 3.10 returns as unroutable what comes for a stream in the first seconds after its start.
//
// The login needs the right to write to the exchanges, for the default exchange to amq.default, and the right to configure
// those that the sink declares.
//
// # Reading
//
// A Source reads queues, classic or quorum; streams are refused. Members of a group read the same queues. The login needs the
// right to read from them.
//
// A message's Topic is a slash and the name of the queue, and its Coordinates are those that the sink tells, with the message-id,
// the event id of its headers, or, for a message that has neither, the number of the delivery. It has no Partition, Offset or
// Key: a consumer orders by the aggregate id, which is in the headers. At is the timestamp, by the clock of the sender.
//
// Values of headers are rendered as text: numbers, decimals and truth values as usual, times in RFC 3339, bytes as they are if they
// are UTF-8, and else in hexadecimal digits. Tables and arrays, such as x-death, are left out, and so is what a quorum queue says
// of the delivery (x-delivery-count, x-acquired-count). So that messages of other producers can be recognized, the message-id stands
// as X-Event-Id and the type as X-Event-Type where no header carries an event id or an event type, and content-type and
// content-encoding as headers of those names.
//
// Deliveries is exact for quorum queues. A classic queue only tells that it has delivered a message before: then it is 2.
//
// # Order of what is read
//
// A queue is a lane, whose messages wait in the source while it is paused: a queue of a retry topic takes the room of no other.
//
// A queue hands its messages out one by one to whoever has room. The order of a key is kept by a consumer alone, but not across
// several processes that read one queue, unless the queue has a single active consumer (x-single-active-consumer): then one process
// gets everything, and another one takes over when it stops. To share the work, have several such queues, and an exchange of type
// x-consistent-hash that spreads the keys over them by a header. A process that has lost its connection may still work on a
// message while another one gets it; receipts make that harmless.
//
// # Limits of the server
//
// A quorum queue of RabbitMQ 4 drops a message, or dead-letters it by its own means, that was delivered 21 times without being
// acknowledged. Each stop or crash of a source counts, also for messages that only waited in it. Declare such queues with
// x-delivery-limit -1, or set that by a policy, so that no message is lost in a loop of crashes; how often a message is tried is the
// consumer's business. In RabbitMQ 3 do not set it: there is no limit unless one is set, and -1 drops a message that is delivered again.
//
// The server closes the channel of a message that is not acknowledged within consumer_timeout, half an hour unless it says otherwise,
// and delivers again what was on it, which is of one queue. That time includes waiting in the source: keep Prefetch well below what is
// handled in it, and let a message that has to wait for longer wait elsewhere, on a retry topic or parked. A message on a retry topic
// waits in the source too: keep the delays below that time.
//
// A server that is killed can forget the acknowledgements of the last moments. Those messages come again.
package rabbitmq
