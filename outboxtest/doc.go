// Package outboxtest helps to test applications that add events, and consumers that apply them:
//
//   - Table reads which events a transaction has added, and Require compares them with those that it should have.
//   - Idempotent delivers messages twice, in between and at the same time, and finds consumers that do not absorb it.
//   - Broker is a broker in memory, for the tests of an application's own logic.
//
// # What this cannot show
//
// Nothing here proves anything about a server. Broker loses nothing, has no network, no disk, no time-outs, and rebalances in
// an instant; it has none of the faults for which retries, receipts and acknowledgements exist, but those that a test asks
// for. Whether an application works with its broker and its database is shown by running it against them, as the
// conformance suites sinktest and consumertest do for the sinks and sources of Postrider.
package outboxtest
