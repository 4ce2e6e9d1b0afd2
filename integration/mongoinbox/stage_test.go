// Package mongoinbox tests receipts on a MongoDB with transactions.
package mongoinbox

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/mongo"
)

// stage is a database with an inbox, a collection that effects write to, and a client that is watched.
type stage struct {
	client *driver.Client
	db     *driver.Database
	name   string // of the application, which the server knows the client by

	mu       sync.Mutex
	commands []bson.Raw
	failed   []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{name: "test-" + rand.Text()}
	s.client = connect(t, "POSTRIDER_TEST_MONGODB6", options.Client().SetAppName(s.name).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.commands = append(s.commands, slices.Clone(e.Command))
		},
		Failed: func(_ context.Context, e *event.CommandFailedEvent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failed = append(s.failed, e.CommandName)
		},
	}))
	s.db = newDatabase(t, s.client)
	if err := s.db.CreateCollection(t.Context(), "effects"); err != nil {
		t.Fatal(err)
	}
	if err := s.inbox(t, mongo.InboxConfig{}).Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func connect(t *testing.T, variable string, opts ...*options.ClientOptions) *driver.Client {
	t.Helper()
	return connectTo(t, servers.Address(t, variable), opts...)
}

func connectTo(t *testing.T, address string, opts ...*options.ClientOptions) *driver.Client {
	t.Helper()
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

// inbox is for a consumer named billing unless config names one.
func (s *stage) inbox(t *testing.T, config mongo.InboxConfig) *mongo.Inbox {
	t.Helper()
	if config.Consumer == "" {
		config.Consumer = "billing"
	}
	in, err := mongo.NewInbox(s.db.Collection("inbox_receipts"), config)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// sent returns the commands since the last call, and the names of those that failed.
func (s *stage) sent() (commands []bson.Raw, failed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	commands, failed = s.commands, s.failed
	s.commands, s.failed = nil, nil
	return commands, failed
}

// failures counts the commands of a name that have failed.
func (s *stage) failures(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, failed := range s.failed {
		if failed == name {
			n++
		}
	}
	return n
}

// fail makes commands of this stage fail at the server: mode and how are those of its fail point failCommand.
func (s *stage) fail(t *testing.T, mode any, how bson.D) {
	t.Helper()
	point := func(ctx context.Context, mode any) error {
		return s.client.Database("admin").RunCommand(ctx, bson.D{
			{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode},
			{Key: "data", Value: append(bson.D{{Key: "appName", Value: s.name}}, how...)},
		}).Err()
	}
	if err := point(t.Context(), mode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := point(context.WithoutCancel(t.Context()), "off"); err != nil {
			t.Error(err)
		}
	})
}

func times(n int) bson.M { return bson.M{"times": n} }

func message(id string) inbox.Message {
	return inbox.Message{Coordinates: "test:" + id, Headers: []inbox.Header{{Name: "X-Event-Id", Value: id}}}
}

// write is an effect that writes what once for every time that it runs.
func (s *stage) write(what string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.db.Collection("effects").InsertOne(ctx, bson.M{"what": what})
		return err
	}
}

// writeEach is an effect that writes the id of each message.
func (s *stage) writeEach(ctx context.Context, fresh []inbox.Message) error {
	for _, m := range fresh {
		if err := s.write(m.EventID())(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) effects(t *testing.T, what string) int64 {
	t.Helper()
	n, err := s.db.Collection("effects").CountDocuments(t.Context(), bson.M{"what": what})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *stage) receipts(t *testing.T, eventID string) []inbox.Receipt {
	t.Helper()
	found, err := s.inbox(t, mongo.InboxConfig{}).Receipts(t.Context(), eventID)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// process applies a message, whose effect is its id.
func (s *stage) process(t *testing.T, in *mongo.Inbox, id string, want inbox.Outcome) inbox.Result {
	t.Helper()
	got, err := in.Process(t.Context(), message(id), s.write(id))
	if got.Outcome != want || err != nil || got.Err != nil {
		t.Errorf("%s for %s: %q, %v; want %q", id, in.Consumer(), got.Outcome, err, want)
	}
	return got
}

func (s *stage) wantOne(t *testing.T, id string) {
	t.Helper()
	if n, found := s.effects(t, id), s.receipts(t, id); n != 1 || len(found) != 1 {
		t.Errorf("%d effects and receipts %+v of %s, want one each", n, found, id)
	}
}

func (s *stage) wantNone(t *testing.T, id string) {
	t.Helper()
	if n, found := s.effects(t, id), s.receipts(t, id); n != 0 || len(found) != 0 {
		t.Errorf("%d effects and receipts %+v of %s, want none", n, found, id)
	}
}
