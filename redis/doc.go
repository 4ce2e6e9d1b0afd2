// Package redis publishes events to Redis Streams, and to those of Valkey: a topic is the key of a stream.
//
// # What an entry holds
//
// The fields of an entry are id, key and payload, in this order, and then one field for each header, whose name is h:
// and the name of the header, such as h:X-Event-Type. Every value is stored byte by byte. No header can hide another
// field.
//
// # What published means
//
// An event is published once the master has answered with the entry's id; stream and id are its coordinates, such as
// redis:orders@1700000000000-0. How long an entry outlives that answer depends on the settings of the server, and Check
// warns about those that lose entries:
//
//   - appendonly yes, appendfsync always: the entry is on the master's disk before the answer.
//   - appendonly yes, appendfsync everysec (the default of appendfsync): the loss of the machine takes up to about a second of
//     entries with it, and so can a kill of the process while it waits for the disk.
//   - appendonly no: it is gone with the process, unless a snapshot has been taken since.
//
// None of them outlives a failover to a replica that was behind. With Config.Replicas an event is published once so many
// replicas have it as well (WAIT), with Config.Fsync once it is on the disk of the master, and of so many replicas
// (WAITAOF, Redis 7.2 or Valkey). That is asked once for each batch. A failover may still choose a replica
// that was not among them, if there are more.
//
// # Duplicates
//
// An answer that is lost leaves it open whether the entry was written, and the event is sent again: that can write it
// twice. With Config.IdempotentFor it cannot: a script writes the entry, and with it a key that holds the entry's id and
// expires after that time, or finds this key and answers the first entry's id. The key is
// postrider:published:{STREAM}:EVENT, in the hash slot of the stream. So what is sent again within that time, by
// this relay or another, is stored once; also if the first request arrives later than the second. A redrive that must be
// stored again within that time needs another id. An eviction policy that removes these keys ends the promise; Check
// warns of it. Replicas and Fsync need the idempotent mode, because an event that too few replicas have got is sent again.
//
// # Order
//
// Publish sends the batch in rounds: one message of each key in pipelines, and the next ones when these are answered. A
// command that fails in the middle of a pipeline does not stop the later ones, and neither does it in a transaction; so
// two messages of a key never share one. A batch with many keys is fast; one with a single key takes a round trip for
// each event. A pipeline is answered within ten seconds, or its messages are unavailable; also after the context has
// ended its answers are waited for, because what was sent may be stored.
//
// # Trimming
//
// Streams grow until they are trimmed, and by default nothing trims them. With TrimSafe, entries beyond
// Config.MaxEntries are removed once every consumer group has read and acknowledged them, and never before; a stream that
// has no group keeps everything. With TrimAlways they are removed whether they were read or not. Both remove whole
// nodes of the stream only, 100 entries or 4 KiB unless the server is told otherwise, so somewhat more entries may stay.
// A stream is trimmed after something was published to it, no more often than every two seconds.
//
// # What becomes of failures
//
//   - Permanent: an empty topic, a message over Config.MaxMessageBytes, a field over the server's proto-max-bulk-len; in
//     idempotent mode a message without an id, and a topic for which no key in the same hash slot exists: one with } in its
//     name, but without a hash tag.
//   - Retry: the topic is the key of something that is no stream (WRONGTYPE), the login may not access it (NOPERM), or its
//     ids are used up.
//   - Unavailable: no connection, login refused (NOAUTH, WRONGPASS, NOPERM for a command), no memory left (OOM), not a
//     master or not ready (READONLY, LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN, BUSY), unable to persist or replicate
//     (MISCONF, NOREPLICAS, too few acknowledgements), no answer, and whatever else the server says.
//
// The login needs XADD on the topics; for the idempotent mode also EVALSHA and SCRIPT LOAD (EVAL in a cluster), and GET, SET and PEXPIRE on the
// keys named above; WAIT or WAITAOF for Replicas and Fsync; EVALSHA, EVAL, XLEN, XINFO GROUPS, XPENDING and XTRIM for TrimSafe,
// XTRIM for TrimAlways. CONFIG GET lets Check see the settings, and Publish the limit for a field.
//
// # Reading
//
// A Source reads streams as a member of a consumer group for a consumer.Consumer. Redis hands the entries of a stream to all members of the
// group, so the order of a key holds across processes only where one of them reads the stream: one process, or a stream for
// each part of the keys. What is taken over from a member that has died comes after what was handed out meanwhile; a process that comes
// back under its SourceConfig.Consumer has its own again before anything else. A stream is a lane: one that is paused is not read
// further, and what was read of it is kept from being taken over.
//
// Of entries that others than a Sink have written, the field payload is the payload, or data where there is none, key the key, and every
// other field a header, with the field's name; an id is the header X-Event-Id unless a header tells the event id. An entry without a payload
// is delivered like any other. One that was deleted or trimmed while it was pending is gone: see TrimSafe.
//
// When the group or the stream is deleted, or the server has lost its data, Fetch tells it, the group is created anew, and
// everything that the stream has comes again. Members that were silent for an hour and have nothing pending are removed from the group.
//
// The login needs XREADGROUP, XACK, XPENDING, XCLAIM, and EVALSHA with EVAL for what holds entries in hand; XGROUP CREATE where the
// group does not exist; XINFO CONSUMERS and XGROUP DELCONSUMER to remove members. It works with Redis 7 and newer, and Valkey.
package redis
