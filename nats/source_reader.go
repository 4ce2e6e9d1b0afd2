package nats

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/internal/intake"
)

const (
	longestPull  = 30 * time.Second // then the server is asked again
	pullSilence  = 2 * time.Second  // a server that waits for messages says so that often
	shortestWait = 100 * time.Millisecond
	longestWait  = 5 * time.Second
)

// reader reads by one consumer of the stream.
type reader struct {
	source *Source
	durable
	shelf *intake.Shelf[*loan]

	created time.Time // of the stream; run's own
	known   bool      // the consumer was there; run's own

	// The source's lock guards what follows.
	ackWait time.Duration
	held    map[place]*loan // everything that is not settled
}

// run reads, and after a failure again.
func (r *reader) run(ctx context.Context) {
	wait := shortestWait
	for {
		begun := time.Now()
		err := r.read(ctx)
		if ctx.Err() != nil {
			return
		}
		r.fail(err)
		if time.Since(begun) > longestWait {
			wait = shortestWait
		}
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, longestWait)
	}
}

// fail keeps an error for Fetch. The server may have said apart from its answer that we may not ask.
func (r *reader) fail(err error) {
	if last := r.source.conn.LastError(); errors.Is(last, nats.ErrPermissionViolation) {
		err = fmt.Errorf("%w: %w", err, last)
	}
	r.shelf.Fail(err)
}

// read reads until it cannot any more, and says why.
func (r *reader) read(ctx context.Context) error {
	if err := connected(ctx, r.source.conn); err != nil {
		return err
	}
	c, err := r.find(ctx)
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	for {
		room, err := r.room(ctx)
		if err != nil {
			return err
		}
		if err := r.pull(ctx, c, room); err != nil {
			return fmt.Errorf("nats: read stream %s by consumer %s: %w", r.source.config.Stream, r.name, err)
		}
	}
}

// find finds the consumer, or creates it unless it was there before.
func (r *reader) find(ctx context.Context) (jetstream.Consumer, error) {
	s := r.source
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stream, err := s.js.Stream(ctx, s.config.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("stream %s does not exist: create it", s.config.Stream)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for stream %s: %w", s.config.Stream, err)
	}
	if created := stream.CachedInfo().Created; !created.Equal(r.created) {
		r.forget()
		r.created, r.known = created, false
	}
	c, err := stream.Consumer(ctx, r.name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		if r.known {
			return nil, fmt.Errorf("consumer %s of stream %s was deleted, and its position is lost: create it from where it is to go on; "+
				"a source that is opened anew creates it from the start of the stream", r.name, s.config.Stream)
		}
		c, err = stream.CreateConsumer(ctx, s.config.wanted(r.durable))
	}
	if err != nil {
		return nil, fmt.Errorf("consumer %s of stream %s: %w", r.name, s.config.Stream, err)
	}
	existing := c.CachedInfo().Config
	if err := s.config.check(r.durable, existing); err != nil {
		return nil, err
	}
	r.known = true
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ackWait = ackWait(existing)
	return c, nil
}

// room waits until the source may have more messages, and returns how many. As long as there is something to fetch it waits
// until that is worth a question.
func (r *reader) room(ctx context.Context) (int, error) {
	s := r.source
	for {
		s.mu.Lock()
		room, idle, paused := s.config.Prefetch-len(r.held), r.shelf.Idle(), r.shelf.IsPaused(r.name)
		s.mu.Unlock()
		if room > 0 && !paused && (idle || room >= s.config.Prefetch/2) {
			return room, nil
		}
		select {
		case <-r.shelf.Freed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// pull asks for messages, and returns when the server has given as many, or has none for a while.
func (r *reader) pull(ctx context.Context, c jetstream.Consumer, room int) error {
	most, silence := longestPull, pullSilence
	config := c.CachedInfo().Config
	if config.MaxRequestExpires > 0 {
		most = min(most, config.MaxRequestExpires)
		silence = min(silence, most/3)
	}
	if config.MaxRequestBatch > 0 {
		room = min(room, config.MaxRequestBatch)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	batch, err := c.Fetch(room, jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(silence))
	if err != nil {
		return err
	}
	for m := range batch.Messages() {
		if err := r.add(m); err != nil {
			return err
		}
	}
	err = batch.Error()
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrConsumerLeadershipChanged) {
		return nil
	}
	return err
}
