package mongo

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// serious leaves out what is as it should be, and that the server has no transactions.
func serious(findings []operator.Finding) (serious []operator.Finding) {
	for _, f := range findings {
		if f.Level != operator.LevelOK && f.Subject != "database" {
			serious = append(serious, f)
		}
	}
	return serious
}

func wantFinding(t *testing.T, findings []operator.Finding, level operator.Level, subject string, words ...string) {
	t.Helper()
	for _, f := range findings {
		text := f.Message + " " + f.Hint
		fits := f.Level == level && f.Subject == subject
		for _, word := range words {
			fits = fits && strings.Contains(text, word)
		}
		if fits {
			return
		}
	}
	t.Errorf("no %s about %s with %q in %+v", level, subject, words, findings)
}

func TestVerifyFindsNothingInAFreshOutbox(t *testing.T) {
	s := newStage(t, mongo.Config{})
	findings := s.store.Verify(t.Context())
	if odd := serious(findings); len(odd) > 0 {
		t.Errorf("findings %+v", odd)
	}
	wantFinding(t, findings, operator.LevelOK, "collection outbox_events", "version 2, 4 shards")
	if hasTransactions(t, s.client) {
		wantFinding(t, findings, operator.LevelOK, "database", "MongoDB")
	} else {
		wantFinding(t, findings, operator.LevelWarning, "database", "FerretDB", "no transactions")
	}
}

