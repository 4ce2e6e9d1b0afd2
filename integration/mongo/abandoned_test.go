package mongo

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/relay"
)

const (
	eventsOfThree = 2000 // for three workers
	batchesBefore = 2    // of the one that ends, before the batch in which it does
)

func TestClaimsOfAnAbandonedWorkerAreTakenOver(t *testing.T) {
	t.Parallel()
	s := newStage(t, mongo.Config{})
	events := s.db.Collection("outbox_events")
	fill(t, events, eventsOfThree, ourEvent)
	abandonOne(t, s.store, events, "PUBLISHED")
}

func TestClaimsOfAnAbandonedWorkerAreTakenOverOnThePreset(t *testing.T) {
	t.Parallel()
	m := newMapped(t, preset(t))
	fill(t, m.events, eventsOfThree, theirEvent)
	abandonOne(t, m.store, m.events, "SENT")
}

// abandonOne lets three workers publish all events. One of them ends while it settles a batch, without giving anything
// back: only of that batch may events be taken twice.
func abandonOne(t *testing.T, s *mongo.Store, events *driver.Collection, published string) {
	t.Helper()
	var lost []string
	survivors := []worker{claimWorker(t, s, 0), claimWorker(t, s, 1)}
	all := append(slices.Clone(survivors), abandonedWorker(t, s, &lost))
	times := map[string]int{}
	await.True(t, time.Minute, "every event is published", func() bool {
		for id, n := range race(t, all) {
			times[id] += n
		}
		n, err := events.CountDocuments(t.Context(), bson.M{"status": published})
		if err != nil {
			t.Fatal(err)
		}
		return n == eventsOfThree
	})
	if len(lost) == 0 || len(times) != eventsOfThree {
		t.Fatalf("%d events were taken, of which %d were in the batch of the worker that ended", len(times), len(lost))
	}
	for id, n := range times {
		if n > 2 || n == 2 && !slices.Contains(lost, id) {
			t.Errorf("event %s was taken %d times", id, n)
		}
	}
	if late := race(t, survivors); len(late) > 0 {
		t.Errorf("events were taken after all had left: %v", slices.Collect(maps.Keys(late)))
	}
}

// abandonedWorker ends while it settles a batch, which it tells in lost. Its claims run out soon after.
func abandonedWorker(t *testing.T, s *mongo.Store, lost *[]string) worker {
	m := relay.Member{Name: "main", ID: "abandoned", Claim: relay.ClaimRow, Shards: shards, LeaseTTL: 5 * time.Second}
	r := s.RowClaims()
	if _, err := r.Renew(t.Context(), relay.Heartbeat{Member: m}, nil); err != nil {
		t.Fatal(err)
	}
	take := publisher(r, m, []int{0}, nil)
	batches := 0
	return func(ctx context.Context) (ids []string, err error) {
		if len(*lost) > 0 {
			return nil, nil
		}
		if batches == batchesBefore {
			*lost, err = abandon(ctx, r, m)
			return *lost, err
		}
		ids, err = take(ctx)
		if len(ids) > 0 {
			batches++
		}
		return ids, err
	}
}

// abandon reads a batch and ends while it settles it.
func abandon(ctx context.Context, r *mongo.RowClaims, m relay.Member) (ids []string, err error) {
	events, err := r.Read(ctx, relay.ReadRequest{Shards: []int{0}, PerShard: batchOfEvents, Limit: batchOfEvents, MaxBytes: 1 << 30})
	var settlements []relay.Settlement
	for _, e := range events {
		settlements = append(settlements, relay.Settlement{ID: e.ID, State: postrider.StatePublished})
		ids = append(ids, e.ID)
	}
	ctx, cancel := context.WithCancel(ctx)
	go cancel()
	_, _ = r.Settle(ctx, m, settlements) // what came of it nobody is told
	return ids, err
}
