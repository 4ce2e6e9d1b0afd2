package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/relay"
)

// commands keeps what the driver sends.
type commands struct {
	mu   sync.Mutex
	sent []bson.Raw
}

func (c *commands) monitor() *options.ClientOptions {
	return options.Client().SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent = append(c.sent, slices.Clone(e.Command))
	}})
}

// take returns what was sent since the last take.
func (c *commands) take() []bson.Raw {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := c.sent
	c.sent = nil
	return sent
}

// name returns the command's own name and the collection.
func name(t *testing.T, command bson.Raw) string {
	t.Helper()
	first, err := command.IndexErr(0)
	if err != nil {
		t.Fatal(err)
	}
	collection, _ := first.Value().StringValueOK()
	return first.Key() + " " + collection
}

// stage is an empty outbox whose driver is watched.
type stage struct {
	commands
	client *driver.Client
	db     *driver.Database
	store  *mongo.Store
	outbox *mongo.Outbox
}

func newStage(t *testing.T, config mongo.Config, opts ...*options.ClientOptions) *stage {
	t.Helper()
	s := &stage{}
	s.client = connect(t, append(opts, s.monitor())...)
	s.db = newDatabase(t, s.client)
	s.store = open(t, s.db, mongo.StoreConfig{Shards: shards})
	var err error
	if s.outbox, err = mongo.New(s.db.Collection("outbox_events"), config); err != nil {
		t.Fatal(err)
	}
	return s
}

// begin returns a context with a running transaction.
func (s *stage) begin(t *testing.T) (context.Context, *driver.Session) {
	t.Helper()
	session, err := s.client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.EndSession(context.WithoutCancel(t.Context())) })
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	return driver.NewSessionContext(t.Context(), session), session
}

