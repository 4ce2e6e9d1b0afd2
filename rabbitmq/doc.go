// Package rabbitmq publishes events to RabbitMQ.
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
// A Source reads queues for a consumer.Consumer. RabbitMQ hands the messages of a queue to all who read it, in turn, so the order of a
// key holds across processes only where one of them reads the queue at a time: declare it with x-single-active-consumer, or
// give each process a queue of its own, behind a consistent-hash exchange over the aggregate id. What is returned, or comes again after a
// connection was lost, stands where it was, as far as the server can. A message that is in hand for longer than the server's
// consumer_timeout (30 minutes) comes again too.
package rabbitmq