func TestVerifyNamesTheCommandForAMissingIndex(t *testing.T) {
	s := newStage(t, mongo.Config{})
	events := s.db.Collection("outbox_events")
	for _, name := range []string{"ready", "waiting"} {
		if err := events.Indexes().DropOne(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	other := driver.IndexModel{Keys: bson.M{"shard": 1}, Options: options.Index().SetName("waiting")}
	if _, err := events.Indexes().CreateOne(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	findings := s.store.Verify(t.Context())
	wantFinding(t, findings, operator.LevelError, "index ready of outbox_events", "missing",
		`db.getCollection("outbox_events").createIndex({"shard":1,"_id":1}, {"name":"ready","partialFilterExpression":{`)
	wantFinding(t, findings, operator.LevelError, "index waiting of outbox_events", `dropIndex("waiting")`, "createIndex(")
	if n := len(serious(findings)); n != 2 {
		t.Errorf("%d findings: %+v", n, findings)
	}
}

func TestVerifyMissesTheRulesAndInitGivesThem(t *testing.T) {
	s := newStage(t, mongo.Config{})
	err := s.db.RunCommand(t.Context(), bson.D{{Key: "collMod", Value: "outbox_events"}, {Key: "validator", Value: bson.M{}}}).Err()
	if err != nil {
		t.Fatal(err)
	}
	wantFinding(t, s.store.Verify(t.Context()), operator.LevelWarning, "collection outbox_events", "no validator", "postrider init")
	if err := s.store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if odd := serious(s.store.Verify(t.Context())); len(odd) > 0 {
		t.Errorf("findings after another init: %+v", odd)
	}
}

func TestVerifyFindsDocumentsOutsideTheStateMachine(t *testing.T) {
	s := newStage(t, mongo.Config{})
	events := s.db.Collection("outbox_events")
	unchecked := options.InsertMany().SetBypassDocumentValidation(true)
	_, err := events.InsertMany(t.Context(), []bson.M{
		{"event_id": "1", "status": "SENT", "shard": 0},
		{"event_id": "2", "status": "PENDING", "shard": 0},
		{"event_id": "3", "status": "PENDING", "shard": 99, "waiting": false},
		{"event_id": "4", "status": "PUBLISHED", "shard": 0},
		{"event_id": "5", "status": "PROCESSING", "shard": 0},
		{"event_id": "6", "status": "PENDING", "shard": 0, "waiting": true, "next_attempt_at": time.Now().AddDate(2, 0, 0)},
	}, unchecked)
	if err != nil {
		t.Fatal(err)
	}
	findings := s.store.Verify(t.Context())
	for _, what := range []string{
		"in a state that is none", "without a waiting", "in a shard that is none", "PUBLISHED without published_at", "PROCESSING",
		"not due for more than a year",
	} {
		wantFinding(t, findings, operator.LevelWarning, "collection outbox_events", what, `{"$oid":"`)
	}
	if n := len(serious(findings)); n != 6 {
		t.Errorf("%d findings: %+v", n, findings)
	}
}

func TestVerifyAndTheRelaySayThatTheCollectionsAreMissing(t *testing.T) {
	client := connect(t)
	store, err := mongo.Open(newDatabase(t, client).Collection("outbox_events"), mongo.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	wantFinding(t, store.Verify(t.Context()), operator.LevelError, "collection outbox_events", "postrider init")
	if _, err := store.Backlog(t.Context()); !errors.Is(err, relay.ErrSchema) {
		t.Errorf("got %v, want ErrSchema", err)
	}
}

func TestAServerThatIsAwayEndsACallWithItsContext(t *testing.T) {
	client, err := driver.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1/"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(t.Context())
	store, err := mongo.Open(client.Database("test").Collection("outbox_events"), mongo.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := store.Read(ctx, relay.ReadRequest{Shards: []int{0}, PerShard: 1, Limit: 1, MaxBytes: 1}); !errors.Is(err, mongo.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
}

func TestAMalformedDocumentIsDeadAndHarmsNoOther(t *testing.T) {
	s := newStage(t, mongo.Config{})
	ctx, session := s.begin(t)
	if _, err := s.outbox.Add(ctx, order("a"), order("b"), order("c"), order("d")); err != nil {
		t.Fatal(err)
	}
	s.commit(t, session)
	events := s.db.Collection("outbox_events")
	for key, change := range map[string]bson.M{
		"a": {"payload": bson.M{"total": 1}}, "b": {"aggregate_version": "three", "retry_count": "none"}, "c": {"headers": "x"},
	} {
		_, err := events.UpdateOne(t.Context(), bson.M{"aggregate_id": key}, bson.M{"$set": change},
			options.UpdateOne().SetBypassDocumentValidation(true))
		if err != nil {
			t.Fatal(err)
		}
	}
	member := relay.Member{Name: "main", ID: "a", Claim: relay.ClaimShard, Shards: shards, LeaseTTL: time.Minute}
	table, err := s.store.Renew(t.Context(), relay.Heartbeat{Member: member}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen []relay.Lease
	for _, l := range table.Shards {
		seen = append(seen, l.Lease)
	}
	leases, err := s.store.Acquire(t.Context(), member, seen)
	if err != nil {
		t.Fatal(err)
	}
	read, err := s.store.Read(t.Context(), relay.ReadRequest{Shards: []int{0, 1, 2, 3}, PerShard: 9, Limit: 9, MaxBytes: 1 << 20})
	if err != nil || len(read) != 4 {
		t.Fatalf("read %d events, %v; want 4", len(read), err)
	}
	var outcomes []relay.Settlement
	for _, e := range read {
		if bad := e.AggregateID != "d"; bad != (e.Malformed != nil) {
			t.Errorf("event of key %s: malformed is %v", e.AggregateID, e.Malformed)
		}
		outcomes = append(outcomes, relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: "DEAD", Error: "malformed"})
	}
	settled, err := s.store.Settle(t.Context(), member, outcomes)
	if err != nil || len(settled) != 4 {
		t.Errorf("settled %v, %v; want all four", settled, err)
	}
	rows, err := s.store.Events(t.Context(), operator.Filter{State: "DEAD"})
	if err != nil || len(rows) != 4 {
		t.Errorf("listed %d dead events, %v; want 4", len(rows), err)
	}
}

func TestTheServerRefusesDocumentsThatNoRelayCouldServe(t *testing.T) {
	s := newStage(t, mongo.Config{})
	events := s.db.Collection("outbox_events")
	for what, change := range map[string]bson.M{
		"an unknown state":              {"status": "SENT"},
		"no waiting":                    {"waiting": nil},
		"an empty key":                  {"aggregate_id": ""},
		"a key that is no text":         {"aggregate_id": 17},
		"a payload as a document":       {"payload": bson.M{"total": 3}},
		"an _id of another type":        {"_id": "17"},
		"a time as text":                {"next_attempt_at": "2026-03-09"},
		"a shard that is no number":     {"shard": "3"},
		"a version below the first one": {"aggregate_version": 0},
	} {
		if _, err := events.InsertOne(t.Context(), plain(change)); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	if _, err := events.InsertOne(t.Context(), plain(nil)); err != nil {
		t.Errorf("a document as the documentation shows it: %v", err)
	}
}

// plain is an event as a producer in another language writes it; change holds what it does otherwise.
func plain(change bson.M) bson.M {
	now := time.Now()
	doc := bson.M{
		"event_id": "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", "aggregate_type": "order", "aggregate_id": "17", "event_type": "OrderPlaced",
		"payload": `{"total": 3}`, "content_type": "application/json", "status": "PENDING", "retry_count": 0, "waiting": false,
		"next_attempt_at": now, "shard": 3, "created_at": now,
	}
	maps.Copy(doc, change)
	return doc
}