// commit commits where the server has transactions; elsewhere everything was written already.
func (s *stage) commit(t *testing.T, session *driver.Session) {
	t.Helper()
	if !hasTransactions(t, s.client) {
		return
	}
	if err := session.CommitTransaction(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) documents(t *testing.T) (docs []bson.M) {
	t.Helper()
	cursor, err := s.db.Collection("outbox_events").Find(t.Context(), bson.M{}, options.Find().SetSort(bson.M{"_id": 1}))
	if err != nil {
		t.Fatal(err)
	}
	if err := cursor.All(t.Context(), &docs); err != nil {
		t.Fatal(err)
	}
	return docs
}

func order(key string) postrider.Event {
	return postrider.Event{AggregateType: "order", AggregateID: key, Type: "OrderPlaced", Payload: []byte(`{"total": 1.0}`)}
}

func TestTheEventIsPartOfTheBusinessTransaction(t *testing.T) {
	s := newStage(t, mongo.Config{})
	ctx, session := s.begin(t)
	s.take()
	if _, err := s.db.Collection("orders").InsertOne(ctx, bson.M{"_id": 17}); err != nil {
		t.Fatal(err)
	}
	event := order("17")
	event.DedupKey = "once"
	if _, err := s.outbox.Add(ctx, event, order("18")); err != nil {
		t.Fatal(err)
	}
	var names []string
	sent := s.take()
	for i, command := range sent {
		names = append(names, name(t, command))
		if autocommit, ok := command.Lookup("autocommit").BooleanOK(); !ok || autocommit {
			t.Errorf("%s has autocommit %v, want false", names[i], autocommit)
		}
		for _, field := range []string{"lsid", "txnNumber"} {
			if got, want := command.Lookup(field), sent[0].Lookup(field); !got.Equal(want) || got.IsZero() {
				t.Errorf("%s has %s %v, the business write has %v", names[i], field, got, want)
			}
		}
		if start, _ := command.Lookup("startTransaction").BooleanOK(); start != (i == 0) {
			t.Errorf("%s has startTransaction %v", names[i], start)
		}
		for _, field := range []string{"readConcern", "writeConcern"} {
			if _, err := command.LookupErr(field); i > 0 && err == nil {
				t.Errorf("%s has a %s of its own, which a transaction refuses", names[i], field)
			}
		}
	}
	want := []string{
		"insert orders", "find outbox_events", "find outbox_schema",
		"findAndModify outbox_keys", "findAndModify outbox_keys", "insert outbox_events",
	}
	if !slices.Equal(names, want) {
		t.Errorf("sent %q, want %q", names, want)
	}
	s.commit(t, session)
	if n := len(s.documents(t)); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

func TestAddIsRefusedWithoutATransaction(t *testing.T) {
	s := newStage(t, mongo.Config{})
	session, err := s.client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(t.Context())
	idle := driver.NewSessionContext(t.Context(), session)
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := session.AbortTransaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.take()
	for what, ctx := range map[string]context.Context{"no session": t.Context(), "an aborted transaction": idle} {
		_, err := s.outbox.Add(ctx, order("17"))
		if _, refused := errors.AsType[*mongo.TransactionError](err); !refused {
			t.Errorf("%s: got %v, want a TransactionError", what, err)
		}
	}
	if sent := s.take(); len(sent) > 0 {
		t.Errorf("sent %s", sent)
	}
}

func TestUnfitEventsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	s := newStage(t, mongo.Config{Validate: func(e postrider.Event) error {
		if e.AggregateID == "18" {
			return errors.New("breaks its contract")
		}
		return nil
	}})
	ctx, _ := s.begin(t)
	s.take()
	bad := order("")
	bad.Payload = []byte(`{`)
	_, err := s.outbox.Add(ctx, order("17"), bad, order("18"))
	problems, ok := errors.AsType[postrider.EventErrors](err)
	if !ok || len(problems) != 3 || problems[0].Index != 1 || problems[2].Index != 2 {
		t.Errorf("got %v, want two EventErrors of event 1 and one of event 2", err)
	}
	if sent := s.take(); len(sent) > 0 {
		t.Errorf("sent %s", sent)
	}
}

func TestTheDocumentOfAnEvent(t *testing.T) {
	s := newStage(t, mongo.Config{Trace: func(context.Context) map[string]string { return map[string]string{"traceparent": "00-1"} }})
	ctx, session := s.begin(t)
	e := order("17")
	e.ID, e.Topic, e.DedupKey, e.AggregateVersion = "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", "orders", "d", 3
	e.Headers = map[string]string{"x.y": "1", "$z": "2"}
	e.At = time.Now().Add(time.Hour)
	if _, err := s.outbox.Add(ctx, e, order("18")); err != nil {
		t.Fatal(err)
	}
	s.commit(t, session)
	docs := s.documents(t)
	full, plain := docs[0], docs[1]
	created := plain["created_at"].(bson.DateTime)
	if age := sayHello(t, s.client).LocalTime.Sub(created.Time()); age < 0 || age > time.Minute {
		t.Errorf("created_at is %v old by the server's clock", age)
	}
	if got := full["_id"].(bson.ObjectID).Timestamp(); got.Sub(created.Time()).Abs() > time.Minute {
		t.Errorf("the _id begins with %v", got)
	}
	for field, want := range map[string]any{
		"event_id": "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", "aggregate_type": "order", "aggregate_id": "17", "event_type": "OrderPlaced",
		"aggregate_version": int64(3), "topic": "orders", "payload": `{"total": 1.0}`, "content_type": "application/json", "dedup_key": "d",
		"status": "PENDING", "retry_count": int32(0), "waiting": true,
	} {
		if full[field] != want {
			t.Errorf("%s is %#v, want %#v", field, full[field], want)
		}
	}
	headers := map[string]string{}
	for _, field := range full["headers"].(bson.D) {
		headers[field.Key] = field.Value.(string)
	}
	if fmt.Sprint(headers) != "map[$z:2 traceparent:00-1 x.y:1]" {
		t.Errorf("headers are %v", headers)
	}
	if due := full["next_attempt_at"].(bson.DateTime).Time(); due.Before(e.At) || due.Sub(e.At) > time.Millisecond {
		t.Errorf("due at %v, want %v", due, e.At)
	}
	if plain["waiting"] != false || plain["next_attempt_at"] != created {
		t.Errorf("an event that is due at once: %v", plain)
	}
	for _, field := range []string{"topic", "dedup_key", "aggregate_version", "last_error", "published_to", "published_at"} {
		if value, set := plain[field]; set {
			t.Errorf("%s is %v, want it left out", field, value)
		}
	}
}

func TestBinaryPayloadsKeepTheirBytes(t *testing.T) {
	s := newStage(t, mongo.Config{Binary: true})
	ctx, session := s.begin(t)
	e := order("17")
	e.Payload, e.ContentType = []byte{0, 0xff, 0xfe, 0}, "application/x-protobuf"
	if _, err := s.outbox.Add(ctx, e); err != nil {
		t.Fatal(err)
	}
	s.commit(t, session)
	events, err := s.store.Read(t.Context(), relay.ReadRequest{Shards: []int{0, 1, 2, 3}, PerShard: 1, Limit: 1, MaxBytes: 1})
	if err != nil || len(events) != 1 || string(events[0].Payload) != "\x00\xff\xfe\x00" {
		t.Errorf("read %v, %v", events, err)
	}
}

func TestADuplicateIsDroppedAndTheTransactionGoesOn(t *testing.T) {
	s := newStage(t, mongo.Config{})
	once := order("17")
	once.DedupKey = "once"
	for round := range 2 {
		ctx, session := s.begin(t)
		added, err := s.outbox.Add(ctx, order("17"), once, once)
		if err != nil {
			t.Fatal(err)
		}
		if added[0].Dropped || added[1].Dropped != (round == 1) || !added[2].Dropped || added[2].EventID != "" {
			t.Errorf("round %d: added %+v", round, added)
		}
		s.commit(t, session)
	}
	if n := len(s.documents(t)); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
}

func TestPositionsOfAKeyNeverRepeat(t *testing.T) {
	s := newStage(t, mongo.Config{})
	const writers, rounds = 8, 10
	// The key's document is there first: FerretDB fails when several make it at the same time.
	if err := s.inTransaction(t.Context(), func(ctx context.Context) error {
		_, err := s.outbox.Add(ctx, order("hot"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range writers {
		outbox, err := mongo.New(s.db.Collection("outbox_events"), mongo.Config{}) // another process knows nothing of the others' positions
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range rounds {
				if err := s.inTransaction(t.Context(), func(ctx context.Context) error {
					_, err := outbox.Add(ctx, order("hot"), order("hot"))
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	positions := map[string]bool{}
	for _, doc := range s.documents(t) {
		id := doc["_id"].(bson.ObjectID).Hex()
		positions[id[:13]] = true // seconds and microseconds, without the random bits
	}
	if want := 1 + 2*writers*rounds; len(positions) != want {
		t.Errorf("%d positions of %d events", len(positions), want)
	}
}

// inTransaction runs fn in a transaction, as often as it takes.
func (s *stage) inTransaction(ctx context.Context, fn func(context.Context) error) error {
	session, err := s.client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(ctx)
	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) { return nil, fn(ctx) })
	if server, ok := errors.AsType[driver.ServerError](err); ok && server.HasErrorCode(59) { // FerretDB knows no commitTransaction
		return nil
	}
	return err
}

func TestPositionsFollowTheServersClockAndNeverFallBehindTheKeysLast(t *testing.T) {
	s := newStage(t, mongo.Config{})
	ahead := sayHello(t, s.client).LocalTime.Add(time.Hour).UnixMicro()
	if _, err := s.db.Collection("outbox_keys").InsertOne(t.Context(), bson.M{"_id": "ahead", "position": ahead}); err != nil {
		t.Fatal(err)
	}
	ctx, session := s.begin(t)
	if _, err := s.outbox.Add(ctx, order("fresh")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.outbox.Add(ctx, order("ahead"), order("ahead")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.outbox.Add(ctx, order("later")); err != nil {
		t.Fatal(err)
	}
	s.commit(t, session)
	var key struct {
		Position int64 `bson:"position"`
	}
	if err := s.db.Collection("outbox_keys").FindOne(t.Context(), bson.M{"_id": "ahead"}).Decode(&key); err != nil || key.Position != ahead+2 {
		t.Errorf("the key's last position is %d, %v; want %d", key.Position, err, ahead+2)
	}
	docs := s.documents(t)
	now := sayHello(t, s.client).LocalTime
	for i, key := range []string{"fresh", "ahead", "ahead", "later"} {
		want := now.Add(time.Hour)
		if i == 0 {
			want = now
		}
		if docs[i]["aggregate_id"] != key {
			t.Errorf("event %d is of key %v, want %s: one Outbox adds in one order", i, docs[i]["aggregate_id"], key)
		}
		if got := docs[i]["_id"].(bson.ObjectID).Timestamp(); got.Sub(want).Abs() > time.Minute {
			t.Errorf("event %d has its position at %v, want %v", i, got, want)
		}
	}
}

func TestAddSaysThatTheOutboxIsMissing(t *testing.T) {
	s := newStage(t, mongo.Config{})
	ctx, _ := s.begin(t)
	outbox, err := mongo.New(s.db.Collection("never_created"), mongo.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outbox.Add(ctx, order("17")); !errors.Is(err, relay.ErrSchema) {
		t.Errorf("got %v, want ErrSchema", err)
	}
}
