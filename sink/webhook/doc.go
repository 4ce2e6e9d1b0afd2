// Package webhook publishes events to an HTTP endpoint, as Standard Webhooks describes it.
//
// Each event is one POST to Config.URL. Its body is the payload, its headers are those of the event and
//
//	webhook-id         the event id
//	webhook-timestamp  when this request was made, in seconds since 1970
//	webhook-signature  v1,BASE64 of HMAC-SHA256 over "ID.TIMESTAMP.BODY"; one for each of Config.Secrets
//	X-Idempotency-Key  the event id
//	X-Topic            the topic; it does not change the address
//
// # What published means
//
// An event is published once the receiver has answered with a status from 200 to 299. The receiver must not answer so
// before it has kept the event durably: nothing can check that. Coordinates are the host and the event id, such as
// webhook:hooks.example.com@0190c7f0-7b7e-7cc3-98c4-000000000001.
//
// # Duplicates
//
// A request whose answer was lost is sent again, with the same webhook-id: soon by this sink if the connection was an
// older one that the receiver has just closed, and by the relay otherwise. So the receiver must drop ids that it has
// seen. When the context of Publish ends, no further request begins; those that have a connection are waited for,
// because giving one up would make a duplicate. Publish returns at the latest Config.Timeout after its context ended.
//
// # Order
//
// The events of a key leave one after the other, each when the one before was answered. Keys leave side by side, up to
// Config.Concurrency requests for all calls together. HTTP keeps no key: receivers find it in the headers.
//
// # What becomes of failures
//
//   - Permanent: what HTTP cannot carry, statuses from 300 to 399 (no redirect is followed) and from 400 to 499, but for
//     those below.
//   - Retry without spending an attempt: 429, and 503 with Retry-After. The wait is the one that the receiver asks for,
//     from a second to an hour; five seconds for 429 without a time.
//   - Retry: 408, every other status from 500 on, and no answer while the receiver answers other requests.
//   - Unavailable: no connection, a refused address, a certificate that does not verify, 401, no answer from a receiver
//     that answers nothing else, and 410.
//
// After 410 nothing is sent any more: every event is told as unavailable, and waits, until the sink is opened again.
//
// Whether a missing answer is the fault of the event or of the receiver shows in other requests. An event is blamed
// when the receiver has answered a request that began after this one had failed, or had waited for half of the
// time-out. So an outage is blamed on no event, and an event that makes the receiver hang or close the connection holds
// up no other for long. One that is alone waits, without spending attempts, until there are others.
//
// # Safety
//
// Connections to addresses that are not public are refused after the name was resolved, unless Config.AllowPrivate is
// set. No proxy is used, redirects are not followed, and what is read of an answer is bounded. Reasons show the host of
// the URL but nothing else of it, also where an answer repeats it. An answer's body is shown quoted and cut.
package webhook
