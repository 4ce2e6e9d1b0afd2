// Package kafka publishes events to Apache Kafka and what speaks its protocol.
package kafka
