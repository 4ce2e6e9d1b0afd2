package mongoinbox

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/mongo"
)

// addReceipts writes receipts of some age, whose keys begin with prefix, as those who write them in another language.
func (s *stage) addReceipts(t *testing.T, consumer, prefix string, n int, age time.Duration) {
	t.Helper()
	docs := make([]bson.M, n)
	for i := range docs {
		docs[i] = receiptOf(consumer, fmt.Sprint(prefix, i), time.Now().Add(-age)) // this machine runs the server as well
	}
	if _, err := s.db.Collection("inbox_receipts").InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
}

func receiptOf(consumer, key string, at time.Time) bson.M {
	return bson.M{"_id": key + "\n" + consumer, "consumer": consumer, "dedup_key": key, "applied_at": at, "duplicates": 0}
}

func TestCleanRemovesWhatIsOlderThanTheWindow(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{Window: time.Hour})
	s.addReceipts(t, "billing", "old", 2500, 61*time.Minute)
	s.addReceipts(t, "billing", "new", 10, 59*time.Minute)
	s.addReceipts(t, "shipping", "old", 10, 61*time.Minute)
	clean := func(want int64) {
		t.Helper()
		if n, err := in.Clean(t.Context()); n != want || err != nil {
			t.Errorf("%d receipts removed, %v; want %d", n, err, want)
		}
	}
	s.sent()
	clean(2500)
	sent, _ := s.sent()
	deletes := 0
	for _, command := range sent {
		if command.Index(0).Key() == "delete" {
			deletes++
		}
	}
	if deletes != 3 {
		t.Errorf("removed by %d commands, want 3", deletes)
	}
	if left, err := s.db.Collection("inbox_receipts").CountDocuments(t.Context(), bson.M{}); err != nil || left != 20 {
		t.Errorf("%d receipts left (%v), want those in the window and those of others, 20", left, err)
	}
	s.process(t, in, "old1", inbox.Applied)
	s.process(t, in, "new1", inbox.Duplicate)

	s.addReceipts(t, "billing", "older", 10, 2*time.Hour)
	clean(0) // somebody has cleaned just now
	if _, err := s.db.Collection("inbox_consumers").UpdateByID(t.Context(), "billing", bson.M{"$set": bson.M{"cleaned_at": time.Now().Add(-time.Minute)}}); err != nil {
		t.Fatal(err)
	}
	clean(10)
}

func TestOneOfManyCleanersCleans(t *testing.T) {
	s := newStage(t)
	s.addReceipts(t, "billing", "old", 10, 2*time.Hour)
	in := s.inbox(t, mongo.InboxConfig{Window: time.Hour})
	var removed []int64
	for _, n := range atOnce(8, func() int64 {
		n, err := in.Clean(t.Context())
		if err != nil {
			t.Error(err)
		}
		return n
	}) {
		if n > 0 {
			removed = append(removed, n)
		}
	}
	if !reflect.DeepEqual(removed, []int64{10}) {
		t.Errorf("removed %v, want 10 by one", removed)
	}
}

func TestCleanStoresTheWindow(t *testing.T) {
	s := newStage(t)
	for _, window := range []time.Duration{time.Hour, 2 * time.Hour} {
		in := s.inbox(t, mongo.InboxConfig{Window: window})
		if _, err := in.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		found, err := in.Consumers(t.Context())
		if err != nil || len(found) != 1 || found[0].WindowSeconds == nil || *found[0].WindowSeconds != int64(window.Seconds()) || found[0].CleanedAt == nil {
			t.Errorf("%+v, %v; want a window of %v", found, err, window)
		}
	}
}

func TestConsumersAreToldWithoutScanning(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	s.addReceipts(t, "big", "a", 5000, time.Hour)
	s.addReceipts(t, "big", "b", 5001, time.Minute)
	s.addReceipts(t, "shipping", "m", 1, time.Minute)
	s.process(t, in, "m", inbox.Applied)
	s.process(t, in, "m", inbox.Duplicate)
	s.process(t, in, "m", inbox.Duplicate)
	s.process(t, in, "n", inbox.Applied)
	if _, err := s.db.Collection("inbox_consumers").InsertOne(t.Context(), bson.M{"_id": "idle", "window_seconds": 60}); err != nil {
		t.Fatal(err)
	}
	found, err := in.Consumers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type counts struct {
		name       string
		receipts   int64
		more       bool
		duplicates int64
		hasOldest  bool
		hasWindow  bool
	}
	var got []counts
	for _, c := range found {
		got = append(got, counts{c.Consumer, c.Receipts, c.More, c.Duplicates, c.Oldest != nil, c.WindowSeconds != nil})
	}
	want := []counts{
		{"big", 10000, true, 0, true, false}, {"billing", 2, false, 2, true, false},
		{"idle", 0, false, 0, false, true}, {"shipping", 1, false, 0, true, false},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if age := time.Since(*found[0].Oldest); age < 59*time.Minute || age > 62*time.Minute {
		t.Errorf("the oldest is %v old, want an hour", age)
	}
}

// What looks at receipts goes through an index, whatever else is in the collection.
func TestIndexesServeWhatLooksAtReceipts(t *testing.T) {
	s := newStage(t)
	s.addReceipts(t, "billing", "a", 2000, time.Minute)
	in := s.inbox(t, mongo.InboxConfig{})
	s.sent()
	s.process(t, in, "a1", inbox.Duplicate)
	if _, err := in.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Consumers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Receipts(t.Context(), "a1"); err != nil {
		t.Fatal(err)
	}
	explained := 0
	sent, _ := s.sent()
	for _, command := range sent {
		name := command.Index(0).Key()
		if collection, _ := command.Index(0).Value().StringValueOK(); collection != "inbox_receipts" || name != "find" && name != "aggregate" && name != "update" {
			continue
		}
		explained++
		var plan bson.Raw
		plain := withoutFields(t, command, "lsid", "$clusterTime", "$db", "txnNumber", "startTransaction", "autocommit", "readConcern")
		if err := s.db.RunCommand(t.Context(), bson.D{{Key: "explain", Value: plain}, {Key: "verbosity", Value: "queryPlanner"}}).Decode(&plan); err != nil {
			t.Fatal(err)
		}
		if text := plan.String(); strings.Contains(text, `"COLLSCAN"`) || !strings.Contains(text, "IXSCAN") && !strings.Contains(text, "IDHACK") {
			t.Errorf("%s scans: %s", name, text)
		}
		if name != "find" && strings.Contains(plan.String(), `"stage": "SORT"`) {
			t.Errorf("%s sorts: %s", name, plan)
		}
	}
	if explained < 6 { // receipt, what it met, cleaning, names, counts, trace
		t.Errorf("%d commands were explained", explained)
	}
}

func withoutFields(t *testing.T, raw bson.Raw, names ...string) (doc bson.D) {
	t.Helper()
	var all bson.D
	if err := bson.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+e.Key+" ") {
			doc = append(doc, e)
		}
	}
	return doc
}

