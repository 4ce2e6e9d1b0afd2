package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/relay"
)

// TestWhatTheBacklogAsksDoesNotGrowWithTheShards is about servers that plan a command as a whole: one that names each of
// 64 shards took seconds on an empty outbox.
func TestWhatTheBacklogAsksDoesNotGrowWithTheShards(t *testing.T) {
	asked := func(shards int) (bytes int) {
		var sent commands
		store := open(t, newDatabase(t, connect(t, sent.monitor())), mongo.StoreConfig{Shards: shards})
		sent.take()
		if _, err := store.Backlog(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, command := range sent.take() {
			bytes += len(command)
		}
		return bytes
	}
	if few, many := asked(1), asked(1000); many > few+few/10 {
		t.Errorf("%d bytes of commands for 1 shard, %d for 1000", few, many)
	}
}

func TestAReadEndsWithTheShardsThatGiveAllThatIsWanted(t *testing.T) {
	var sent commands
	db := newDatabase(t, connect(t, sent.monitor()))
	store := open(t, db, mongo.StoreConfig{})
	if _, err := db.Collection("outbox_events").InsertOne(t.Context(), plain(nil)); err != nil {
		t.Fatal(err)
	}
	all := make([]int, mongo.DefaultShards)
	for i := range all {
		all[i] = i
	}
	looks := func(limit int) (n int) {
		sent.take()
		events, err := store.Read(t.Context(), relay.ReadRequest{Shards: all, PerShard: 1, Limit: limit, MaxBytes: 1 << 20})
		if err != nil || len(events) != 1 {
			t.Fatalf("read %v, %v", events, err)
		}
		for _, command := range sent.take() {
			if name(t, command) == "aggregate outbox_events" {
				n++
			}
		}
		return n
	}
	if one, two := looks(1), looks(2); one != 1 || two <= one {
		t.Errorf("%d looks for the event of shard 3, %d for one more that is not there", one, two)
	}
}

// leftBehind makes the events of s claimed by a relay that is gone and whose claims ran out long ago.
func (s *stage) leftBehind(t *testing.T) {
	t.Helper()
	r, m := s.store.RowClaims(), relay.Member{Name: "main", ID: "gone", Claim: relay.ClaimRow, Shards: shards, LeaseTTL: time.Hour}
	if _, err := r.Renew(t.Context(), relay.Heartbeat{Member: m}, nil); err != nil {
		t.Fatal(err)
	}
	events, err := r.Read(t.Context(), relay.ReadRequest{Shards: []int{0}, PerShard: 10, Limit: 10, MaxBytes: 1 << 20})
	if err != nil || len(events) == 0 {
		t.Fatalf("claimed %v, %v", events, err)
	}
	past := bson.M{"$set": bson.M{"processing_until": time.Now().Add(-time.Hour)}}
	if _, err := s.db.Collection("outbox_events").UpdateMany(t.Context(), bson.M{}, past); err != nil {
		t.Fatal(err)
	}
	if err := r.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func TestALeaseDoesNotDependOnWhetherTheOutboxCanBeWritten(t *testing.T) {
	set, opts := newReplicaSet(t)
	s := newStage(t, mongo.Config{}, opts)
	if _, err := s.db.Collection("outbox_events").InsertOne(t.Context(), plain(nil)); err != nil {
		t.Fatal(err)
	}
	s.leftBehind(t)
	const unauthorized = 13
	set.inject("update outbox_events", refusal(unauthorized))
	m := relay.Member{Name: "main", ID: "a", Claim: relay.ClaimShard, Shards: shards, LeaseTTL: time.Hour}
	if _, err := s.store.Renew(t.Context(), relay.Heartbeat{Member: m}, nil); err != nil {
		t.Errorf("the outbox is read-only, and the leases are not renewed: %v", err)
	}
	if _, err := s.store.Backlog(t.Context()); err == nil {
		t.Error("the outbox is read-only, and nobody is told that claims cannot be given back")
	}
	if _, err := s.store.Backlog(t.Context()); err != nil {
		t.Errorf("the outbox can be written again: %v", err)
	}
	if doc := s.documents(t)[0]; doc["status"] != string(postrider.StatePending) {
		t.Errorf("the event is left %v", doc["status"])
	}
}

// TestABacklogOfClaimsIsOnlyMeasured: a relay that claims events takes over what others have left, and counts how often.
func TestABacklogOfClaimsIsOnlyMeasured(t *testing.T) {
	s := newStage(t, mongo.Config{})
	if _, err := s.db.Collection("outbox_events").InsertOne(t.Context(), plain(nil)); err != nil {
		t.Fatal(err)
	}
	s.leftBehind(t)
	if _, err := s.store.RowClaims().Backlog(t.Context()); err != nil {
		t.Fatal(err)
	}
	if doc := s.documents(t)[0]; doc["status"] != string(postrider.StateProcessing) {
		t.Errorf("the event is %v", doc["status"])
	}
}
