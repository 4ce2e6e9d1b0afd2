package redis

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/intake"
)

// state is what has become of a loan.
type state int

const (
	lent state = iota // nothing yet
	finished
	returned
)

// loan is an entry that the source has. The source's lock guards what changes.
type loan struct {
	reader     *reader
	id         string
	place      [2]uint64 // the numbers of the id
	message    inbox.Message
	deliveries int
	state      state
	told       time.Time     // when the server last heard that it is in hand
	over       chan struct{} // closed when it is settled, if somebody waits for that
}

func (l *loan) lane() string { return l.reader.stream }

func (l *loan) delivery() *consumer.Delivery {
	return &consumer.Delivery{Message: l.message, Lane: l.lane(), Deliveries: l.deliveries, Ref: l}
}

const (
	// idsPerCommand bounds how long a command keeps the server busy.
	idsPerCommand = 200

	// returnedIdle is for how long an entry that was given back claims to have been idle: longer than anybody's ClaimAfter.
	returnedIdle = 30 * 24 * time.Hour
)

var (
	//go:embed keep.lua
	keepSource string
	keepScript = redis.NewScript(keepSource)

	//go:embed tidy.lua
	tidySource string
	tidyScript = redis.NewScript(tidySource)
)

// add takes entries that the server has given to this consumer; before counts earlier deliveries. One that comes as new although it is
// in hand has been forgotten by the server, and may be another one with the same id: it takes the place of the first. Older ones are
// fetched first.
func (r *reader) add(entries []record, before map[string]int) {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	for _, e := range entries {
		if l := r.held[e.id]; l != nil {
			r.drop(l)
			r.shelf.Ready = slices.DeleteFunc(r.shelf.Ready, func(other *loan) bool { return other == l })
		}
		l := &loan{reader: r, id: e.id, place: place(e.id), message: decode(r.stream, e), deliveries: before[e.id] + 1, told: time.Now()}
		r.held[e.id] = l
		r.shelf.Add(l)
	}
	if len(before) > 0 {
		slices.SortStableFunc(r.shelf.Ready, func(a, b *loan) int { return slices.Compare(a.place[:], b.place[:]) })
	}
}

// drop ends a loan. The lock is held.
func (r *reader) drop(l *loan) {
	delete(r.held, l.id)
	if l.over != nil {
		close(l.over)
	}
	intake.Signal(r.shelf.Freed)
}

// takeOver takes what other consumers have left lying, and this one has returned.
func (r *reader) takeOver(ctx context.Context) error {
	after := ""
	for {
		room := r.roomForOld()
		if room <= 0 {
			return nil
		}
		var err error
		if after, err = r.claim(ctx, room, after, r.source.config.ClaimAfter, ""); err != nil || after == "" {
			return err
		}
	}
}

// roomForOld does not depend on what is read anew, which would leave no room for long.
func (r *reader) roomForOld() int {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	if r.shelf.IsPaused(r.stream) {
		return 0
	}
	room := r.source.config.Prefetch
	for _, l := range r.held {
		if l.deliveries > 1 {
			room--
		}
	}
	return room
}

// claim takes pending entries that are idle for so long, and not in hand. It looks at so many, behind an id unless that is empty, and at
// those of one consumer unless that is empty. It returns the id of the last one that it has seen, empty when there are no more. Entries
// that the stream no longer has the server takes off the list when they are claimed.
func (r *reader) claim(ctx context.Context, count int, after string, idle time.Duration, consumer string) (last string, err error) {
	r.claiming.Lock()
	defer r.claiming.Unlock()
	c := r.source.config
	look := &redis.XPendingExtArgs{Stream: r.stream, Group: c.Group, Idle: idle, Start: "-", End: "+", Count: int64(count), Consumer: consumer}
	if after != "" {
		look.Start = "(" + after
	}
	pending, err := r.source.client.XPendingExt(ctx, look).Result()
	if err != nil {
		return "", err
	}
	command := []any{"XCLAIM", r.stream, c.Group, c.Consumer, idle.Milliseconds()}
	before := make(map[string]int)
	for _, p := range r.notHeld(pending) {
		command = append(command, p.ID)
		before[p.ID] = int(p.RetryCount)
	}
	if len(before) > 0 {
		answer, err := r.source.client.Do(ctx, command...).Result()
		if err != nil {
			return "", err
		}
		entries, err := records(answer)
		if err != nil {
			return "", err
		}
		r.add(entries, before)
	}
	if len(pending) == count {
		last = pending[count-1].ID
	}
	return last, nil
}

func (r *reader) notHeld(pending []redis.XPendingExt) []redis.XPendingExt {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(pending), func(p redis.XPendingExt) bool { return r.held[p.ID] != nil })
}

// settle acknowledges what is finished and gives back what is returned. It reports whether something was given back. What fails is
// kept for the next time.
func (r *reader) settle(ctx context.Context) bool {
	r.source.mu.Lock()
	done, back := r.settled[finished], r.settled[returned]
	clear(r.settled)
	r.source.mu.Unlock()
	r.settledAs(finished, done, r.acknowledge(ctx, done))
	err := r.setIdle(ctx, back, returnedIdle)
	r.settledAs(returned, back, err)
	return len(back) > 0 && err == nil
}

// settledAs drops loans of which the server was told.
func (r *reader) settledAs(how state, loans []*loan, err error) {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	for _, l := range loans {
		switch {
		case r.held[l.id] != l: // forgotten meanwhile
		case err != nil:
			r.settled[how] = append(r.settled[how], l)
		default:
			r.drop(l)
		}
	}
}

func (r *reader) acknowledge(ctx context.Context, loans []*loan) error {
	if len(loans) == 0 {
		return nil
	}
	pipe := r.source.client.Pipeline()
	for some := range slices.Chunk(loans, idsPerCommand) {
		ids := make([]string, len(some))
		for i, l := range some {
			ids[i] = l.id
		}
		pipe.XAck(ctx, r.stream, r.source.config.Group, ids...)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// extend tells the server what is in hand for a while.
func (r *reader) extend(ctx context.Context) error {
	loans := r.inHand(r.source.config.ClaimAfter / 4)
	if err := r.setIdle(ctx, loans, 0); err != nil {
		return err
	}
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	for _, l := range loans {
		l.told = time.Now()
	}
	return nil
}

// inHand returns what is not settled, and of which the server has not heard for so long.
func (r *reader) inHand(silence time.Duration) (loans []*loan) {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	for _, l := range r.held {
		if l.state == lent && time.Since(l.told) >= silence {
			loans = append(loans, l)
		}
	}
	return loans
}

// setIdle leaves alone what another consumer has taken over.
func (r *reader) setIdle(ctx context.Context, loans []*loan, idle time.Duration) error {
	for some := range slices.Chunk(loans, idsPerCommand) {
		arguments := []any{r.source.config.Group, r.source.config.Consumer, idle.Milliseconds()}
		for _, l := range some {
			arguments = append(arguments, l.id)
		}
		if err := keepScript.Run(ctx, r.source.client, []string{r.stream}, arguments...).Err(); err != nil {
			return err
		}
	}
	return nil
}
