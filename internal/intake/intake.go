// Package intake is what sources have in common whose brokers hand messages out one by one: readers that each have messages ready, and
// failures of their own, and a Fetch that serves from all of them.
package intake

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/postrider/postrider/consumer"
)

// Intake holds what was read and not fetched. T is a message as the source has it.
type Intake[T any] struct {
	mu      *sync.Mutex // the source's
	lane    func(T) string
	lend    func(T) *consumer.Delivery
	news    chan struct{} // holds a token when there may be something to fetch
	shelves []*Shelf[T]
	first   int // the shelf that Fetch begins with
	paused  map[string]bool
}

// Shelf is the part of one reader.
type Shelf[T any] struct {
	Ready []T           // what can be fetched, in order; guarded by the source's lock
	Freed chan struct{} // holds a token when the reader may have room for more

	intake  *Intake[T]
	failure error // not yet told
}

// New returns an Intake that is guarded by the source's lock. lane and lend tell the lane of a message, and its delivery at the moment in
// which it is fetched; they are called with the lock held.
func New[T any](mu *sync.Mutex, lane func(T) string, lend func(T) *consumer.Delivery) *Intake[T] {
	return &Intake[T]{mu: mu, lane: lane, lend: lend, news: make(chan struct{}, 1), paused: make(map[string]bool)}
}

// NewShelf adds the shelf of a reader, before anything is fetched.
func (in *Intake[T]) NewShelf() *Shelf[T] {
	s := &Shelf[T]{intake: in, Freed: make(chan struct{}, 1)}
	in.shelves = append(in.shelves, s)
	return s
}

// Fetch is that of consumer.Source. A failure of one or several readers is told once.
func (in *Intake[T]) Fetch(ctx context.Context, limit int) ([]*consumer.Delivery, error) {
	for {
		if err := in.failure(); err != nil {
			return nil, err
		}
		if deliveries := in.take(limit); len(deliveries) > 0 {
			return deliveries, nil
		}
		select {
		case <-in.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// failure returns what was not yet told.
func (in *Intake[T]) failure() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	var failures []error
	for _, s := range in.shelves {
		if s.failure != nil {
			same := func(other error) bool { return other.Error() == s.failure.Error() }
			if !slices.ContainsFunc(failures, same) { // without a connection, all fail alike
				failures = append(failures, s.failure)
			}
			s.failure = nil
		}
	}
	return errors.Join(failures...)
}

// take returns what is ready and not paused, of each reader in turn.
func (in *Intake[T]) take(limit int) (deliveries []*consumer.Delivery) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.first = (in.first + 1) % len(in.shelves)
	for i := range in.shelves {
		s := in.shelves[(in.first+i)%len(in.shelves)]
		s.Ready = slices.DeleteFunc(s.Ready, func(item T) bool {
			if len(deliveries) == limit || in.paused[in.lane(item)] {
				return false
			}
			deliveries = append(deliveries, in.lend(item))
			return true
		})
		if s.Idle() {
			Signal(s.Freed)
		}
	}
	if len(deliveries) == limit {
		Signal(in.news) // there may be more, and others may wait
	}
	return deliveries
}

// Pause keeps what is ready of a lane from being fetched.
func (in *Intake[T]) Pause(lane string) { in.turn(lane, true) }

// Resume ends what Pause began.
func (in *Intake[T]) Resume(lane string) { in.turn(lane, false) }

func (in *Intake[T]) turn(lane string, paused bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.paused[lane] = paused
	for _, s := range in.shelves {
		Signal(s.Freed)
	}
	Signal(in.news)
}

// Add puts a message behind the others. The lock is held.
func (s *Shelf[T]) Add(item T) {
	s.Ready = append(s.Ready, item)
	Signal(s.intake.news)
}

// Idle reports whether nothing can be fetched. The lock is held.
func (s *Shelf[T]) Idle() bool {
	return !slices.ContainsFunc(s.Ready, func(item T) bool { return !s.intake.paused[s.intake.lane(item)] })
}

// IsPaused reports whether a lane is paused. The lock is held.
func (s *Shelf[T]) IsPaused(lane string) bool { return s.intake.paused[lane] }

// Fail keeps an error for Fetch.
func (s *Shelf[T]) Fail(err error) {
	s.intake.mu.Lock()
	defer s.intake.mu.Unlock()
	s.failure = err
	Signal(s.intake.news)
}

// Signal leaves a token, if there is none.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
