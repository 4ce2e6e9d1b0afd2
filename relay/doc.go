// Package relay moves committed events from an outbox to their sinks.
//
// # Guarantees
//
// Every committed event ends PUBLISHED, which means durably acknowledged by its sink, or DEAD, which an operator can
// see and redrive. For one key and one sink, first deliveries happen in outbox order, with any number of relays of one
// name, through crashes, restarts, takeovers and retries. A relay that lost the lease of a shard changes no event of
// it. While a sink or the database cannot be reached, no event spends an attempt.
//
// # Duplicates
//
// An event is sent twice only if its relay dies, or loses its lease, between the sink's acknowledgement and the
// settle, or if a sink cannot tell whether an unanswered send arrived; both sends carry the same event id. An orderly
// stop, which ends the context of Run, causes none. Package inbox lets a consumer apply each event once.
//
// # How it works
//
// Keys are spread over shards; each shard is leased to one relay at an epoch (Store.Renew, Store.Acquire). A relay
// reads events of its shards, sends them in one lane for each key, and settles the outcomes, proving the epoch in the
// statement that writes. The three steps overlap, and what is between read and settle is bounded in events and bytes.
//
// # Duties of the caller
//
// Give all relays of one outbox the same Config.Name. Keep the Sink open until Run has returned, then close it. Keep
// Config.PublishTimeout well below Config.Lease. Watch Health or the hooks: a relay keeps trying and does not exit
// when its database or sink is away.
package relay
