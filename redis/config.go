package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config says how to reach a server, the master behind sentinels, or a cluster. Only Addresses is required.
type Config struct {
	// Addresses are host:port: of the server, of sentinels when Master is set, or of nodes of a cluster to start from
	// when Cluster is.
	Addresses []string

	// Cluster says that the server is a cluster.
	Cluster bool

	// Master is the name under which sentinels know the server. Empty means that there are no sentinels.
	Master string

	// User and Password log in. Without a user it is the server's default one.
	User, Password string

	// SentinelUser and SentinelPassword log in to the sentinels.
	SentinelUser, SentinelPassword string

	// DB is the number of the database. A cluster has only 0.
	DB int

	// TLS encrypts the connections when it is set, those to sentinels too. It may carry a client certificate.
	TLS *tls.Config

	// MaxMessageBytes is the largest message to send: the names and values of the entry's fields together. A larger
	// one is told as permanent before it is sent. It must be between 1 KiB and 512 MiB; 0 means 64 MiB. The server's
	// proto-max-bulk-len limits each single value besides.
	MaxMessageBytes int

	// IdempotentFor is how long an event that is sent again is recognized and not stored again. Choose it longer
	// than the outages you expect; each event takes up to 220 bytes of the server's memory for so long. 0 switches it
	// off: then an event whose answer is lost may be stored twice. It is at least a minute.
	IdempotentFor time.Duration

	// Replicas is how many replicas must have an event before it is published. 0 asks none. It needs IdempotentFor.
	Replicas int

	// Fsync says that an event must be on disk before it is published, at the master and at as many replicas as
	// Replicas says. It needs IdempotentFor, and appendonly at the server. With appendfsync everysec each batch takes up to
	// a second.
	Fsync bool

	// Trim says how streams are trimmed to MaxEntries. Empty means TrimNone.
	Trim Trim

	// MaxEntries is how many of a stream's newest entries are kept at least. It needs a Trim other than TrimNone.
	MaxEntries int64

	// Name is the name of the connections, as the server shows it. Empty means "postrider".
	Name string

	// Logger is told when a stream cannot be trimmed. nil discards.
	Logger *slog.Logger
}

// Trim is a way to keep streams from growing.
type Trim string

// The ways to trim.
const (
	TrimNone   Trim = "none"   // never
	TrimSafe   Trim = "safe"   // never what a consumer group has still to read or to acknowledge
	TrimAlways Trim = "always" // also what nobody has read
)

const (
	defaultName             = "postrider"
	defaultMaxMessageBytes  = 64 << 20
	smallestMaxMessageBytes = 1 << 10
	largestMaxMessageBytes  = 512 << 20
	shortestIdempotentFor   = time.Minute

	patience      = 3 * time.Second  // for a connection, and for questions to the server
	answerTimeout = 10 * time.Second // for a pipeline, the connection included
	waitTimeout   = 5 * time.Second  // for replicas and disks, as the server counts it
)

// withDefaults fills what was left empty and reports every mistake together. No message shows an address, because
// somebody may have put a password into it.
func (c Config) withDefaults() (Config, error) {
	if c.Name == "" {
		c.Name = defaultName
	}
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = defaultMaxMessageBytes
	}
	if c.Trim == "" {
		c.Trim = TrimNone
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, errors.Join(append(append(c.placeMistakes(), c.durabilityMistakes()...), c.limitMistakes()...)...)
}

func (c Config) placeMistakes() []error {
	var mistakes []error
	if len(c.Addresses) == 0 {
		mistakes = append(mistakes, errors.New("no addresses: name at least one as host:port"))
	}
	for i, address := range c.Addresses {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			mistakes = append(mistakes, fmt.Errorf("address %d is not host:port", i+1))
		}
	}
	switch {
	case c.Cluster && c.Master != "":
		mistakes = append(mistakes, errors.New("a cluster has no sentinels: set cluster or master, not both"))
	case len(c.Addresses) > 1 && !c.Cluster && c.Master == "":
		mistakes = append(mistakes, errors.New("several addresses: say that they are a cluster, or sentinels with the name of their master"))
	}
	if c.DB < 0 || c.DB > 0 && c.Cluster {
		mistakes = append(mistakes, fmt.Errorf("database %d: it must not be negative, and a cluster has only 0", c.DB))
	}
	if c.User != "" && c.Password == "" || c.SentinelUser != "" && c.SentinelPassword == "" {
		mistakes = append(mistakes, errors.New("a user without a password"))
	}
	if c.Master == "" && c.SentinelPassword != "" {
		mistakes = append(mistakes, errors.New("a login for sentinels, but no master: name it as the sentinels do"))
	}
	return mistakes
}

func (c Config) durabilityMistakes() []error {
	var mistakes []error
	if c.IdempotentFor != 0 && c.IdempotentFor < shortestIdempotentFor {
		mistakes = append(mistakes, fmt.Errorf("idempotent for %s: it must be 0 or at least %s", c.IdempotentFor, shortestIdempotentFor))
	}
	if c.Replicas < 0 {
		mistakes = append(mistakes, fmt.Errorf("%d replicas: it must not be negative", c.Replicas))
	}
	if c.waits() && c.IdempotentFor == 0 {
		mistakes = append(mistakes, errors.New("replicas and fsync need the idempotent mode, because what was not confirmed in time is sent again"))
	}
	return mistakes
}

func (c Config) limitMistakes() []error {
	var mistakes []error
	if c.MaxMessageBytes < smallestMaxMessageBytes || c.MaxMessageBytes > largestMaxMessageBytes {
		mistakes = append(mistakes, fmt.Errorf("largest message of %d bytes: it must be between %d and %d",
			c.MaxMessageBytes, smallestMaxMessageBytes, largestMaxMessageBytes))
	}
	switch c.Trim {
	case TrimNone:
		if c.MaxEntries != 0 {
			mistakes = append(mistakes, fmt.Errorf("%d entries to keep, but nothing trims: set trim to safe or always", c.MaxEntries))
		}
	case TrimSafe, TrimAlways:
		if c.MaxEntries <= 0 {
			mistakes = append(mistakes, fmt.Errorf("trim %s needs the number of entries to keep, which is %d", c.Trim, c.MaxEntries))
		}
	default:
		mistakes = append(mistakes, fmt.Errorf("unknown trim %q: it must be none, safe or always", string(c.Trim)))
	}
	return mistakes
}

// waits tells whether the answer to a command is not enough.
func (c Config) waits() bool { return c.Replicas > 0 || c.Fsync }

// client never sends a command again by itself, which could write it twice.
func (c Config) client() redis.UniversalClient { return redis.NewUniversalClient(c.options()) }

func (c Config) options() *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs: c.Addresses, IsClusterMode: c.Cluster, MasterName: c.Master, DB: c.DB,
		Username: c.User, Password: c.Password, SentinelUsername: c.SentinelUser, SentinelPassword: c.SentinelPassword,
		TLSConfig: c.TLS, ClientName: c.Name, Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, DialerRetries: 1, DialTimeout: patience, PoolTimeout: patience,
		ReadTimeout: answerTimeout, WriteTimeout: answerTimeout, ContextTimeoutEnabled: true,
		PipelinePoolSize: -1, // one pool for everything
	}
}
