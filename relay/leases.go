package relay

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// leases is what this relay holds, by its own monotonic clock: a lease counts from the moment before the renewal
// was sent, so it always ends here before it ends in the database.
type leases struct {
	mu   sync.Mutex
	ttl  time.Duration
	held map[int]heldLease
}

type heldLease struct {
	epoch    int64
	deadline time.Time
	draining bool // to be given up as soon as nothing of it is in flight
}

func newLeases(ttl time.Duration) *leases {
	return &leases{ttl: ttl, held: make(map[int]heldLease)}
}

// grant notes leases that were taken by a request sent at sentAt.
func (l *leases) grant(taken []Lease, sentAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range taken {
		l.held[t.Shard] = heldLease{epoch: t.Epoch, deadline: sentAt.Add(l.ttl)}
	}
}

// sync compares what is held with the lease table after a renewal of the leases renewed that was sent at sentAt.
// It returns the shards that were lost to others.
func (l *leases) sync(table LeaseTable, self string, renewed []Lease, sentAt time.Time) (lost []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := make(map[int]int64)
	for _, s := range table.Shards {
		if s.Owner == self {
			mine[s.Shard] = s.Epoch
		}
	}
	for shard, h := range l.held {
		if epoch, ok := mine[shard]; !ok || epoch != h.epoch {
			delete(l.held, shard)
			lost = append(lost, shard)
		}
	}
	for _, r := range renewed {
		if h, ok := l.held[r.Shard]; ok && h.epoch == r.Epoch {
			h.deadline = sentAt.Add(l.ttl)
			l.held[r.Shard] = h
		}
	}
	// A lease that is ours although we do not know of it was granted by a request whose answer got lost. It was
	// not renewed, so it is usable only after the next renewal.
	for shard, epoch := range mine {
		if _, ok := l.held[shard]; !ok && !slices.Contains(lost, shard) {
			l.held[shard] = heldLease{epoch: epoch, deadline: sentAt}
		}
	}
	slices.Sort(lost)
	return lost
}

// renewable lists the leases that a renewal prolongs. Leases that are being drained are left out: if draining
// takes too long they lapse.
func (l *leases) renewable() []Lease {
	return l.list(func(h heldLease) bool { return !h.draining })
}

// draining lists the leases that are to be given up.
func (l *leases) draining() []Lease {
	return l.list(func(h heldLease) bool { return h.draining })
}

// readable lists the leases under which events may be read and sent for at least need.
func (l *leases) readable(now time.Time, need time.Duration) []Lease {
	return l.list(func(h heldLease) bool { return !h.draining && h.deadline.Sub(now) >= need })
}

// all lists every lease held.
func (l *leases) all() []Lease {
	return l.list(func(heldLease) bool { return true })
}

func (l *leases) list(want func(heldLease) bool) []Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Lease
	for _, shard := range slices.Sorted(maps.Keys(l.held)) {
		if h := l.held[shard]; want(h) {
			out = append(out, Lease{shard, h.epoch})
		}
	}
	return out
}

// remaining returns how long the lease still lasts by our clock; 0 when it is not held.
func (l *leases) remaining(lease Lease, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[lease.Shard]
	if !ok || h.epoch != lease.Epoch {
		return 0
	}
	return max(0, h.deadline.Sub(now))
}

// holds says whether the lease is held and not being drained, whatever time is left.
func (l *leases) holds(lease Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[lease.Shard]
	return ok && h.epoch == lease.Epoch && !h.draining
}

// suspect makes leases unusable until the next renewal tells whether they are still ours.
func (l *leases) suspect(suspects []Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range suspects {
		if h, ok := l.held[s.Shard]; ok && h.epoch == s.Epoch {
			h.deadline = time.Time{}
			l.held[s.Shard] = h
		}
	}
}

// drain marks shards as to be given up.
func (l *leases) drain(shards []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, shard := range shards {
		if h, ok := l.held[shard]; ok {
			h.draining = true
			l.held[shard] = h
		}
	}
}

// forget removes leases that were released.
func (l *leases) forget(released []Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range released {
		delete(l.held, r.Shard)
	}
}

// count returns how many leases are held.
func (l *leases) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}
