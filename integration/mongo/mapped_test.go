package mongo

import (
	"crypto/rand"
	"fmt"
	"maps"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/storetest"
)

// domainEvents is the preset, with fields for all that the suite looks at besides.
func domainEvents(t *testing.T) mongo.Mapping {
	t.Helper()
	preset, found := mongo.FindPreset("domain-events")
	if !found {
		t.Fatal("the preset domain-events is missing")
	}
	m := preset.Mapping
	m.EventID, m.Topic, m.ContentType, m.Headers = "meta.id, _id", "meta.topic", "meta.type", "meta.headers"
	m.LastError, m.PublishedAt, m.PublishedTo, m.CreatedAt = "lastError", "sentAt", "sentTo", "createdAt"
	return m
}

// sparse maps no more than what is required.
func sparse() mongo.Mapping {
	return mongo.Mapping{AggregateType: "domain", AggregateID: "objectId", EventType: "eventType", Payload: "payload", Status: "status",
		Words: mongo.Words{Pending: []string{"PENDING", "AGAIN"}, Published: "SENT", Dead: "FAILED", Discarded: "DROPPED"}}
}

func TestMappedCollection(t *testing.T) {
	t.Parallel()
	client, mapping := connect(t), domainEvents(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		h := mappedHarness(t, client, mongo.StoreConfig{Shards: shards, Mapping: &mapping})
		h.Lacks = append(h.Lacks, storetest.Columns)
		return h
	})
}

func TestClaimsOfAMappedCollection(t *testing.T) {
	t.Parallel()
	client, mapping := connect(t), domainEvents(t)
	storetest.RunClaims(t, func(t *testing.T) storetest.Harness {
		h := mappedHarness(t, client, mongo.StoreConfig{Shards: shards, Mapping: &mapping})
		h.Lacks = append(h.Lacks, storetest.Columns)
		return h
	})
}

func TestJobsOfAMappedCollection(t *testing.T) {
	t.Parallel()
	client, mapping := connect(t), domainEvents(t)
	storetest.RunJobs(t, func(t *testing.T) storetest.Harness {
		return mappedHarness(t, client, mongo.StoreConfig{Shards: shards, Mapping: &mapping})
	})
}

func mappedHarness(t *testing.T, client *driver.Client, config mongo.StoreConfig) storetest.Harness {
	t.Helper()
	events := newDatabase(t, client).Collection("outbox")
	unique := driver.IndexModel{Keys: bson.M{"dedupKey": 1}, Options: options.Index().SetUnique(true).SetSparse(true)}
	if _, err := events.Indexes().CreateOne(t.Context(), unique); err != nil {
		t.Fatal(err)
	}
	store, err := mongo.Open(events, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin := func(*testing.T) storetest.Tx { return &theirTransaction{events: events} }
	return storetest.Harness{
		Store: store, Operator: store, Jobs: store, Shards: shards, Init: store.Init, Begin: begin,
		Claims: func() relay.Store { return store.RowClaims() },
		Lacks:  lacks(t, client),
	}
}

// theirTransaction writes what was added when it commits: then it is seen as a whole on servers of any kind.
type theirTransaction struct {
	events *driver.Collection
	begun  time.Time // by the server's clock
	added  []bson.M
}

func (tx *theirTransaction) Add(t *testing.T, e storetest.Event) string {
	t.Helper()
	if e.DedupKey != "" {
		for _, doc := range tx.added {
			if doc["dedupKey"] == e.DedupKey {
				return ""
			}
		}
	}
	if tx.begun.IsZero() {
		tx.begun = sayHello(t, tx.events.Database().Client()).LocalTime
	}
	id := bson.NewObjectID()
	meta := bson.M{}
	for field, value := range map[string]string{"id": e.EventID, "topic": e.Topic, "type": e.ContentType} {
		if value != "" {
			meta[field] = value
		}
	}
	if e.EventID == "" {
		meta["id"] = newUUID()
	}
	if e.Headers != "" {
		meta["headers"] = document(t, e.Headers)
	}
	doc := theirDocument(bson.M{
		"_id": id, "domain": e.AggregateType, "objectId": e.Key, "eventType": e.EventType, "payload": string(e.Payload), "meta": meta,
		"createdAt": tx.begun, "nextAttemptAt": tx.begun.Add(e.DueIn),
	})
	if e.DedupKey != "" {
		doc["dedupKey"] = e.DedupKey
	}
	tx.added = append(tx.added, doc)
	return id.Hex()
}

// theirDocument is a document as their services write it; change holds what is otherwise.
func theirDocument(change bson.M) bson.M {
	doc := bson.M{"status": "PENDING", "attempts": 0, "lockedBy": nil, "leaseExpiresAt": nil}
	maps.Copy(doc, change)
	return doc
}

func (tx *theirTransaction) Commit(t *testing.T) {
	t.Helper()
	if _, err := tx.events.InsertMany(t.Context(), tx.added); err != nil {
		t.Fatal(err)
	}
}

func (tx *theirTransaction) Rollback(*testing.T) { tx.added = nil }

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
