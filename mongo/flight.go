package mongo

import (
	"fmt"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/postrider/postrider/relay"
)

// flight remembers the shards of the events that the relay holds, so that each shard's part of a read leaves out only its
// own: the list would grow with the square of the shards otherwise. It forgets what the relay holds no more.
type flight struct {
	mu     sync.Mutex
	shards map[bson.ObjectID]int
}

// split groups the events in flight by shard. Those of which the shard is not known are in rest.
func (f *flight) split(inFlight []string) (byShard map[int][]bson.ObjectID, rest []bson.ObjectID, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	byShard = map[int][]bson.ObjectID{}
	still := make(map[bson.ObjectID]int, len(inFlight))
	for _, text := range inFlight {
		id, err := parseID(text)
		if err != nil {
			return nil, nil, err
		}
		shard, known := f.shards[id]
		if !known {
			rest = append(rest, id)
			continue
		}
		still[id] = shard
		byShard[shard] = append(byShard[shard], id)
	}
	f.shards = still
	return byShard, rest, nil
}

// remember takes in what a read returned.
func (f *flight) remember(events []relay.Event, ids []bson.ObjectID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, id := range ids {
		f.shards[id] = events[i].Shard
	}
}

// parseID reads an outbox id.
func parseID(text string) (bson.ObjectID, error) {
	id, err := bson.ObjectIDFromHex(text)
	if err != nil {
		return id, fmt.Errorf("%q is no id of this outbox", text)
	}
	return id, nil
}
