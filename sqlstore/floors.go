package sqlstore

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// floors keeps reads short when the database cannot yet forget the rows that were settled, because some transaction,
// such as a backup, is still to see them as they were. A read that started at the lowest id would then walk over the
// remains of everything that was published meanwhile.
//
// The floor of a shard is an id below which no event waits to be sent, and none can appear. The first part is seen by
// one look. The second takes three: an id that the first look did not see belongs to a transaction that had taken it by
// then, and that has begun to write its row by the second (both are steps of one INSERT). Once a third look's snapshot
// has no transaction from before the second, what the first did not see is either visible to the third or rolled back.
//
// Operators can make lower ids wait again, and producers can take ids long before they use them, so from time to time
// a look starts at the lowest id.
type floors struct {
	mu      sync.Mutex
	looking bool // one look at a time, so that they come in the order of their snapshots
	floor   map[int]int64
	first   map[int]int64 // lowest waiting ids at the first look; nil when there is none to prove
	after   int64         // transactions from this number on had not begun at the second look; 0 before it
	looked  time.Time
	swept   time.Time
}

const (
	lookEvery  = 200 * time.Millisecond
	sweepEvery = 2 * time.Second
)

func newFloors() *floors {
	return &floors{floor: make(map[int]int64)}
}

// of returns the floors of shards, in the same order.
func (f *floors) of(shards []int) []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]int64, len(shards))
	for i, shard := range shards {
		list[i] = f.floor[shard]
	}
	return list
}

// due says whether it is time for a look, which ends with done, and whether it starts at the lowest id.
func (f *floors) due(now time.Time) (look, sweep bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.looking || now.Sub(f.looked) < lookEvery {
		return false, false
	}
	f.looking, f.looked = true, now
	if now.Sub(f.swept) < sweepEvery {
		return true, false
	}
	f.swept = now
	return true, true
}

// look is what one statement saw.
type look struct {
	lowest map[int]int64 // lowest waiting id of each shard
	oldest int64         // number of the oldest transaction that was still at work
	next   int64         // number of the first transaction that had not begun
}

// learn raises floors by what a look proves, and lowers those below which something waits.
func (f *floors) learn(l look) {
	f.mu.Lock()
	defer f.mu.Unlock()
	proven := f.after > 0 && l.oldest >= f.after
	for shard, lowest := range l.lowest {
		if first, seen := f.first[shard]; seen && proven {
			f.floor[shard] = max(f.floor[shard], first)
		}
		f.floor[shard] = min(f.floor[shard], lowest)
	}
	switch {
	case f.first == nil || proven:
		f.first, f.after = l.lowest, 0
	case f.after == 0:
		f.after = l.next
	}
}

func (f *floors) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looking = false
}

// forget lets reads start at the lowest ids again.
func (f *floors) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.floor)
	f.first, f.after = nil, 0
}

// raiseFloors looks, now and then, how far the shards have come.
func (s *Store) raiseFloors(ctx context.Context, op string, shards []int) error {
	if _, ok := s.queries["floors"]; !ok {
		return nil // the database has one writer at a time and forgets at once
	}
	now, sweep := s.floors.due(time.Now())
	if !now {
		return nil
	}
	defer s.floors.done()
	from := make([]int64, len(shards))
	if !sweep {
		from = s.floors.of(shards)
	}
	l := look{lowest: make(map[int]int64)}
	err := s.run(ctx, op, "floors", func(rows *sql.Rows) error {
		for rows.Next() {
			var shard int
			var lowest int64
			if err := rows.Scan(&shard, &lowest, &l.oldest, &l.next); err != nil {
				return err
			}
			l.lowest[shard] = lowest
		}
		return nil
	}, toJSON(shards), toJSON(from))
	if err == nil {
		s.floors.learn(l)
	}
	return err
}
