package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Config says how to reach a cluster. Only Brokers is required.
type Config struct {
	// Brokers are the addresses to start from, as host:port. Without a port it is 9092.
	Brokers []string

	// TLS encrypts the connections when it is set. It may carry a client certificate. The server name is taken
	// from the broker's address unless it is set.
	TLS *tls.Config

	// SASL logs in to the brokers. The zero value does not.
	SASL SASL

	// Compression of record batches. The zero value is CompressionNone.
	Compression Compression

	// MaxMessageBytes is the largest message to send: the size of its record, headers and key included, and of
	// a record batch around it, before compression. A larger one is told as permanent before it is sent. It
	// must be between 1 KiB and 64 MiB; 0 means 1048588, which is the default of max.message.bytes at the brokers.
	MaxMessageBytes int

	// ClientID is the name under which brokers log and throttle. Empty means "postrider".
	ClientID string
}

// SASL is a login. The zero value means none.
type SASL struct {
	Mechanism Mechanism
	User      string
	Password  string
}

// Mechanism is a way to log in.
type Mechanism string

// The mechanisms. Plain sends the password readable to the broker, so it needs TLS on an open network.
const (
	MechanismPlain       Mechanism = "PLAIN"
	MechanismScramSHA256 Mechanism = "SCRAM-SHA-256"
	MechanismScramSHA512 Mechanism = "SCRAM-SHA-512"
)

// Compression is a codec for record batches.
type Compression string

// The codecs. A batch that does not shrink is sent as it is.
const (
	CompressionNone   Compression = "none"
	CompressionGzip   Compression = "gzip"
	CompressionSnappy Compression = "snappy"
	CompressionLZ4    Compression = "lz4"
	CompressionZstd   Compression = "zstd"
)

const (
	defaultMaxMessageBytes  = 1_048_588
	smallestMaxMessageBytes = 1 << 10
	largestMaxMessageBytes  = 64 << 20
	defaultClientID         = "postrider"
)

// withDefaults fills what was left empty and reports every mistake together.
func (c Config) withDefaults() (Config, error) {
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = defaultMaxMessageBytes
	}
	if c.ClientID == "" {
		c.ClientID = defaultClientID
	}
	if c.Compression == "" {
		c.Compression = CompressionNone
	}
	var mistakes []error
	if len(c.Brokers) == 0 {
		mistakes = append(mistakes, errors.New("no brokers: name at least one as host:port"))
	}
	if c.MaxMessageBytes < smallestMaxMessageBytes || c.MaxMessageBytes > largestMaxMessageBytes {
		mistakes = append(mistakes, fmt.Errorf("largest message of %d bytes: it must be between %d and %d",
			c.MaxMessageBytes, smallestMaxMessageBytes, largestMaxMessageBytes))
	}
	if _, err := c.Compression.codec(); err != nil {
		mistakes = append(mistakes, err)
	}
	if _, err := c.SASL.option(); err != nil {
		mistakes = append(mistakes, err)
	}
	return c, errors.Join(mistakes...)
}

func (c Compression) codec() (kgo.CompressionCodec, error) {
	switch c {
	case CompressionNone:
		return kgo.NoCompression(), nil
	case CompressionGzip:
		return kgo.GzipCompression(), nil
	case CompressionSnappy:
		return kgo.SnappyCompression(), nil
	case CompressionLZ4:
		return kgo.Lz4Compression(), nil
	case CompressionZstd:
		return kgo.ZstdCompression(), nil
	}
	return kgo.CompressionCodec{}, fmt.Errorf("unknown compression %q: it must be none, gzip, snappy, lz4 or zstd", string(c))
}

// option returns nil when there is no login.
func (s SASL) option() (kgo.Opt, error) {
	if s == (SASL{}) {
		return nil, nil
	}
	if s.User == "" {
		return nil, fmt.Errorf("SASL login %s without a user", s.Mechanism)
	}
	switch s.Mechanism {
	case MechanismPlain:
		return kgo.SASL(plain.Auth{User: s.User, Pass: s.Password}.AsMechanism()), nil
	case MechanismScramSHA256:
		return kgo.SASL(scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism()), nil
	case MechanismScramSHA512:
		return kgo.SASL(scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism()), nil
	}
	return nil, fmt.Errorf("unknown SASL mechanism %q: it must be %s, %s or %s",
		string(s.Mechanism), MechanismPlain, MechanismScramSHA256, MechanismScramSHA512)
}

const (
	dialTimeout     = 5 * time.Second
	answerTimeout   = 10 * time.Second // how long a broker may take to replicate a batch
	answerOverhead  = 5 * time.Second  // and on top of that to answer at all
	requestTimeout  = 5 * time.Second  // for metadata and the like, retries included
	metadataMinAge  = 500 * time.Millisecond
	unknownRetries  = 10 // half a second each; brokers that have just started may not know a topic yet
	unboundedBuffer = 1<<31 - 1
)

// clientOptions are what all clients of a sink share. The configuration is valid.
func (c Config) clientOptions() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ClientID),
		kgo.DialTimeout(dialTimeout),
		kgo.RequestTimeoutOverhead(answerOverhead),
		kgo.RetryTimeout(requestTimeout),
		kgo.MetadataMinAge(metadataMinAge),
		kgo.MetadataMaxAge(topicMaxAge / 2), // so that lanes know every partition that topics counts
	}
	if c.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.TLS))
	}
	if login, _ := c.SASL.option(); login != nil {
		opts = append(opts, login)
	}
	return opts
}

// producerOptions are for clients that send records. Which records share a record batch is decided by us: nothing
// is sent before the client is flushed, and its own limit lies far above ours.
func (c Config) producerOptions() []kgo.Opt {
	codec, _ := c.Compression.codec()
	return []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(largestMaxMessageBytes + 1<<20),
		kgo.MaxBufferedRecords(unboundedBuffer),
		kgo.ManualFlushing(),
		kgo.ProducerLinger(0),
		kgo.ProduceRequestTimeout(answerTimeout),
		kgo.UnknownTopicRetries(unknownRetries),
		kgo.StopProducerOnDataLossDetected(),
	}
}
