package nats

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/internal/intake"
)

// Source reads a stream by durable consumers. It implements consumer.Source. The retry topics of one delay are a lane, everything else is
// another one, and no lane is ever revoked. JetStream hands out messages one by one; the package comment tells how an order of keys is had.
//
// As long as the source lives, the server is told again and again that what it has is in progress. A connection that is
// lost and comes back changes nothing; when it stays away for longer than a consumer's AckWait, the server gives to others
// what the source has. What is finished is acknowledged in the background, and again until the server has answered.
type Source struct {
	config  SourceConfig
	conn    *nats.Conn
	js      jetstream.JetStream
	answers string // where the server answers acknowledgements: this and the number of the loan
	end     context.CancelFunc
	running sync.WaitGroup
	wake    chan struct{} // holds a token when there is something to tell the server
	readers []*reader
	intake  *intake.Intake[*loan]

	mu       sync.Mutex
	last     uint64 // number of a loan
	finished map[uint64]*loan
	returned []*loan // and not told
}

var _ consumer.Source = (*Source)(nil)

// OpenSource checks the configuration and begins to read in the background: a server that is not reachable or refuses the
// login, a stream that is missing, and a consumer that cannot be used show as errors of Fetch. The caller closes the source. The
// error reports every mistake of the configuration.
func OpenSource(c SourceConfig) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("nats source: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	s := &Source{config: c, end: end, wake: make(chan struct{}, 1), finished: make(map[uint64]*loan)}
	s.intake = intake.New(&s.mu, func(l *loan) string { return l.lane }, (*loan).delivery)
	for _, d := range c.durables() {
		s.readers = append(s.readers, &reader{source: s, durable: d, ackWait: c.AckWait, shelf: s.intake.NewShelf(), held: make(map[place]*loan)})
	}
	if err := s.connect(); err != nil {
		end()
		return nil, fmt.Errorf("nats source: %w", err)
	}
	for _, r := range s.readers {
		s.running.Go(func() { r.run(ctx) })
	}
	s.running.Go(func() { s.keep(ctx) })
	return s, nil
}

func (s *Source) connect() (err error) {
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // Fetch tells
	if s.conn, err = nats.Connect(s.config.shared().url(), append(s.config.shared().options(), quiet)...); err != nil {
		return err
	}
	s.answers = s.conn.NewInbox() + "."
	_, err = s.conn.Subscribe(s.answers+"*", s.answered)
	if err == nil {
		s.js, err = jetstream.New(s.conn)
	}
	if err != nil {
		s.conn.Close()
	}
	return err
}

// Fetch implements consumer.Source. An error is that of one or several consumers of the stream, and told once each time that reading
// fails; meanwhile the others go on.
func (s *Source) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	return s.intake.Fetch(ctx, limit)
}

// Finish implements consumer.Source.
func (s *Source) Finish(deliveries ...*consumer.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		if l := d.Ref.(*loan); l.reader.held[l.place] == l && s.finished[l.number] == nil {
			s.finished[l.number] = l
		}
	}
	intake.Signal(s.wake)
}

// Return implements consumer.Source. The server counts it as a delivery.
func (s *Source) Return(deliveries ...*consumer.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		if l := d.Ref.(*loan); l.reader.held[l.place] == l && s.finished[l.number] == nil {
			l.drop()
			s.returned = append(s.returned, l)
		}
	}
	intake.Signal(s.wake)
}

// Pause implements consumer.Source. The server is not asked for more by the lane's consumer, if it has one; what it has given already, or
// gives by a question under way, waits in the source.
func (s *Source) Pause(lane string) { s.intake.Pause(lane) }

// Resume implements consumer.Source.
func (s *Source) Resume(lane string) { s.intake.Resume(lane) }

// Flush implements consumer.Source: it waits for the server's answers.
func (s *Source) Flush(ctx context.Context) error {
	for _, over := range s.unanswered() {
		select {
		case <-over:
		case <-ctx.Done():
			return fmt.Errorf("nats: acknowledge what is finished: %w", ctx.Err())
		}
	}
	return nil
}

// unanswered returns a channel for each loan that is finished now, which is closed when it is settled.
func (s *Source) unanswered() (all []chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.finished {
		if l.over == nil {
			l.over = make(chan struct{})
		}
		all = append(all, l.over)
	}
	return all
}

// closeTimeout bounds the last acknowledgements, and after them the last words to the server.
const closeTimeout = 5 * time.Second

// Close implements consumer.Source. It waits a few seconds for acknowledgements, and returns an error when that was not enough.
// Others get what the source has half a second later, and what is on its way to it when AckWait is over.
func (s *Source) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.Flush(ctx)
	s.end()
	s.running.Wait()
	if s.conn.IsConnected() {
		s.giveUpHeld()
		_ = s.conn.FlushTimeout(closeTimeout) // what does not arrive comes again after AckWait
	}
	s.conn.Close()
	if err != nil {
		return fmt.Errorf("%w; what is not acknowledged comes again", err)
	}
	return nil
}

// goodbye is how long the server waits before it gives to others what a source has that closes: until it has seen that nobody
// listens to the source's last question, which it could answer with the same messages.
const goodbye = 500 * time.Millisecond

// giveUpHeld lets others have what the source has.
func (s *Source) giveUpHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []*loan
	for _, r := range s.readers {
		held = slices.AppendSeq(held, maps.Values(r.held))
	}
	inOrder(held)
	for _, l := range held {
		if s.finished[l.number] == nil {
			_ = l.message.NakWithDelay(goodbye) // if it does not arrive, the message comes again after AckWait
		}
	}
}
