package daemon

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
)

// newMongoDB returns a configuration with an outbox of its own on the server of POSTRIDER_TEST_MONGODB, and its database.
func newMongoDB(t *testing.T) (*config.Config, *driver.Database) {
	t.Helper()
	server := os.Getenv("POSTRIDER_TEST_MONGODB")
	if server == "" {
		t.Fatal("POSTRIDER_TEST_MONGODB is not set: scripts/services starts the servers")
	}
	client, err := driver.Connect(options.Client().ApplyURI(server))
	if err != nil {
		t.Fatal(err)
	}
	db := client.Database("daemon_" + strings.ToLower(rand.Text()))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := db.Drop(ctx); err != nil {
			t.Error(err)
		}
		if err := client.Disconnect(ctx); err != nil {
			t.Error(err)
		}
	})
	address, parameters, _ := strings.Cut(server, "?")
	dsn := strings.TrimRight(address, "/") + "/" + db.Name() + "?" + parameters
	return parse(t, `
outbox: {dsn: "`+dsn+`"}
relay: {shards: 4}
sinks: {out: {type: stdout}}
routes: [{sink: out, topic: orders}]
`), db
}

func TestOutboxInMongoDB(t *testing.T) {
	c, db := newMongoDB(t)
	outbox, err := wiring.CreateOutbox(c)
	if err != nil {
		t.Fatal(err)
	}
	defer outbox.Close()
	if err := outbox.Store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = db.Collection("outbox_events").InsertOne(t.Context(), bson.M{
		"event_id": "00000000-0000-4000-8000-000000000001", "aggregate_type": "order", "aggregate_id": "order-1", "event_type": "OrderPaid", "payload": "{}",
		"content_type": "application/json", "status": "PENDING", "retry_count": 0, "waiting": false, "shard": 1,
		"created_at": time.Now(), "next_attempt_at": time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, c)
	await(t, "published", r, func() bool { return strings.Contains(r.stdout.String(), `"key":"order-1"`) })
	await(t, "shown", r, func() bool { _, page := r.get("/"); return strings.Contains(page, "4 owned") })
	if err := r.end(t); err != nil {
		t.Errorf("Run: %v", err)
	}
}
