// Package outbox hands events over from one outbox to others, so that each of several destinations has an outbox of its own.
//
// A relay whose route ends here sends nothing. It writes a copy of each event into one or several other outboxes, tables of
// the native shape with a binary payload column, and a relay of its own serves each of those. So each destination has its own
// retries, its own circuit, its own order of keys and its own dead letters, and none waits for another.
//
// # Guarantees
//
// All copies of an event appear in one transaction, or none does. An event is published here when that transaction has
// committed. A copy carries the event id as its deduplication key: an event that is handed over again, because its relay died
// before it could note the outcome, adds nothing while the copy is there. The copies of a key have the order of its events.
//
// # What a copy is
//
// Types, key, topic, payload, content type and headers are those of the event. The outbox id and created_at are the copy's
// own. It has no aggregate_version: versions were checked on the way here, and an event that was given up there never
// comes, so that a second check would wait for it for ever. The version travels in a header, as do an aggregate id that is not
// the key and an event id that is no UUID; Restore, which is to be relay.Config.Restore of the relay that serves the copies, puts
// them back, so that consumers see the event as if it had come directly.
package outbox
