package consumer

// Names of the headers that a message gets on its way to a retry topic or a dead-letter topic. Each stands once, however often
// the message fails, and is replaced by the next failure; the message's own headers and its payload stay as they are.
// Times are RFC 3339 in UTC, with milliseconds.
const (
	HeaderOriginTopic     = "X-Origin-Topic"     // where the message was first read
	HeaderOriginPartition = "X-Origin-Partition" // left out where the broker has none
	HeaderOriginOffset    = "X-Origin-Offset"    // left out where the broker has none

	HeaderFailureConsumer = "X-Failure-Consumer" // the name of the consumer
	HeaderFailureClass    = "X-Failure-Class"    // retry, permanent or malformed
	HeaderFailureMessage  = "X-Failure-Message"  // the error, cut to 1 KiB and cleaned of control characters
	HeaderFailureAttempts = "X-Failure-Attempts" // how often it was tried, since it was first read
	HeaderFailureFirstAt  = "X-Failure-First-At"
	HeaderFailureLastAt   = "X-Failure-Last-At"

	HeaderRetryAt = "X-Retry-At" // on a retry topic: it is not tried before
)
