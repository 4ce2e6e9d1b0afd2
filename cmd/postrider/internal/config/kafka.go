package config

// Kafka is a sink of type kafka.
type Kafka struct {
	// Brokers has at least one host:port.
	Brokers []string
	// TLS is nil for plain connections.
	TLS *TLS
	// SASL is nil when nobody logs in.
	SASL *SASL
	// Compression is that of the batches sent. The default is none.
	Compression Compression
	// MaxMessageBytes is the largest message that the brokers take, 1 KiB to
	// 64 MiB. The default is 1048588, which is also that of Kafka.
	MaxMessageBytes int
}

// SASL is a login to Kafka; all of it is set.
type SASL struct {
	Mechanism Mechanism
	Username  string
	Password  Secret
}

// Mechanism is a SASL mechanism.
type Mechanism string

// The SASL mechanisms.
const (
	SASLPlain       Mechanism = "plain"
	SASLScramSHA256 Mechanism = "scram-sha-256"
	SASLScramSHA512 Mechanism = "scram-sha-512"
)

// Compression is how a batch is compressed.
type Compression string

// The compressions.
const (
	CompressionNone   Compression = "none"
	CompressionGzip   Compression = "gzip"
	CompressionSnappy Compression = "snappy"
	CompressionLZ4    Compression = "lz4"
	CompressionZstd   Compression = "zstd"
)

func readKafka(o *object) *Kafka {
	kafka := &Kafka{Compression: CompressionNone, MaxMessageBytes: 1_048_588}
	o.require("brokers", "write brokers: [host:9092]")
	if strs(o, "brokers", &kafka.Brokers) {
		for _, broker := range kafka.Brokers {
			if _, port, ok := splitHostPort(broker); !ok || port == 0 {
				o.problem("brokers", "an element is not host:port", "write host:9092, without a scheme")
				break
			}
		}
	}
	kafka.TLS = readTLS(o.field("tls"))
	if sasl := o.field("sasl"); sasl.present() {
		kafka.SASL = readSASL(sasl)
	}
	choice(o, "compression", &kafka.Compression,
		CompressionNone, CompressionGzip, CompressionSnappy, CompressionLZ4, CompressionZstd)
	size(o, "max_message_bytes", &kafka.MaxMessageBytes, 1<<10, 64<<20)
	return kafka
}

func readSASL(v value) *SASL {
	var sasl SASL
	v.object(func(o *object) {
		o.require("mechanism", "write plain, scram-sha-256 or scram-sha-512")
		choice(o, "mechanism", &sasl.Mechanism, SASLPlain, SASLScramSHA256, SASLScramSHA512)
		o.require("username", "name who logs in")
		str(o, "username", &sasl.Username)
		o.require("password", "write password: ${KAFKA_PASSWORD}")
		str(o, "password", &sasl.Password)
	})
	return &sasl
}
