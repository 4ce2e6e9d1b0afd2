// Package postrider adds events to a transactional outbox: rows that are committed together with the data that they
// tell about, and that a relay (package relay, or the postrider daemon) publishes to a broker afterwards.
//
// # Guarantees
//
// An event added in a transaction that commits is published, or becomes a dead letter that an operator can see and
// redrive. An event added in a transaction that rolls back is never published. The payload is published byte for
// byte.
//
// # Duplicates
//
// The relay publishes at least once. A second delivery carries the same event id; package inbox lets a consumer
// apply each event once. On the way in, Event.DedupKey lets only one event with a key into the table: Add drops a
// later one and says so.
//
// # Ordering
//
// The key of an event is its AggregateID. Events of one key are published in outbox order, which is the order in which
// the database numbered the rows: within an Add the order of the events, within a transaction the order of the Adds.
//
// Between transactions that is the order of their commits only if they take turns on the key. Two transactions that
// add events of one key side by side are numbered in one order and may commit in the other. So serialize them BEFORE
// adding: lock the aggregate's row (SELECT ... FOR UPDATE, or any UPDATE of it), or update it on the condition that
// its version is still the one that was read. On SQLite, which has one writer at a time, begin the transaction with
// BEGIN IMMEDIATE or write before reading.
//
// # Duties of the caller
//
//   - Pass the transaction that writes the data. A connection pool is refused. A connection or a client of a library
//     that may or may not be in a transaction cannot be told apart: make sure that it is.
//   - Roll back when Add returns an error, and when Commit does, treat the outcome as unknown until the data was read.
//   - Use one DedupKey for one meaning, and only where the same event may be added twice.
//   - Keep transactions short. An event is published after its transaction has committed, and later events of its
//     key do not wait for it.
//
// # Other languages
//
// Whatever can run one INSERT in its transaction adds an event that differs in nothing:
//
//	INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload)
//	VALUES ('order', '17', 'OrderPlaced', '{"total": 3}')
package postrider
