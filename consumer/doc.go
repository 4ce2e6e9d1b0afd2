// Package consumer reads messages from a broker and has each applied: in parallel across keys, in order within a key, with
// retries, retry topics, dead-letter topics and parking for those that fail. What makes the effect happen once is package
// inbox; a Consumer acknowledges a message after it was applied, or durably stored elsewhere, and never before.
package consumer
