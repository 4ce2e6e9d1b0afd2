// Package kafka publishes events to Apache Kafka and to what speaks its protocol, and reads messages from there: Sink and Source.
// What follows is about the sink, but for the last section.
//
// # What published means
//
// An event is published once all in-sync replicas of its partition have it (acks=all). Its coordinates are topic,
// partition and offset, such as kafka:orders/3@1042. How many replicas must be in sync is a setting of the topic;
// Check warns when it is one, and about other settings that lose acknowledged events.
//
// The key decides the partition, by the hash that Kafka's own clients use. Headers keep their order.
//
// # Duplicates
//
// The producer is idempotent: a batch that is repeated because its answer was lost is stored once. That works only
// while the same producer repeats it. So once a request was written, Publish goes on repeating until a broker has the
// batch or refuses it for what is in it, also after its context has ended, and even if that takes until the broker is
// back. A refusal that may pass, such as that of a broker which shuts down or has too few replicas, does not end it: the
// broker may have stored the batch all the same. Messages that cannot have reached a broker are given up when the
// context ends, or after ten seconds.
//
// A broker that has forgotten the producer, after losing data or keeping it idle for a day, refuses its batches. They
// come back as unavailable, and the sink goes on with a new producer.
//
// # Order
//
// Publish sends in waves: in each, at most one record batch for each partition, which the broker takes or refuses as a
// whole. The messages of a key are in one record batch or in different waves, so none is at a broker before all earlier
// ones were acknowledged. A record batch that is refused for what is in it is sent again in halves, until only the
// guilty message is left. Up to four calls of Publish send at the same time; more wait.
//
// # What becomes of failures
//
//   - Permanent: a message that is too large, that the broker calls invalid, or whose topic's name is.
//   - Retry: the topic does not exist, or the login may not write to it.
//   - Unavailable: no broker can be reached, the login is refused, there is no leader, and the like.
//
// A message is too large when a record batch with nothing else in it is: over Config.MaxMessageBytes before
// compression, or over the topic's max.message.bytes as it is sent. Without compression both are told before sending,
// if the login may read the topic's settings (DESCRIBE_CONFIGS).
//
// The login needs WRITE and DESCRIBE on the topics, and before Kafka 3.0 IDEMPOTENT_WRITE on the cluster.
//
// # Reading
//
// A Source is a member of a consumer group. What is in aborted transactions does not come. A record without a value has a nil
// payload. The offset of a partition is committed once everything before it is finished, at intervals, when a partition goes, by
// Flush and by Close; metadata that others left with a committed offset is not kept. A process that is killed gets again what it
// finished since the last commit: the inbox makes that once. Where the records after the committed offset are gone, the partition
// goes on with the first that is left.
//
// The login needs READ on the topics and on the group.
package kafka
