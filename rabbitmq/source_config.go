package rabbitmq

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
)

// SourceConfig says what a Source reads. Servers and Queues must be set.
type SourceConfig struct {
	Servers        []string    // as for a sink
	User, Password string      // as for a sink
	TLS            *tls.Config // as for a sink
	Name           string      // as for a sink

	// Queues are the names of the queues to read, classic or quorum. They must exist: a source declares nothing, because it
	// cannot know what they should be like.
	Queues []string

	// Prefetch is how many messages of each queue the source has at most that are not finished, whether they were fetched or
	// wait to be. What one member has, no other gets: make it a few times what is handled at a time. It must be between 1 and
	// 65535; 0 means 500.
	Prefetch int
}

const (
	defaultPrefetch = 500
	largestPrefetch = 65535
)

// withDefaults fills what was left empty and reports every mistake together.
func (c SourceConfig) withDefaults() (SourceConfig, error) {
	shared, err := c.shared().withDefaults()
	mistakes := []error{err}
	c.Name = shared.Name
	c.Prefetch = cmp.Or(c.Prefetch, defaultPrefetch)
	if len(c.Queues) == 0 {
		mistakes = append(mistakes, errors.New("no queues: name at least one"))
	}
	seen := make(map[string]bool)
	for i, queue := range c.Queues {
		if queue == "" || len(queue) > longestName {
			mistakes = append(mistakes, fmt.Errorf("queue %d needs a name of at most %d bytes", i+1, longestName))
		} else if seen[queue] {
			mistakes = append(mistakes, fmt.Errorf("queue %q is named twice", queue))
		}
		seen[queue] = true
	}
	if c.Prefetch < 1 || c.Prefetch > largestPrefetch {
		mistakes = append(mistakes, fmt.Errorf("prefetch of %d: it must be between 1 and %d", c.Prefetch, largestPrefetch))
	}
	return c, errors.Join(mistakes...)
}

// shared is what a source and a sink have in common.
func (c SourceConfig) shared() Config {
	return Config{Servers: c.Servers, User: c.User, Password: c.Password, TLS: c.TLS, Name: c.Name}
}
