package sqlstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/postrider/postrider/relay"
)

// readQuery returns the query that reads events of the shards, leaving out those in flight; nil when nothing waits in
// them. MySQL and MariaDB cannot join a part with a limit to each shard, so its text has a part for each shard in which
// something waits. The ids in flight stand there too, each in the part of its shard: as a parameter they would be read
// again for every part.
func (s *Store) readQuery(ctx context.Context, op string, req relay.ReadRequest) (query, error) {
	whole := s.queries["read"]
	part, inParts := s.queries["read_shard"]
	if !inParts {
		return whole, nil
	}
	var heads []int
	if err := s.run(ctx, op, "heads", into(&heads, scanValue[int]), toJSON(req.Shards)); err != nil {
		return nil, err
	}
	flight := s.flight.byShard(req.InFlight)
	var parts []string
	for place, shard := range req.Shards {
		if slices.Contains(heads, shard) {
			parts = append(parts, strings.NewReplacer(
				"{place}", strconv.Itoa(place), "{shard}", strconv.Itoa(shard), "{flight}", flight(shard),
			).Replace(part[0]))
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return query{strings.Replace(whole[0], "{parts}", strings.Join(parts, "\nUNION ALL\n"), 1)}, nil
}

// flight remembers the shards of the events that reads have returned, as long as they are in flight.
type flight struct {
	mu    sync.Mutex
	shard map[string]int // by event id
}

func newFlight() *flight {
	return &flight{shard: make(map[string]int)}
}

// byShard returns what lists the ids in flight that can be in a shard, for a statement. It forgets the events that are no
// longer in flight. An id whose shard is not known is listed for all.
func (f *flight) byShard(inFlight []string) func(shard int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := make(map[string]int, len(inFlight))
	lists := make(map[int][]string)
	anywhere := []string{"-1"} // no list may be empty
	for _, id := range inFlight {
		if shard, ok := f.shard[id]; ok {
			known[id] = shard
			lists[shard] = append(lists[shard], id)
		} else {
			anywhere = append(anywhere, id)
		}
	}
	f.shard = known
	return func(shard int) string { return strings.Join(slices.Concat(anywhere, lists[shard]), ", ") }
}

// add notes events that a read returns.
func (f *flight) add(events []relay.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		f.shard[e.ID] = e.Shard
	}
}
