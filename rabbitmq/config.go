package rabbitmq

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Config says how to reach a server or cluster. Only Servers is required.
type Config struct {
	// Servers are addresses such as amqp://host:5672/vhost or amqps://user:password@host, tried in turn until one
	// takes the connection. Without a path the virtual host is "/". Parameters behind a question mark are refused.
	Servers []string

	// User and Password log in. Empty ones are those of the address, or guest.
	User, Password string

	// TLS is used for the addresses that begin with amqps, which may also do without it. It may carry a client
	// certificate. The server name is taken from the address unless it is set.
	TLS *tls.Config

	// Unroutable is what becomes of a message that reaches no queue. Empty means UnroutableRetry.
	Unroutable Unroutable

	// UnroutableBy says it for single exchanges, by name. The default exchange is "".
	UnroutableBy map[string]Unroutable

	// Declare are exchanges to declare, durable, with each new connection. One that the server refuses to declare
	// changes nothing for the others; Check tells.
	Declare []Exchange

	// MaxMessageBytes is the largest message to send: its payload and its encoded properties and headers. A larger
	// one is told as permanent before it is sent. It must be between 1 KiB and 512 MiB; 0 means 16 MiB, which is the
	// default of max_message_size, for payloads alone, in RabbitMQ 4.
	MaxMessageBytes int

	// Name is the name of the connection, as the server shows it. Empty means "postrider".
	Name string
}

// Exchange is one that should exist.
type Exchange struct {
	Name string
	Kind string // direct, fanout, topic, headers, or one that a plugin brings
}

// Unroutable is what becomes of a message for which the exchange finds no queue.
type Unroutable string

// The ways to treat an unroutable message.
const (
	UnroutableRetry Unroutable = "retry" // as a failure that may pass
	UnroutableDead  Unroutable = "dead"  // as one that can never be sent
	UnroutableAllow Unroutable = "allow" // as published: the exchange may drop it
)

const (
	defaultMaxMessageBytes  = 16 << 20
	smallestMaxMessageBytes = 1 << 10
	largestMaxMessageBytes  = 512 << 20
	defaultName             = "postrider"
)

// withDefaults fills what was left empty and reports every mistake together. No message shows an address, because it
// can hold a password.
func (c Config) withDefaults() (Config, error) {
	if c.Unroutable == "" {
		c.Unroutable = UnroutableRetry
	}
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = defaultMaxMessageBytes
	}
	if c.Name == "" {
		c.Name = defaultName
	}
	mistakes := c.addressMistakes()
	if err := c.Unroutable.check(); err != nil {
		mistakes = append(mistakes, err)
	}
	for exchange, u := range c.UnroutableBy {
		if err := u.check(); err != nil {
			mistakes = append(mistakes, fmt.Errorf("exchange %q: %w", exchange, err))
		}
	}
	for i, e := range c.Declare {
		if e.Name == "" || e.Kind == "" || len(e.Name) > longestName || len(e.Kind) > longestName {
			mistakes = append(mistakes, fmt.Errorf("exchange %d to declare needs a name and a kind of at most %d bytes", i+1, longestName))
		}
	}
	if c.MaxMessageBytes < smallestMaxMessageBytes || c.MaxMessageBytes > largestMaxMessageBytes {
		mistakes = append(mistakes, fmt.Errorf("largest message of %d bytes: it must be between %d and %d",
			c.MaxMessageBytes, smallestMaxMessageBytes, largestMaxMessageBytes))
	}
	return c, errors.Join(mistakes...)
}

func (c Config) addressMistakes() []error {
	var mistakes []error
	if len(c.Servers) == 0 {
		mistakes = append(mistakes, errors.New("no servers: name at least one as amqp://host:5672"))
	}
	secure := false
	for i, server := range c.Servers {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" || u.Scheme != "amqp" && u.Scheme != "amqps" {
			mistakes = append(mistakes, fmt.Errorf("server %d is not an address such as amqp://host:5672/vhost; special characters in it are written as %%40 and the like", i+1))
			continue
		}
		secure = secure || u.Scheme == "amqps"
		if u.RawQuery != "" {
			mistakes = append(mistakes, fmt.Errorf("server %d has parameters behind a question mark: use the settings of the sink", i+1))
		} else if _, err := amqp.ParseURI(server); err != nil {
			mistakes = append(mistakes, fmt.Errorf("server %d has a port or a virtual host that cannot be read", i+1))
		}
	}
	if c.TLS != nil && len(c.Servers) > 0 && !secure {
		mistakes = append(mistakes, errors.New("TLS is set, but no address begins with amqps"))
	}
	return mistakes
}

func (u Unroutable) check() error {
	if slices.Contains([]Unroutable{UnroutableRetry, UnroutableDead, UnroutableAllow}, u) {
		return nil
	}
	return fmt.Errorf("unroutable messages cannot be treated by %q: it must be %s, %s or %s", string(u), UnroutableRetry, UnroutableDead, UnroutableAllow)
}

// unroutable tells how the exchange's unroutable messages are treated.
func (c *Config) unroutable(exchange string) Unroutable {
	if u, set := c.UnroutableBy[exchange]; set {
		return u
	}
	return c.Unroutable
}
