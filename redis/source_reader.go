package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/internal/intake"
)

const (
	blockTime     = time.Second // for which the server waits for new entries before it says that there are none
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
	tidyEvery     = time.Hour // and consumers that were silent for as long are removed
)

// reader reads one stream. Two goroutines serve it: run reads, keep tells the server about what is in hand, and takes over.
type reader struct {
	source *Source
	stream string
	wake   chan struct{} // holds a token when there is something to tell the server
	shelf  *intake.Shelf[*loan]

	claiming sync.Mutex // so that nothing is claimed twice
	known    bool       // the group was there; run's own

	// The source's lock guards what follows.
	held    map[string]*loan  // everything that the server takes for pending, by id
	settled map[state][]*loan // what of it the server was not yet told
}

func newReader(s *Source, stream string) *reader {
	return &reader{
		source: s, stream: stream, wake: make(chan struct{}, 1), shelf: s.intake.NewShelf(),
		held: make(map[string]*loan), settled: make(map[state][]*loan),
	}
}

// run reads, and after a failure again.
func (r *reader) run(ctx context.Context) {
	pause := shortestPause
	for {
		begun := time.Now()
		err := r.read(ctx)
		if ctx.Err() != nil {
			return
		}
		r.shelf.Fail(fmt.Errorf("redis: read stream %s as %s of group %s: %w", r.stream, r.source.config.Consumer, r.source.config.Group, err))
		if time.Since(begun) > longestPause {
			pause = shortestPause
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// errLost says what NOGROUP means for a group that was there.
var errLost = errors.New("the group is gone, and its position with it, because it or the stream was deleted or the server has lost its data: " +
	"it is created anew, and begins at the start of the stream")

// read reads until it cannot any more, and says why.
func (r *reader) read(ctx context.Context) error {
	err := r.takeOwn(ctx)
	if isNoGroup(err) && !r.known {
		if err = r.createGroup(ctx); err == nil {
			err = r.takeOwn(ctx)
		}
	}
	for err == nil {
		r.known = true
		err = r.takeNew(ctx)
	}
	if isNoGroup(err) {
		r.known = false
		r.forget()
		return errLost
	}
	return err
}

func (r *reader) createGroup(ctx context.Context) error {
	err := r.source.client.XGroupCreateMkStream(ctx, r.stream, r.source.config.Group, "0").Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") { // another member was faster
		return nil
	}
	return err
}

func isNoGroup(err error) bool { return redis.HasErrorPrefix(err, "NOGROUP") }

// takeOwn takes what is pending for this consumer and not in hand: from before a restart, or because an answer was lost.
func (r *reader) takeOwn(ctx context.Context) error {
	after := ""
	for {
		room, err := r.awaitRoom(ctx)
		if err != nil {
			return err
		}
		if after, err = r.claim(ctx, room, after, 0, r.source.config.Consumer); err != nil || after == "" {
			return err
		}
	}
}

// takeNew takes entries that nobody has read yet, if some come within blockTime.
func (r *reader) takeNew(ctx context.Context) error {
	room, err := r.awaitRoom(ctx)
	if err != nil {
		return err
	}
	c := r.source.config
	answer, err := r.source.client.Do(ctx, "XREADGROUP", "GROUP", c.Group, c.Consumer, "COUNT", room, "BLOCK", blockTime.Milliseconds(),
		"STREAMS", r.stream, ">").Slice()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, stream := range answer {
		parts, _ := stream.([]any)
		if len(parts) != 2 {
			return fmt.Errorf("the server answered %d parts instead of a stream and its entries", len(parts))
		}
		entries, err := records(parts[1])
		if err != nil {
			return err
		}
		r.add(entries, nil)
	}
	return nil
}

// awaitRoom waits until the source may have more entries, and returns how many. As long as there is something to fetch it
// waits until that is worth a question.
func (r *reader) awaitRoom(ctx context.Context) (int, error) {
	for {
		room, idle := r.room()
		if room > 0 && (idle || room >= r.source.config.Prefetch/2) {
			return room, nil
		}
		select {
		case <-r.shelf.Freed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (r *reader) room() (room int, idle bool) {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	if r.shelf.IsPaused(r.stream) {
		return 0, false
	}
	return r.source.config.Prefetch - len(r.held), r.shelf.Idle()
}

// forget drops everything: the group that it was lent to is gone.
func (r *reader) forget() {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	for _, l := range r.held {
		r.drop(l)
	}
	r.shelf.Ready = nil
	clear(r.settled)
}

// keep tells the server what is finished and returned, and that the rest is in hand, and takes over what nobody has in hand.
func (r *reader) keep(ctx context.Context) {
	beat := min(r.source.config.ClaimAfter/4, time.Second)
	var next, tidied time.Time
	for {
		select {
		case <-r.wake:
			if r.settle(ctx) {
				next = time.Now() // what was returned can be taken
			}
		case <-time.After(time.Until(next)):
			next = time.Now().Add(beat)
			r.settle(ctx)
			r.look(ctx)
			if time.Since(tidied) > tidyEvery {
				tidied = time.Now()
				r.tidy(ctx, tidyEvery, "")
			}
		case <-ctx.Done():
			return
		}
	}
}

// look holds what is in hand, and takes over what nobody has in hand. That the server is away, and that the group is gone, run meets
// as well.
func (r *reader) look(ctx context.Context) {
	switch err := errors.Join(r.extend(ctx), r.takeOver(ctx)); {
	case isNoGroup(err):
		r.forget() // so that run has room, and asks
	case isAnswer(err):
		r.shelf.Fail(fmt.Errorf("redis: hold entries of stream %s, or take them over: %w", r.stream, err))
	}
}

// leave gives up what is in hand, so that others take it at once, and the consumer's name if nothing is pending for it.
func (r *reader) leave(ctx context.Context) {
	r.settle(ctx)
	_ = r.setIdle(ctx, r.inHand(0), returnedIdle) // or others take it after ClaimAfter
	r.tidy(ctx, 0, r.source.config.Consumer)
}

// tidy is only for the looks of the group.
func (r *reader) tidy(ctx context.Context, idle time.Duration, consumer string) {
	_ = tidyScript.Run(ctx, r.source.client, []string{r.stream}, r.source.config.Group, idle.Milliseconds(), consumer).Err()
}
