package inbox

import (
	"context"
	"sync"
)

// Filter guesses which messages a consumer has applied already, so that a replay of many of them costs reads only. It stands in
// front of the receipts and may be wrong without harm: what it takes for applied is looked up among the receipts, and what
// it does not know goes the usual way. Recent is one in memory; package redis has one that processes share. It must be safe for
// concurrent use, and quick when it cannot answer: it has no errors to return.
type Filter interface {
	// Likely tells for each dedup key whether the consumer has a receipt for it; nil when there is nothing to say of any.
	Likely(ctx context.Context, consumer string, keys []string) []bool

	// Applied is called with keys for which the consumer has receipts, after the commit.
	Applied(ctx context.Context, consumer string, keys []string)
}

// Recent is a Filter in memory, of the keys of this process that were applied last. Its memory is bounded: some 150 bytes a key.
type Recent struct {
	mu       sync.Mutex
	half     int
	new, old map[recentKey]struct{} // when new is full it becomes old
}

type recentKey struct{ consumer, dedupKey string }

// NewRecent returns a Recent that remembers at least half of size keys, and at most size.
func NewRecent(size int) *Recent {
	return &Recent{half: max(1, size/2), new: make(map[recentKey]struct{})}
}

// Likely implements Filter.
func (r *Recent) Likely(_ context.Context, consumer string, keys []string) []bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	likely := make([]bool, len(keys))
	for i, key := range keys {
		k := recentKey{consumer, key}
		_, isNew := r.new[k]
		_, isOld := r.old[k]
		likely[i] = isNew || isOld
	}
	return likely
}

// Applied implements Filter.
func (r *Recent) Applied(_ context.Context, consumer string, keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		if len(r.new) >= r.half {
			r.old, r.new = r.new, make(map[recentKey]struct{}, r.half)
		}
		r.new[recentKey{consumer, key}] = struct{}{}
	}
}

// metBefore returns the receipts, by their keys, of those entries that the filter takes for applied. What read does not find, or
// cannot read, goes the usual way.
func (id *identity) metBefore(ctx context.Context, read readFunc, entries []*entry) map[string]Receipt {
	likely := id.likely(ctx, entries)
	if len(likely) == 0 {
		return nil
	}
	met, err := read(ctx, likely)
	if err != nil {
		return nil
	}
	return met
}

// likely returns the entries that the filter takes for applied.
func (id *identity) likely(ctx context.Context, entries []*entry) (likely []*entry) {
	if id.filter == nil || len(entries) == 0 {
		return nil
	}
	for i, yes := range id.filter.Likely(ctx, id.consumer, keysOf(entries)) {
		if yes && i < len(entries) {
			likely = append(likely, entries[i])
		}
	}
	return likely
}

// remember tells the filter of entries that have receipts.
func (id *identity) remember(ctx context.Context, entries []*entry) {
	if id.filter != nil && len(entries) > 0 {
		id.filter.Applied(ctx, id.consumer, keysOf(entries))
	}
}

func keysOf(entries []*entry) []string {
	keys := make([]string, len(entries))
	for i, e := range entries {
		keys[i] = e.DedupKey
	}
	return keys
}
