package presets_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// collection is the collection outbox of a service.
type collection struct {
	preset preset
	events *driver.Collection
}

// newCollection makes a database with the collection and the index that its service creates.
func newCollection(t *testing.T, dsn string, p preset) *collection {
	t.Helper()
	client, err := driver.Connect(options.Client().ApplyURI(dsn))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db := client.Database(strings.TrimPrefix(u.Path, "/"))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := db.Drop(ctx); err != nil {
			t.Error(err)
		}
		if err := client.Disconnect(ctx); err != nil {
			t.Error(err)
		}
	})
	events := db.Collection("outbox")
	unique := driver.IndexModel{Keys: bson.M{"dedupKey": 1}, Options: options.Index().SetUnique(true)}
	if _, err := events.Indexes().CreateOne(t.Context(), unique); err != nil {
		t.Fatal(err)
	}
	return &collection{p, events}
}

// add inserts the documents at once. Those of a transaction that is rolled back are not inserted at all: the compatible
// server of the tests has no transactions that it could roll back.
func (c *collection) add(t *testing.T, s *stage, some []event, commit bool) {
	t.Helper()
	if !commit {
		return
	}
	docs := make([]bson.M, len(some))
	for i, e := range some {
		docs[i] = c.preset.document(t, s, e)
	}
	if _, err := c.events.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
}

func (c *collection) left(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	n, err := c.events.CountDocuments(ctx, bson.M{"status": bson.M{"$ne": "SENT"}})
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}
