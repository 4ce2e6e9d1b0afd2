package demo

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/nats/embedded"
)

const streamName = "EVENTS"

//go:embed schema.sql
var schema string

// stage is what the demo plays on: the database, the JetStream server, and a configuration that leads to both.
type stage struct {
	dir    string
	config *config.Config
	outbox *wiring.Outbox
	inbox  *inbox.Inbox
	server *embedded.Server
	conn   *natsgo.Conn
	stream jetstream.Stream
}

func (s *stage) databaseFile() string { return filepath.Join(s.dir, "orders.db") }
func (s *stage) configFile() string   { return filepath.Join(s.dir, "postrider.yaml") }

// build makes the stage in dir, or takes up what an earlier demo left there.
func build(ctx context.Context, dir string) (*stage, error) {
	s := &stage{dir: dir}
	for _, step := range []func(context.Context) error{s.startServer, s.configure, s.createTables} {
		if err := step(ctx); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *stage) close() {
	if s.server != nil {
		defer s.server.Stop()
	}
	if s.conn != nil {
		defer s.conn.Close()
	}
	if s.outbox != nil {
		defer s.outbox.Close()
	}
}

func (s *stage) startServer(ctx context.Context) (err error) {
	s.server, err = embedded.Start(ctx, embedded.Config{
		Dir:      filepath.Join(s.dir, "jetstream"),
		Listen:   "127.0.0.1:-1", // any free port
		Stream:   streamName,
		Subjects: []string{"events.>"},
	})
	if err != nil {
		return err
	}
	if s.conn, err = natsgo.Connect("", natsgo.InProcessServer(s.server)); err != nil {
		return fmt.Errorf("connect to JetStream: %w", err)
	}
	js, err := jetstream.New(s.conn)
	if err != nil {
		return fmt.Errorf("connect to JetStream: %w", err)
	}
	s.stream, err = js.Stream(ctx, streamName)
	return err
}

// configure writes the configuration that the demo's relay runs with and that people can use beside it.
func (s *stage) configure(context.Context) error {
	text := fmt.Sprintf(`# Written by postrider demo; valid as long as the demo runs.
outbox: {dsn: %s}
relay:
  name: demo
  lease: 15s
  publish_timeout: 5s
  poll: {min: 2ms, max: 50ms}
sinks:
  stream: {type: nats, url: %s, stream: %s}
routes:
  - {sink: stream, topic: "events.{aggregate_type}"}
admin: {listen: ""}
`, quoteYAML("sqlite:"+s.databaseFile()), quoteYAML(s.server.URL()), streamName)
	if err := os.WriteFile(s.configFile(), []byte(text), 0o600); err != nil {
		return err
	}
	var err error
	s.config, err = config.Load(s.configFile())
	return err
}

func quoteYAML(text string) string { return strconv.Quote(strings.ReplaceAll(text, "$", "$$")) }

func (s *stage) createTables(ctx context.Context) (err error) {
	if s.outbox, err = wiring.CreateOutbox(s.config); err != nil {
		return err
	}
	// Application and consumer take turns on one connection, which is fairer than SQLite's lock.
	s.outbox.DB.SetMaxOpenConns(1)
	if err := s.outbox.Init(ctx); err != nil {
		return err
	}
	if s.inbox, err = inbox.New(inbox.Config{Dialect: s.outbox.Dialect(), Consumer: consumerName}); err != nil {
		return err
	}
	if err := s.inbox.Init(ctx, s.outbox.DB); err != nil {
		return err
	}
	if _, err = s.outbox.DB.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("create the application's tables: %w", err)
	}
	return nil
}

func (s *stage) application() (*application, error) {
	outbox, err := postrider.New(postrider.Config{Dialect: s.outbox.Dialect(), Table: s.config.Outbox.Table})
	if err != nil {
		return nil, err
	}
	return &application{db: s.outbox.DB, outbox: outbox, run: strings.ToLower(rand.Text()[:6])}, nil
}

func (s *stage) consumer(log *slog.Logger) *consumer {
	return &consumer{db: s.outbox.DB, inbox: s.inbox, log: log}
}

// awaitApplied returns when every committed event was applied, or nothing has happened for a while: then the ledger
// shows what is missing. It returns an error when the relay has ended or ctx ends.
func (s *stage) awaitApplied(ctx context.Context, relay *relayRun) error {
	waiting, since := -1, time.Now()
	for {
		var left int
		err := s.outbox.DB.QueryRowContext(ctx, `SELECT count(*) FROM order_changes
			WHERE event_id NOT IN (SELECT event_id FROM shipments)`).Scan(&left)
		switch {
		case err != nil:
			return err
		case left == 0:
			return nil
		case left != waiting:
			waiting, since = left, time.Now()
		case time.Since(since) > patience:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-relay.ended:
			return errors.New("the relay has ended")
		case <-time.After(progressPause):
		}
	}
}
