package redis

import (
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// SourceConfig says what a Source reads. Addresses, Streams and Group must be set.
type SourceConfig struct {
	Addresses                      []string    // as for a sink
	Cluster                        bool        // as for a sink
	Master                         string      // as for a sink
	User, Password                 string      // as for a sink
	SentinelUser, SentinelPassword string      // as for a sink
	DB                             int         // as for a sink
	TLS                            *tls.Config // as for a sink
	Name                           string      // as for a sink

	// Streams are the keys of the streams to read, retry topics among them. One that does not exist is created.
	Streams []string

	// Group is the consumer group: its members share the entries. Where it does not exist it is created, and begins at
	// the start of the stream.
	Group string

	// Consumer is the name of this member, which no other that lives may have. A process that comes back under its name gets at
	// once, and before anything else, what it had when it ended; else that comes after ClaimAfter. Empty means a name that
	// nobody else has: the host's and a random part.
	Consumer string

	// ClaimAfter is how long the entries of a member that has died wait before others take them over. Choose it longer
	// than the connection may be away: what a member has in hand meanwhile is then handled twice. All members must have the
	// same. It is at least a second; 0 means 30 seconds.
	ClaimAfter time.Duration

	// Prefetch is how many entries of each stream the source reads ahead at most, those in hand included; as many may come on
	// top by takeovers. What one member has, no other gets: make it a few times what is handled at a time. 0 means 500.
	Prefetch int
}

const (
	defaultClaimAfter  = 30 * time.Second
	shortestClaimAfter = time.Second
	defaultPrefetch    = 500
)

// withDefaults fills what was left empty and reports every mistake together.
func (c SourceConfig) withDefaults() (SourceConfig, error) {
	shared, err := c.shared().withDefaults()
	mistakes := []error{err}
	c.Name = shared.Name
	c.Consumer = cmp.Or(c.Consumer, newConsumer())
	c.ClaimAfter = cmp.Or(c.ClaimAfter, defaultClaimAfter)
	c.Prefetch = cmp.Or(c.Prefetch, defaultPrefetch)
	if len(c.Streams) == 0 {
		mistakes = append(mistakes, errors.New("no streams: name at least one"))
	}
	seen := make(map[string]bool)
	for i, stream := range c.Streams {
		if stream == "" {
			mistakes = append(mistakes, fmt.Errorf("stream %d has no name", i+1))
		} else if seen[stream] {
			mistakes = append(mistakes, fmt.Errorf("stream %q is named twice", stream))
		}
		seen[stream] = true
	}
	if c.Group == "" {
		mistakes = append(mistakes, errors.New("no group"))
	}
	if c.ClaimAfter < shortestClaimAfter {
		mistakes = append(mistakes, fmt.Errorf("takeover after %s: it must be at least %s", c.ClaimAfter, shortestClaimAfter))
	}
	if c.Prefetch < 1 {
		mistakes = append(mistakes, fmt.Errorf("prefetch of %d: it must be at least 1", c.Prefetch))
	}
	return c, errors.Join(mistakes...)
}

func newConsumer() string {
	host, err := os.Hostname()
	if err != nil {
		host = defaultName
	}
	return host + "-" + strings.ToLower(rand.Text()[:12])
}

// shared is what a source and a sink have in common.
func (c SourceConfig) shared() Config {
	return Config{
		Addresses: c.Addresses, Cluster: c.Cluster, Master: c.Master, User: c.User, Password: c.Password,
		SentinelUser: c.SentinelUser, SentinelPassword: c.SentinelPassword, DB: c.DB, TLS: c.TLS, Name: c.Name,
	}
}
