// Package embedded runs a JetStream server inside the process, with its data in a folder.
//
// It is for one process: development, demonstrations, tests, and applications that need no broker of their own. It is
// a package of its own so that who connects to a server does not link one.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Config says where the server keeps its data and what it takes. Dir is required.
type Config struct {
	// Dir holds the data. It is created when it is missing. One server at a time may use it.
	Dir string

	// SyncEvery is how often data is synced to disk. Zero syncs before each acknowledgement, which is safe and takes
	// hundreds of events a second. Otherwise a crash of the machine, but not of the process, can lose what was
	// acknowledged within that time.
	SyncEvery time.Duration

	// Listen is an address for clients outside the process, as host:port. Empty opens no port.
	Listen string

	// Stream is a stream that is created unless it exists, with file storage. Empty creates none.
	Stream string

	// Subjects are what Stream takes, such as "orders.>". They are set anew when the stream exists.
	Subjects []string
}

// startTimeout is for the server to recover its data and serve.
const startTimeout = 30 * time.Second

// duplicateWindow is how long the stream recognizes an event that is published again.
const duplicateWindow = 10 * time.Minute

// Server is a running server. It can be given to nats.InProcessServer and to the sink's Config.InProcess.
type Server struct{ server *server.Server }

// Start starts a server and returns when it serves and the stream exists. The caller stops the server.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.Dir == "" {
		return nil, errors.New("embedded nats server: no folder for its data")
	}
	options := &server.Options{
		ServerName:   "postrider",
		JetStream:    true,
		StoreDir:     c.Dir,
		SyncAlways:   c.SyncEvery == 0,
		SyncInterval: c.SyncEvery,
		NoSigs:       true,
		NoLog:        true,
		DontListen:   c.Listen == "",
	}
	if c.Listen != "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return nil, fmt.Errorf("embedded nats server: %w", err)
		}
		if options.Port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("embedded nats server: port %q is not a number", port)
		}
		options.Host = host
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("embedded nats server: %w", err)
	}
	s.Start()
	running := &Server{s}
	if !s.ReadyForConnections(startTimeout) || !s.JetStreamEnabled() {
		running.Stop()
		return nil, fmt.Errorf("embedded nats server: does not serve within %s; is %s in use, or not writable?", startTimeout, c.Dir)
	}
	if err := running.ensureStream(ctx, c); err != nil {
		running.Stop()
		return nil, fmt.Errorf("embedded nats server: stream %s: %w", c.Stream, err)
	}
	return running, nil
}

func (s *Server) ensureStream(ctx context.Context, c Config) error {
	if c.Stream == "" {
		return nil
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name:       c.Stream,
		Subjects:   c.Subjects,
		Storage:    jetstream.FileStorage,
		Duplicates: duplicateWindow,
	})
	return err
}

// InProcessConn opens a connection to the server inside the process.
func (s *Server) InProcessConn() (net.Conn, error) { return s.server.InProcessConn() }

// URL is the address for clients outside the process; empty when the server does not listen.
func (s *Server) URL() string {
	if addr := s.server.Addr(); addr != nil {
		return "nats://" + addr.String()
	}
	return ""
}

// Stop ends the server in good order and returns when it has ended. Its data stays.
func (s *Server) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
