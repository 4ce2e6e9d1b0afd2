package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	patience     = 5 * time.Second  // for a connection, and for an answer to a question
	writeTimeout = 10 * time.Second // for a write that the network or the server does not take
	heartbeat    = 10 * time.Second // the client gives a silent connection up after one and a half of it
)

// session is one connection. It is never repaired: when it ends, the next one begins from nothing.
type session struct {
	conn *amqp.Connection
	raw  net.Conn

	declared map[string]error // what became of Config.Declare, by exchange

	blocked atomic.Pointer[string] // why the server takes nothing at the moment; nil when it does
	taken   atomic.Int64           // the largest payload that the server did not call too large

	ended chan struct{} // closed with the connection, after cause is set
	cause error

	mu   sync.Mutex
	idle []*channel
}

// dial connects to one server. It returns within about twice patience.
func dial(c *Config, server string) (*session, error) {
	uri, err := amqp.ParseURI(server)
	if err != nil {
		return nil, errors.New("its address cannot be read") // Open has made sure of it; the reason can hold a password
	}
	if c.User != "" {
		uri.Username = c.User
	}
	if c.Password != "" {
		uri.Password = c.Password
	}
	s := &session{ended: make(chan struct{})}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(c.Name)
	s.conn, err = amqp.DialConfig(server, amqp.Config{
		SASL:            []amqp.Authentication{uri.PlainAuth()},
		Heartbeat:       heartbeat,
		Properties:      properties,
		TLSClientConfig: c.tls(),
		Dial:            s.dialTCP,
	})
	if err != nil {
		if s.raw != nil {
			_ = s.raw.Close()
		}
		return nil, fmt.Errorf("%s: %w", net.JoinHostPort(uri.Host, fmt.Sprint(uri.Port)), err)
	}
	go s.watch(s.conn.NotifyClose(make(chan *amqp.Error, 1)), s.conn.NotifyBlocked(make(chan amqp.Blocking, 1)))
	s.declare(c.Declare)
	return s, nil
}

// tls returns a configuration that the client may change.
func (c *Config) tls() *tls.Config {
	if c.TLS == nil {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return c.TLS.Clone()
}

// dialTCP bounds the handshakes as well: the client lifts the deadline after them.
func (s *session) dialTCP(network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	s.raw = conn
	return impatient{conn}, conn.SetDeadline(time.Now().Add(patience))
}

// impatient is a connection whose writes end. A server that is short of memory or disk stops to read, and the client
// would wait for ever.
type impatient struct{ net.Conn }

func (c impatient) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// watch keeps what the server says of the connection, until it ends.
func (s *session) watch(closed <-chan *amqp.Error, blocking <-chan amqp.Blocking) {
	defer close(s.ended)
	for {
		select {
		case b, open := <-blocking:
			switch {
			case !open:
				blocking = nil
			case b.Active:
				s.blocked.Store(&b.Reason)
			default:
				s.blocked.Store(nil)
			}
		case reason := <-closed:
			s.cause = errors.New("the connection has ended")
			if reason != nil {
				s.cause = fmt.Errorf("the connection has ended: %w", reason)
			}
			return
		}
	}
}

// state tells why nothing can be sent at the moment, nil when it can.
func (s *session) state() error {
	if s.conn.IsClosed() {
		<-s.ended
		return s.cause
	}
	if reason := s.blocked.Load(); reason != nil {
		return fmt.Errorf("the server blocks publishers: %s", *reason)
	}
	return nil
}

// learn keeps the size of a payload that the server did not call too large.
func (s *session) learn(size int64) {
	for known := s.taken.Load(); size > known && !s.taken.CompareAndSwap(known, size); {
		known = s.taken.Load()
	}
}

// kill ends the connection without a word, and with it everything that waits for the server.
func (s *session) kill() { _ = s.raw.Close() }

// bounded ends the connection when the server does not answer a question in time. The function it returns says that
// it has.
func (s *session) bounded() (answered func() bool) {
	return time.AfterFunc(patience, s.kill).Stop
}

// declare declares exchanges, each on a channel of its own, because a refusal closes that.
func (s *session) declare(exchanges []Exchange) {
	s.declared = make(map[string]error, len(exchanges))
	for _, e := range exchanges {
		s.declared[e.Name] = s.ask(func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(e.Name, e.Kind, true, false, false, false, nil)
		})
	}
}

// ask asks the server something on a channel of its own.
func (s *session) ask(question func(*amqp.Channel) error) error {
	defer s.bounded()()
	ch, err := s.conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	return question(ch)
}

// close ends the connection in good order, if the server answers.
func (s *session) close() {
	_ = s.conn.CloseDeadline(time.Now().Add(patience)) // everything that was sent has its outcome by now
	s.kill()
	<-s.ended
}

// channel carries at most channelWindow messages at a time, and belongs to one bundle at a time.
type channel struct {
	*amqp.Channel
	returns chan amqp.Return // has room for all of them, so that the connection never waits
	closed  chan *amqp.Error
}

// take returns a channel in confirm mode.
func (s *session) take() (*channel, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		ch := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return ch, nil
	}
	s.mu.Unlock()
	defer s.bounded()()
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	return &channel{
		Channel: ch,
		returns: ch.NotifyReturn(make(chan amqp.Return, channelWindow)),
		closed:  ch.NotifyClose(make(chan *amqp.Error, 1)),
	}, nil
}

// give takes a channel back on which nothing is on its way.
func (s *session) give(ch *channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, ch)
}

// drop gives a channel up on which something still is. The goroutine ends when the server answers, or with the
// connection.
func (s *session) drop(ch *channel) {
	go func() { _ = ch.Close() }()
}
