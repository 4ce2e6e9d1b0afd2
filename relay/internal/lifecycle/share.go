package lifecycle

import "slices"

// Shard is what one relay sees of one shard when it decides what to take and what to give.
type Shard struct {
	Index int
	Mine  bool // held by this relay
	Open  bool // free, or its lease ran out
}

// Share decides which shards a relay takes and which it gives up so that the live relays come to own equal parts.
// live holds the ids of all live relays in ascending order, self among them; a relay that is not live takes and
// gives nothing. Giving is a request: the shard is drained first.
func Share(shards []Shard, live []string, self string) (take, give []int) {
	rank, found := slices.BinarySearch(live, self)
	if !found {
		return nil, nil
	}
	fair := len(shards) / len(live)
	if rank < len(shards)%len(live) {
		fair++
	}
	var mine, open []int
	for _, s := range shards {
		switch {
		case s.Mine:
			mine = append(mine, s.Index)
		case s.Open:
			open = append(open, s.Index)
		}
	}
	if len(mine) > fair {
		return nil, mine[fair:]
	}
	// Start at a place of our own, so that relays that look at the same moment rarely reach for the same shard.
	for i := range open {
		if len(take) == fair-len(mine) {
			break
		}
		take = append(take, open[(i+rank*len(open)/len(live))%len(open)])
	}
	return take, nil
}