func TestForgottenReceiptLetsTheMessageBeAppliedAgain(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	s.process(t, in, "m", inbox.Applied)
	s.process(t, in, "n", inbox.Applied)
	if err := in.Forget(t.Context(), "billing", "m", "ann", "the effect was $wrong"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"m", "unknown"} {
		if err := in.Forget(t.Context(), "billing", key, "ann", "again"); !errors.Is(err, inbox.ErrNoReceipt) {
			t.Errorf("forget %s: error %v, want that there is none", key, err)
		}
	}
	for _, missing := range [][2]string{{"", "why"}, {"ann", ""}} {
		if err := in.Forget(t.Context(), "billing", "n", missing[0], missing[1]); err == nil {
			t.Errorf("no error with %q", missing)
		}
	}
	cursor, err := s.db.Collection("inbox_audit").Find(t.Context(), bson.M{"$expr": bson.M{"$lte": bson.A{"$applied_at", "$at"}}})
	if err != nil {
		t.Fatal(err)
	}
	var lines []struct {
		Who, Action, Consumer, Reason string
		DedupKey                      string `bson:"dedup_key"`
	}
	if err := cursor.All(t.Context(), &lines); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(lines), "[{ann forget billing the effect was $wrong m}]"; got != want {
		t.Errorf("audit %s, want %s", got, want)
	}
	s.process(t, in, "m", inbox.Applied)
	s.process(t, in, "n", inbox.Duplicate)
}

// The receipt is there still when the line in the audit could not be written.
func TestNothingIsForgottenWithoutALineInTheAudit(t *testing.T) {
	s := newStage(t)
	in := s.inbox(t, mongo.InboxConfig{})
	s.process(t, in, "m", inbox.Applied)
	s.fail(t, "alwaysOn", bson.D{{Key: "failCommands", Value: bson.A{"update"}}, {Key: "errorCode", Value: 13}})
	if err := in.Forget(t.Context(), "billing", "m", "ann", "the effect was wrong"); err == nil {
		t.Error("no error")
	}
	s.wantOne(t, "m")
}

func TestInitMayRunAtTheSameTimeAndKeepsReceipts(t *testing.T) {
	s := newStage(t)
	db := newDatabase(t, s.client)
	in, err := mongo.NewInbox(db.Collection("orders_receipts"), mongo.InboxConfig{Consumer: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Consumers(t.Context()); !errors.Is(err, inbox.ErrNoTables) {
		t.Errorf("before Init: %v, want ErrNoTables", err)
	}
	if _, err := in.Receipts(t.Context(), "m"); !errors.Is(err, inbox.ErrNoTables) {
		t.Errorf("before Init: %v, want ErrNoTables", err)
	}
	s.process(t, in, "m", inbox.Applied) // makes the collection, without indexes
	for range 5 {
		for _, err := range atOnce(8, func() error { return in.Init(t.Context()) }) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	s.process(t, in, "m", inbox.Duplicate)
	names, err := db.ListCollectionNames(t.Context(), bson.M{"name": bson.M{"$in": bson.A{"orders_receipts", "orders_consumers", "orders_audit"}}})
	if err != nil || len(names) != 3 {
		t.Errorf("collections %q, %v", names, err)
	}
}

// A receipt under another _id would not be met, and one without a time would stay for ever.
func TestServerRefusesReceiptsThatNobodyWouldMeetOrRemove(t *testing.T) {
	s := newStage(t)
	receipts := s.db.Collection("inbox_receipts")
	if _, err := receipts.InsertOne(t.Context(), receiptOf("billing", "m", time.Now())); err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]any{"_id": "billing\nn", "consumer": "shipping", "dedup_key": "", "applied_at": "today", "duplicates": nil} {
		doc := receiptOf("billing", "n", time.Now())
		doc[field] = value
		if _, err := receipts.InsertOne(t.Context(), doc); !isRefused(err) {
			t.Errorf("%s %v: %v, want it refused", field, value, err)
		}
	}
	s.process(t, s.inbox(t, mongo.InboxConfig{}), "m", inbox.Duplicate)
}

func isRefused(err error) bool {
	server, ok := errors.AsType[driver.ServerError](err)
	return ok && server.HasErrorCode(121)
}
