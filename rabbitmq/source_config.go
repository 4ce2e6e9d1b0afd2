package rabbitmq

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
)

// SourceConfig says what a Source reads. Servers and Queues must be set.
type SourceConfig struct {
	Servers        []string    // as for a sink
	User, Password string      // as for a sink
	TLS            *tls.Config // as for a sink
	Name           string      // as for a sink

	// Queues are classic or quorum queues, which must exist, retry queues among them. Streams keep no acknowledgements and are
	// not read.
	Queues []string

	// Prefetch is how many messages of each queue may be in hand at once, at most 65,535. It should not be smaller than what
	// the consumer takes (consumer.Config.MaxInFlight), or that waits for nothing. Default 1,000.
	Prefetch int
}

const defaultPrefetch = 1000

func (c SourceConfig) withDefaults() (SourceConfig, Config, error) {
	connection, err := Config{Servers: c.Servers, User: c.User, Password: c.Password, TLS: c.TLS, Name: c.Name}.withDefaults()
	problems := []error{err}
	if len(c.Queues) == 0 {
		problems = append(problems, errors.New("Queues is missing"))
	}
	for i, queue := range c.Queues {
		if queue == "" || len(queue) > longestName {
			problems = append(problems, fmt.Errorf("Queues[%d] must have 1 to %d bytes", i, longestName))
		}
	}
	c.Prefetch = cmp.Or(c.Prefetch, defaultPrefetch)
	if c.Prefetch < 1 || c.Prefetch > math.MaxUint16 {
		problems = append(problems, fmt.Errorf("Prefetch is %d: it must be 1 to %d", c.Prefetch, math.MaxUint16))
	}
	return c, connection, errors.Join(problems...)
}
