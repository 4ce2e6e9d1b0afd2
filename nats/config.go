package nats

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Config says how to reach a server or cluster. Servers or InProcess is required.
type Config struct {
	// Servers are addresses to start from, such as nats://host:4222 or tls://host:4222.
	Servers []string

	// InProcess connects to a server in this process instead; *embedded.Server is one.
	InProcess nats.InProcessConnProvider

	// User and Password, Token, or CredsFile (a file with a user's JWT and seed) log in. At most one of the three
	// ways may be set.
	User, Password string
	Token          string
	CredsFile      string

	// TLS encrypts the connection when it is set. It may carry a client certificate.
	TLS *tls.Config

	// Stream is the stream that must store the messages. A message that another stream takes is refused. Empty
	// accepts every stream.
	Stream string

	// Name is the name of the connection, as the server shows it. Empty means "postrider".
	Name string
}

const (
	defaultName   = "postrider"
	reconnectWait = 500 * time.Millisecond
	pingInterval  = 10 * time.Second // two unanswered ones end a connection
)

// withDefaults fills what was left empty and reports every mistake together. No message shows an address, because it
// can hold a password.
func (c Config) withDefaults() (Config, error) {
	if c.Name == "" {
		c.Name = defaultName
	}
	var mistakes []error
	if (len(c.Servers) == 0) == (c.InProcess == nil) {
		mistakes = append(mistakes, errors.New("name either servers or a server in this process"))
	}
	for i, server := range c.Servers {
		if u, err := url.Parse(server); err != nil || u.Host == "" {
			mistakes = append(mistakes, fmt.Errorf("server %d is not an address such as nats://host:4222", i+1))
		}
	}
	ways := 0
	for _, set := range []bool{c.User != "" || c.Password != "", c.Token != "", c.CredsFile != ""} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		mistakes = append(mistakes, errors.New("log in by user and password, by token or by credentials file: only one of them"))
	}
	return c, errors.Join(mistakes...)
}

// options connect in the background and never give up. Nothing is kept for later while there is no connection: what
// cannot be sent now is told as unavailable.
func (c Config) options() []nats.Option {
	opts := []nats.Option{
		nats.Name(c.Name),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
	}
	if c.InProcess != nil {
		opts = append(opts, nats.InProcessServer(c.InProcess))
	}
	if c.User != "" || c.Password != "" {
		opts = append(opts, nats.UserInfo(c.User, c.Password))
	}
	if c.Token != "" {
		opts = append(opts, nats.Token(c.Token))
	}
	if c.CredsFile != "" {
		opts = append(opts, nats.UserCredentials(c.CredsFile))
	}
	if c.TLS != nil {
		opts = append(opts, nats.Secure(c.TLS))
	}
	return opts
}

func (c Config) url() string { return strings.Join(c.Servers, ",") }
