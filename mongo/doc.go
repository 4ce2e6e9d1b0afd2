// Package mongo keeps an outbox in MongoDB: documents that are committed together with the data that they tell about, and
// that a relay (package relay, or the postrider daemon) publishes to a broker afterwards. It keeps an inbox there as well.
//
//	outbox, err := mongo.New(db.Collection("outbox_events"), mongo.Config{})
//	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
//		if _, err := orders.InsertOne(ctx, order); err != nil {
//			return nil, err
//		}
//		return outbox.Add(ctx, postrider.Event{...})
//	})
//
// # Guarantees
//
// They are those of package postrider. Transactions need a replica set or a sharded cluster, MongoDB 6.0 or newer.
//
// # Order
//
// The outbox order is the order of _id. An Add takes a position for each of its events from the document of its key in the
// collection of the keys: one more than the last position of the key, or the server's time where that is later. Two
// transactions that add events of one key change the same document, so that MongoDB lets only one of them commit and
// the other starts again: the positions of a key rise in the order of the commits. An _id holds the position first, in
// seconds and microseconds, then random bits.
//
// # Collections
//
// Store.Init creates the outbox collection and its side collections in the same database. For the outbox outbox_events
// they are outbox_keys (positions), outbox_shards (leases), outbox_relays (heartbeats), outbox_attempts (failed attempts
// and operators' actions), outbox_versions (versions that have left) and outbox_schema (version and layout); for any
// other outbox NAME they are NAME_keys and so on.
//
// # Collections of others
//
// With StoreConfig.Mapping a Store publishes the documents of a collection that somebody else designed, such as those of
// Presets, without a change to them other than to the fields that the Mapping names.
//
// # The inbox
//
// An Inbox lets a consumer apply each message once, with its effect in MongoDB: package inbox, with receipts in a collection.
// It needs transactions as well.
//
// # How it works
//
// A settle writes to the documents of the leases that it proves, in the transaction that writes the outcomes; a takeover
// of one of them in between makes one of the two start again. Every comparison with time uses the server's clock ($$NOW).
package mongo
