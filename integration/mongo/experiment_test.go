package mongo

import (
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/relay"
)

// The experiment: four workers share 100 events, in batches of 50, for 50 rounds. Nobody may get one that another one got.
const (
	workers       = 4
	eventsInRound = 100
	batchOfEvents = 50
	rounds        = 50
	fewRounds     = 10 // where the mechanism is that of another test
)

// worker takes a batch of events and returns their ids; none means that nothing is left for it.
type worker func(ctx context.Context) ([]string, error)

// share lets the workers take what is there, in each round, and wants each event to be taken once.
func share(t *testing.T, rounds int, fill func(), taker func(i int) worker) {
	t.Helper()
	takers := make([]worker, workers)
	for i := range takers {
		takers[i] = taker(i)
	}
	for range rounds {
		fill()
		times := race(t, takers)
		if twice := countTwice(times); twice > 0 || len(times) != eventsInRound {
			t.Fatalf("%d events were taken, %d of them twice; want each of %d once", len(times), twice, eventsInRound)
		}
	}
}

func TestFourWorkersWithRowClaims(t *testing.T) {
	t.Parallel()
	s := newStage(t, mongo.Config{})
	share(t, rounds, func() { fill(t, s.db.Collection("outbox_events"), eventsInRound, ourEvent) }, func(i int) worker { return claimWorker(t, s.store, i) })
}

func TestFourWorkersWithRowClaimsOnAMappedCollection(t *testing.T) {
	t.Parallel()
	s := newMapped(t, domainEvents(t))
	share(t, fewRounds, func() { fill(t, s.events, eventsInRound, theirEvent) }, func(i int) worker { return claimWorker(t, s.store, i) })
}

func TestFourWorkersWithShardLeases(t *testing.T) {
	t.Parallel()
	s := newStage(t, mongo.Config{})
	share(t, fewRounds, func() { fill(t, s.db.Collection("outbox_events"), eventsInRound, ourEvent) }, func(i int) worker { return leaseWorker(t, s.store, i) })
}

func TestFourWorkersWithShardLeasesOnAMappedCollection(t *testing.T) {
	t.Parallel()
	s := newMapped(t, domainEvents(t))
	share(t, fewRounds, func() { fill(t, s.events, eventsInRound, theirEvent) }, func(i int) worker { return leaseWorker(t, s.store, i) })
}

// TestFourWorkersThatFindAndUpdateTakeEventsTwice shows that the experiment can fail: to find, and to update by _id what
// was found, is what many relays do.
func TestFourWorkersThatFindAndUpdateTakeEventsTwice(t *testing.T) {
	s := newStage(t, mongo.Config{})
	events := s.db.Collection("outbox_events")
	for range rounds {
		fill(t, events, eventsInRound, ourEvent)
		var met sync.WaitGroup
		met.Add(workers)
		takers := make([]worker, workers)
		for i := range takers {
			takers[i] = naiveWorker(events, &met)
		}
		if countTwice(race(t, takers)) > 0 {
			return
		}
	}
	t.Error("no event was taken twice: the experiment shows nothing")
}

// naiveWorker lets all workers look before one of them updates, as they do when they are woken together. It looks once.
func naiveWorker(events *driver.Collection, met *sync.WaitGroup) worker {
	done := false
	return func(ctx context.Context) (ids []string, err error) {
		if done {
			return nil, nil
		}
		done = true
		cursor, err := events.Find(ctx, bson.M{"status": "PENDING"}, options.Find().SetLimit(batchOfEvents).SetSort(bson.M{"_id": 1}))
		met.Done()
		met.Wait()
		if err != nil {
			return nil, err
		}
		var found []struct {
			ID bson.ObjectID `bson:"_id"`
		}
		if err := cursor.All(ctx, &found); err != nil {
			return nil, err
		}
		for _, one := range found {
			if _, err := events.UpdateByID(ctx, one.ID, bson.M{"$set": bson.M{"status": "PROCESSING"}}); err != nil {
				return nil, err
			}
			ids = append(ids, one.ID.Hex())
		}
		return ids, nil
	}
}

func claimWorker(t *testing.T, s *mongo.Store, i int) worker {
	r := s.RowClaims()
	m := relay.Member{Name: "main", ID: fmt.Sprint("worker-", i), Claim: relay.ClaimRow, Shards: shards, LeaseTTL: time.Hour}
	if _, err := r.Renew(t.Context(), relay.Heartbeat{Member: m}, nil); err != nil {
		t.Fatal(err)
	}
	return publisher(r, m, []int{0}, nil)
}

// leaseWorker acquires what a worker's share of the shards is.
func leaseWorker(t *testing.T, s *mongo.Store, i int) worker {
	m := relay.Member{Name: "main", ID: fmt.Sprint("worker-", i), Claim: relay.ClaimShard, Shards: shards, LeaseTTL: time.Hour}
	table, err := s.Renew(t.Context(), relay.Heartbeat{Member: m}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := s.Acquire(t.Context(), m, []relay.Lease{table.Shards[i].Lease})
	if err != nil || len(mine) != 1 {
		t.Fatalf("acquired %v: %v", mine, err)
	}
	return publisher(s, m, []int{i}, mine)
}

// publisher reads a batch and settles it as published.
func publisher(s relay.Store, m relay.Member, of []int, leases []relay.Lease) worker {
	req := relay.ReadRequest{Shards: of, PerShard: batchOfEvents, Limit: batchOfEvents, MaxBytes: 1 << 30}
	return func(ctx context.Context) (ids []string, err error) {
		events, err := s.Read(ctx, req)
		if err != nil {
			return nil, err
		}
		var settlements []relay.Settlement
		for _, e := range events {
			one := relay.Settlement{ID: e.ID, State: postrider.StatePublished}
			if leases != nil {
				one.Lease = leases[0]
			}
			settlements = append(settlements, one)
			ids = append(ids, e.ID)
		}
		written, err := s.Settle(ctx, m, settlements)
		if err == nil && len(written) != len(events) {
			err = fmt.Errorf("%d of %d events were written", len(written), len(events))
		}
		return ids, err
	}
}

func fill(t *testing.T, events *driver.Collection, n int, event func(key string) bson.M) {
	t.Helper()
	docs := make([]bson.M, n)
	for i := range docs {
		docs[i] = event(fmt.Sprint("key-", i))
	}
	if _, err := events.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
}

func ourEvent(key string) bson.M {
	return plain(bson.M{"event_id": newUUID(), "aggregate_id": key, "shard": crc32.ChecksumIEEE([]byte(key)) % shards})
}

func theirEvent(key string) bson.M {
	return theirDocument(bson.M{"domain": "lesson", "objectId": key, "eventType": "LessonCompleted", "payload": bson.M{"n": 1}})
}

// race lets the workers take events at the same time until none is left, and returns how often each was taken.
func race(t *testing.T, takers []worker) map[string]int {
	t.Helper()
	var (
		start, done sync.WaitGroup
		mu          sync.Mutex
		times       = make(map[string]int)
	)
	start.Add(1)
	for _, take := range takers {
		done.Go(func() {
			start.Wait()
			for {
				ids, err := take(t.Context())
				if err != nil {
					t.Error(err)
				}
				if err != nil || len(ids) == 0 {
					return
				}
				mu.Lock()
				for _, id := range ids {
					times[id]++
				}
				mu.Unlock()
			}
		})
	}
	start.Done()
	done.Wait()
	return times
}

func countTwice(times map[string]int) (twice int) {
	for _, n := range times {
		if n > 1 {
			twice++
		}
	}
	return twice
}
