// Package mongo runs the conformance suite of stores on a MongoDB server, and what only a server can show of the outbox.
package mongo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/storetest"
)

const shards = 4

func TestStore(t *testing.T) {
	t.Parallel()
	client := connect(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness { return newHarness(t, client) })
}

func TestClaims(t *testing.T) {
	t.Parallel()
	client := connect(t)
	storetest.RunClaims(t, func(t *testing.T) storetest.Harness { return newHarness(t, client) })
}

func TestJobs(t *testing.T) {
	t.Parallel()
	client := connect(t)
	storetest.RunJobs(t, func(t *testing.T) storetest.Harness { return newHarness(t, client) })
}

func newHarness(t *testing.T, client *driver.Client) storetest.Harness {
	t.Helper()
	db := newDatabase(t, client)
	store := open(t, db, mongo.StoreConfig{Shards: shards})
	outbox, err := mongo.New(db.Collection("outbox_events"), mongo.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := &producers{outbox: outbox, events: db.Collection("outbox_events"), transactions: hasTransactions(t, client)}
	return storetest.Harness{
		Store: store, Operator: store, Jobs: store, Shards: shards, Init: store.Init, Begin: p.begin,
		Claims: func() relay.Store { return store.RowClaims() },
		Lacks:  lacks(t, client),
	}
}

// lacks is what the suite cannot ask of a server without transactions.
func lacks(t *testing.T, client *driver.Client) []storetest.Feature {
	t.Helper()
	if hasTransactions(t, client) {
		return nil
	}
	return []storetest.Feature{storetest.Atomic}
}

// connect connects to the server of POSTRIDER_TEST_MONGODB.
func connect(t *testing.T, opts ...*options.ClientOptions) *driver.Client {
	t.Helper()
	address := os.Getenv("POSTRIDER_TEST_MONGODB")
	if address == "" {
		t.Fatal("POSTRIDER_TEST_MONGODB is not set: scripts/services starts the servers")
	}
	client, err := driver.Connect(append([]*options.ClientOptions{options.Client().ApplyURI(address)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return client
}

// newDatabase is empty at first and gone after the test.
func newDatabase(t *testing.T, client *driver.Client) *driver.Database {
	t.Helper()
	db := client.Database("test_" + rand.Text())
	t.Cleanup(func() {
		if err := db.Drop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return db
}

// open opens a Store in the database and creates its collections.
func open(t *testing.T, db *driver.Database, config mongo.StoreConfig) *mongo.Store {
	t.Helper()
	store, err := mongo.Open(db.Collection("outbox_events"), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// hello is what the server says of itself.
type hello struct {
	SetName   string    `bson:"setName"`
	Msg       string    `bson:"msg"`
	LocalTime time.Time `bson:"localTime"`
}

func sayHello(t *testing.T, client *driver.Client) (h hello) {
	t.Helper()
	if err := client.Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return h
}

func hasTransactions(t *testing.T, client *driver.Client) bool {
	t.Helper()
	h := sayHello(t, client)
	return h.SetName != "" || h.Msg == "isdbgrid"
}

// producers begin transactions in which an Outbox adds events.
type producers struct {
	outbox       *mongo.Outbox
	events       *driver.Collection
	transactions bool
}

func (p *producers) begin(t *testing.T) storetest.Tx {
	t.Helper()
	session, err := p.events.Database().Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.EndSession(context.WithoutCancel(t.Context())) })
	return &transaction{producers: p, session: session}
}

// transaction is a producer's transaction. Where the server has none, what it adds is written at once; it is then kept from
// relays by a state that nobody knows until Commit, and deleted by Rollback.
type transaction struct {
	*producers
	session *driver.Session
	added   []bson.ObjectID
}

const uncommitted = "UNCOMMITTED"

func (tx *transaction) Add(t *testing.T, e storetest.Event) string {
	t.Helper()
	ctx := driver.NewSessionContext(t.Context(), tx.session)
	headers, malformed := headersOf(e.Headers)
	event := postrider.Event{ID: e.EventID, AggregateType: e.AggregateType, AggregateID: e.Key, Type: e.EventType, Topic: e.Topic,
		Payload: e.Payload, ContentType: e.ContentType, Headers: headers, DedupKey: e.DedupKey}
	if e.Version != nil {
		event.AggregateVersion = *e.Version
	}
	if e.DueIn != 0 {
		event.At = sayHello(t, tx.events.Database().Client()).LocalTime.Add(e.DueIn)
	}
	added, err := tx.outbox.Add(ctx, event)
	if err != nil {
		t.Fatal(err)
	}
	if added[0].Dropped {
		return ""
	}
	change := bson.M{"event_id": added[0].EventID} // an update needs one
	if malformed {
		change["headers"] = document(t, e.Headers)
	}
	if !tx.transactions {
		change["status"] = uncommitted
	}
	var doc struct {
		ID bson.ObjectID `bson:"_id"`
	}
	err = tx.events.FindOneAndUpdate(ctx, bson.M{"event_id": added[0].EventID}, bson.M{"$set": change},
		options.FindOneAndUpdate().SetBypassDocumentValidation(!tx.transactions)).Decode(&doc)
	if err != nil {
		t.Fatal(err)
	}
	tx.added = append(tx.added, doc.ID)
	return doc.ID.Hex()
}

// headersOf reads headers that are a JSON object of strings; others an Outbox would not take.
func headersOf(text string) (headers map[string]string, malformed bool) {
	var values map[string]*string
	if text == "" {
		return nil, false
	}
	if json.Unmarshal([]byte(text), &values) != nil {
		return nil, true
	}
	headers = map[string]string{}
	for name, value := range values {
		if value == nil {
			return nil, true
		}
		headers[name] = *value
	}
	return headers, false
}

func document(t *testing.T, text string) (doc bson.Raw) {
	t.Helper()
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func (tx *transaction) Commit(t *testing.T) {
	t.Helper()
	if tx.transactions {
		if err := tx.session.CommitTransaction(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	filter := bson.M{"_id": bson.M{"$in": tx.added}}
	if _, err := tx.events.UpdateMany(t.Context(), filter, bson.M{"$set": bson.M{"status": postrider.StatePending}}); err != nil {
		t.Fatal(err)
	}
}

func (tx *transaction) Rollback(t *testing.T) {
	t.Helper()
	if tx.transactions {
		if err := tx.session.AbortTransaction(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := tx.events.DeleteMany(t.Context(), bson.M{"_id": bson.M{"$in": tx.added}}); err != nil {
		t.Fatal(err)
	}
}
