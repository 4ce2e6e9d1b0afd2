package mongo

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// mapped is a collection of theirs, with a relay that holds all leases.
type mapped struct {
	t      *testing.T
	events *driver.Collection
	store  *mongo.Store
	member relay.Member
	leases []relay.Lease
}

// newMapped opens a Store on an empty collection of theirs.
func newMapped(t *testing.T, mapping mongo.Mapping) *mapped {
	t.Helper()
	return openMapped(t, mongo.StoreConfig{Shards: shards, Mapping: &mapping})
}

func openMapped(t *testing.T, config mongo.StoreConfig) *mapped {
	t.Helper()
	client := connect(t)
	m := &mapped{t: t, events: newDatabase(t, client).Collection("outbox")}
	if err := m.events.Database().CreateCollection(t.Context(), "outbox"); err != nil {
		t.Fatal(err)
	}
	var err error
	if m.store, err = mongo.Open(m.events, config); err != nil {
		t.Fatal(err)
	}
	if err := m.store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *mapped) own() {
	m.t.Helper()
	m.member = relay.Member{Name: "main", ID: "a", Claim: relay.ClaimShard, Shards: shards, LeaseTTL: time.Hour}
	table, err := m.store.Renew(m.t.Context(), relay.Heartbeat{Member: m.member}, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	var seen []relay.Lease
	for _, l := range table.Shards {
		seen = append(seen, l.Lease)
	}
	if m.leases, err = m.store.Acquire(m.t.Context(), m.member, seen); err != nil || len(m.leases) != shards {
		m.t.Fatalf("acquired %v, %v", m.leases, err)
	}
}

func (m *mapped) insert(docs ...bson.M) {
	m.t.Helper()
	if _, err := m.events.InsertMany(m.t.Context(), docs); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mapped) read() []relay.Event {
	m.t.Helper()
	events, err := m.store.Read(m.t.Context(), relay.ReadRequest{Shards: []int{0, 1, 2, 3}, PerShard: 100, Limit: 100, MaxBytes: 1 << 20})
	if err != nil {
		m.t.Fatal(err)
	}
	return events
}

func (m *mapped) settle(e relay.Event, state postrider.State, after time.Duration) {
	m.t.Helper()
	one := relay.Settlement{ID: e.ID, Lease: m.leases[e.Shard], State: state, RetryCount: e.RetryCount + 1, RetryAfter: after, Error: "no", PublishedTo: "test:1"}
	if ids, err := m.store.Settle(m.t.Context(), m.member, []relay.Settlement{one}); err != nil || len(ids) != 1 {
		m.t.Fatalf("settled %v, %v", ids, err)
	}
}

func (m *mapped) doc() (doc bson.M) {
	m.t.Helper()
	if err := m.events.FindOne(m.t.Context(), bson.M{}).Decode(&doc); err != nil {
		m.t.Fatal(err)
	}
	return doc
}

func (m *mapped) set(fields bson.M) {
	m.t.Helper()
	if _, err := m.events.UpdateMany(m.t.Context(), bson.M{}, bson.M{"$set": fields}); err != nil {
		m.t.Fatal(err)
	}
}

func preset(t *testing.T) mongo.Mapping {
	t.Helper()
	p, found := mongo.FindPreset("domain-events")
	if !found || p.Collection != "outbox" {
		t.Fatalf("the preset is %+v, %v", p, found)
	}
	return p.Mapping
}

// lesson is a document as the preset's services write it.
func lesson(t *testing.T) bson.M {
	t.Helper()
	text, err := os.ReadFile("testdata/domain-event.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc bson.M
	if err := bson.UnmarshalExtJSON(text, false, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestThePresetFromADocumentToItsEnd(t *testing.T) {
	m := newMapped(t, preset(t))
	m.own()
	m.insert(lesson(t))
	id := m.doc()["_id"].(bson.ObjectID)
	e := m.read()[0]
	if e.ID != id.Hex() || e.EventID != id.Hex() || e.AggregateType != "lesson" || e.AggregateID != "lesson-42" || e.EventType != "LessonCompleted" ||
		string(e.Payload) != `{"userId":"u1","lessonId":"lesson-42"}` || e.ContentType != "application/json" || e.Malformed != nil {
		t.Errorf("read %+v with the payload %s", e, e.Payload)
	}
	before := m.doc()
	m.settle(e, postrider.StatePending, time.Hour)
	if doc := m.doc(); doc["status"] != "PENDING" || doc["attempts"] != int32(1) || !doc["nextAttemptAt"].(bson.DateTime).Time().After(time.Now().Add(50*time.Minute)) {
		t.Errorf("after a failed attempt: %v", doc)
	}
	if events := m.read(); len(events) > 0 {
		t.Errorf("read %v before it is due", events)
	}
	m.set(bson.M{"nextAttemptAt": time.Now().Add(-time.Minute)})
	if e = m.read()[0]; e.RetryCount != 1 {
		t.Errorf("%d attempts, want 1", e.RetryCount)
	}
	m.settle(e, postrider.StateDead, 0)
	if doc := m.doc(); doc["status"] != "FAILED" || doc["attempts"] != int32(2) {
		t.Errorf("after the last attempt: %v", doc)
	}
	m.set(bson.M{"status": "PENDING"}) // by their own tool
	if e = m.read()[0]; e.RetryCount != 0 {
		t.Errorf("%d attempts after a redrive by their tool, want 0", e.RetryCount)
	}
	m.settle(e, postrider.StatePublished, 0)
	after := m.doc()
	if after["status"] != "SENT" || len(m.read()) > 0 {
		t.Errorf("after it was published: %v", after)
	}
	for field := range after {
		if _, known := before[field]; !known {
			t.Errorf("the field %s was added to their document", field)
		}
	}
	indexes, err := m.events.Indexes().ListSpecifications(t.Context())
	if err != nil || len(indexes) != 1 {
		t.Errorf("their indexes are %v, %v; want that of _id alone", indexes, err)
	}
}

func TestTheKeyCanComeFromThePayload(t *testing.T) {
	mapping := preset(t)
	mapping.AggregateID = "payload.userId, objectId"
	m := newMapped(t, mapping)
	without := lesson(t)
	without["payload"] = bson.M{"n": 7}
	m.insert(lesson(t), without)
	var keys []string
	for _, e := range m.read() {
		keys = append(keys, e.AggregateID)
	}
	if slices.Sort(keys); !slices.Equal(keys, []string{"lesson-42", "u1"}) {
		t.Errorf("the keys are %v", keys)
	}
}

func TestDocumentsThatCannotBeReadBecomeMalformedAlone(t *testing.T) {
	m := newMapped(t, preset(t))
	m.own()
	for want, change := range map[string]bson.M{
		"it has no key":            {"objectId": nil},
		"it has no key: objectId":  {"objectId": ""},
		"it has no key: objectId ": {"objectId": bson.A{1}},
		"it has no event type":     {"eventType": nil},
		"is a int32":               {"payload": 7},
		"is missing or null":       {"payload": nil},
		"is no JSON":               {"payload": `{"cut`},
		"":                         {"payload": bson.Binary{Data: []byte{0}}, "objectId": 17},
	} {
		doc := lesson(t)
		doc["dedupKey"] = want
		maps.Copy(doc, change)
		m.insert(doc)
	}
	events := m.read()
	if len(events) != 8 {
		t.Fatalf("read %d events, want 8", len(events))
	}
	for _, e := range events {
		row, err := m.store.Event(t.Context(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSpace(row.DedupKey)
		if (e.Malformed != nil) != (want != "") || want != "" && !strings.Contains(e.Malformed.Error(), want) {
			t.Errorf("malformed is %v, want %q", e.Malformed, want)
		}
		if want == "" && (e.AggregateID != "17" || e.ContentType != "application/octet-stream" || string(e.Payload) != "\x00") {
			t.Errorf("read %+v", e)
		}
		if e.Malformed != nil {
			m.settle(e, postrider.StateDead, 0)
		}
	}
	if left := m.read(); len(left) != 1 {
		t.Errorf("%d events are left, want 1", len(left))
	}
}

func TestMappedFieldsAreReadAndWritten(t *testing.T) {
	mapping := domainEvents(t)
	mapping.HeaderTerms, mapping.UpdatedAt = map[string]string{"X-Kind.of": "eventType", "X-None": "nothing"}, "changedAt"
	m := newMapped(t, mapping)
	m.own()
	doc := lesson(t)
	doc["meta"] = bson.M{"id": "seven", "topic": "lessons", "type": "application/vnd.test+json", "headers": bson.M{"a": "b"}}
	m.insert(doc)
	e := m.read()[0]
	if e.EventID != "seven" || e.Topic != "lessons" || e.ContentType != "application/vnd.test+json" || fmt.Sprint(e.Headers) != "map[X-Kind.of:LessonCompleted a:b]" {
		t.Errorf("read %+v", e)
	}
	if row, err := m.store.Event(t.Context(), "seven"); err != nil || row.ID != e.ID || row.DedupKey != "LessonCompleted:u1:lesson-42" {
		t.Errorf("by its event id: %+v, %v", row, err)
	}
	m.settle(e, postrider.StateDead, 0)
	if doc := m.doc(); doc["lastError"] != "no" || doc["changedAt"] == nil {
		t.Errorf("the dead document is %v", doc)
	}
	if groups, err := m.store.DeadGroups(t.Context(), 9); err != nil || len(groups) != 1 || groups[0].Error != "no" || groups[0].Sample != "seven" {
		t.Errorf("dead letters are %+v, %v", groups, err)
	}
	if n, err := m.store.Redrive(t.Context(), operator.Filter{ErrorContains: "NO"}, operator.Action{Who: "me"}); n != 1 || err != nil {
		t.Fatalf("redrove %d, %v", n, err)
	}
	m.settle(m.read()[0], postrider.StatePublished, 0)
	if doc := m.doc(); doc["sentTo"] != "test:1" || doc["sentAt"] == nil || doc["lastError"] != nil || doc["attempts"] != int32(0) {
		t.Errorf("the published document is %v", doc)
	}
}

func TestNoMoreIsMappedThanWhatIsRequired(t *testing.T) {
	mapping := sparse()
	m := openMapped(t, mongo.StoreConfig{Shards: shards, Mapping: &mapping, DeletePublished: true})
	m.own()
	doc := lesson(t)
	doc["status"] = "AGAIN"
	m.insert(doc)
	m.settle(m.read()[0], postrider.StatePending, time.Hour)
	later := lesson(t)
	later["dedupKey"] = "later"
	m.insert(later)
	if events := m.read(); len(events) > 0 {
		t.Errorf("read %+v although the first of the key waits", events)
	}
	me := operator.Action{Who: "me", Reason: "test"}
	if n, err := m.store.Retry(t.Context(), operator.Filter{}, me); n != 1 || err != nil {
		t.Fatalf("retried %d, %v", n, err)
	}
	e := m.read()[0]
	if e.RetryCount != 1 {
		t.Errorf("%d attempts, want 1", e.RetryCount)
	}
	m.settle(e, postrider.StateDead, 0)
	if n, err := m.store.Discard(t.Context(), operator.Filter{}, me); n != 1 || err != nil {
		t.Fatalf("discarded %d, %v", n, err)
	}
	m.settle(m.read()[0], postrider.StatePublished, 0)
	if got := m.doc()["status"]; got != "DROPPED" {
		t.Errorf("the document that is left is %v", got)
	}
	if n, err := m.events.CountDocuments(t.Context(), bson.M{}); n != 1 || err != nil {
		t.Errorf("%d documents are left, %v; want the discarded one", n, err)
	}
}

func TestAPayloadKeepsWhatJSONLacks(t *testing.T) {
	m := newMapped(t, preset(t))
	doc := lesson(t)
	id := bson.NewObjectID()
	doc["payload"] = bson.D{{Key: "z", Value: int64(1) << 60}, {Key: "a", Value: 1.5}, {Key: "at", Value: time.UnixMilli(0)}, {Key: "id", Value: id}, {Key: "list", Value: bson.A{true, nil, "<ü>"}}}
	m.insert(doc)
	want := fmt.Sprintf(`{"z":1152921504606846976,"a":1.5,"at":{"$date":"1970-01-01T00:00:00Z"},"id":{"$oid":"%s"},"list":[true,null,"<ü>"]}`, id.Hex())
	if got := string(m.read()[0].Payload); got != want {
		t.Errorf("the payload is %s, want %s", got, want)
	}
}

func TestWhatIsNotOursIsLeftAloneAndReported(t *testing.T) {
	mapping := preset(t)
	mapping.Filter = `{"tenant": {"$ne": "them"}}`
	m := newMapped(t, mapping)
	m.own()
	draft, theirs, locked, scheduled := lesson(t), lesson(t), lesson(t), lesson(t)
	draft["status"], theirs["tenant"] = "DRAFT", "them"
	locked["lockedBy"], locked["leaseExpiresAt"] = "worker-ab", time.Now().Add(time.Hour)
	scheduled["nextAttemptAt"] = time.Now().Add(time.Hour)
	m.insert(draft, theirs, locked, scheduled)
	if events := m.read(); len(events) > 0 {
		t.Errorf("read %+v", events)
	}
	findings := m.store.Verify(t.Context())
	wantFinding(t, findings, operator.LevelWarning, "collection outbox", "1 or more events are in a state that is none", "by the word in status")
	wantFinding(t, findings, operator.LevelWarning, "collection outbox", "no index leads", `createIndex({"status":1,"_id":1,"nextAttemptAt":1})`)
	wantFinding(t, findings, operator.LevelWarning, "collection outbox", "within one second", "name the field")
	if n := len(serious(findings)); n != 3 {
		t.Errorf("%d findings: %+v", n, findings)
	}
	index := driver.IndexModel{Keys: bson.D{{Key: "status", Value: 1}, {Key: "_id", Value: 1}, {Key: "nextAttemptAt", Value: 1}}}
	if _, err := m.events.Indexes().CreateOne(t.Context(), index); err != nil {
		t.Fatal(err)
	}
	if n := len(serious(m.store.Verify(t.Context()))); n != 2 {
		t.Errorf("%d findings with the index", n)
	}
	m.set(bson.M{"leaseExpiresAt": time.Now().Add(-time.Minute), "tenant": "us"}) // of the locked one: its worker is dead
	if _, err := m.store.Backlog(t.Context()); err != nil {
		t.Fatal(err)
	}
	if events := m.read(); len(events) != 2 {
		t.Errorf("read %d events after the lease of their worker ran out, want it and that of the other tenant", len(events))
	}
}

// A map that does not fit is seen before anything is sent, and not by what it makes DEAD.
func TestAMapThatDoesNotFitIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*mongo.Mapping)
		level  operator.Level
		want   string
	}{
		"a wrong field of the payload":    {func(m *mongo.Mapping) { m.Payload = "body" }, operator.LevelWarning, "2 or more events are without a text, a document or binary data in body"},
		"a wrong field of the key":        {func(m *mongo.Mapping) { m.AggregateID = "payload.user, object" }, operator.LevelWarning, "2 or more events are without a key in payload.user, object"},
		"a wrong field of the event type": {func(m *mongo.Mapping) { m.EventType = "type" }, operator.LevelWarning, "2 or more events are without an event type in type"},
		"a wrong field of the state":      {func(m *mongo.Mapping) { m.Status = "state" }, operator.LevelError, "no document has a word of the map in the field state"},
		"the right fields":                {func(*mongo.Mapping) {}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			mapping := preset(t)
			test.change(&mapping)
			m := newMapped(t, mapping)
			if findings := serious(m.store.Verify(t.Context())); len(findings) != 2 { // the index, the order
				t.Errorf("%d findings in an empty collection: %+v", len(findings), findings)
			}
			m.insert(lesson(t), lesson(t))
			findings := serious(m.store.Verify(t.Context()))
			if test.want == "" {
				if len(findings) != 2 {
					t.Errorf("%+v", findings)
				}
				return
			}
			wantFinding(t, findings, test.level, "collection outbox", test.want)
		})
	}
}

func TestIDsOfEveryType(t *testing.T) {
	m := newMapped(t, preset(t))
	m.own()
	for _, id := range []any{"text", int64(1) << 40, bson.Binary{Subtype: 4, Data: make([]byte, 16)}, 1.5, bson.D{{Key: "a", Value: "b"}}} {
		doc := lesson(t)
		doc["_id"], doc["objectId"] = id, fmt.Sprint(id)
		m.insert(doc)
	}
	for _, e := range m.read() {
		if row, err := m.store.Event(t.Context(), e.ID); err != nil || row.ID != e.ID {
			t.Errorf("Event(%s): %+v, %v", e.ID, row, err)
		}
		if e.EventID == "" { // no text stands for it
			continue
		}
		m.settle(e, postrider.StateDead, 0)
		if n, err := m.store.Redrive(t.Context(), operator.Filter{IDs: []string{e.ID}}, operator.Action{Who: "me"}); n != 1 || err != nil {
			t.Errorf("redrove %d of %s, %v", n, e.ID, err)
		}
	}
	if row, err := m.store.Event(t.Context(), "text"); err != nil || row.ID != `"text"` {
		t.Errorf("Event(text): %+v, %v", row, err)
	}
	if n := len(m.read()); n != 5 {
		t.Errorf("read %d events, want 5", n)
	}
}

func TestOrderByAField(t *testing.T) {
	mapping := preset(t)
	mapping.Order = "seq"
	m := newMapped(t, mapping)
	m.own()
	for _, seq := range []int{3, 1, 2} {
		doc := lesson(t)
		doc["seq"], doc["eventType"] = seq, fmt.Sprint(seq)
		m.insert(doc)
	}
	events := m.read()
	if len(events) != 3 || events[0].EventType != "1" || events[2].EventType != "3" {
		t.Errorf("read %+v", events)
	}
	m.settle(events[1], postrider.StatePending, time.Hour)
	if left := m.read(); len(left) != 1 || left[0].EventType != "1" {
		t.Errorf("read %+v; want what is before the one that failed", left)
	}
}

func TestMappingsThatDoNotFitAreRefused(t *testing.T) {
	client := connect(t)
	db := newDatabase(t, client)
	mapping := preset(t)
	missing, err := mongo.Open(db.Collection("outbox"), mongo.StoreConfig{Mapping: &mapping})
	if err != nil {
		t.Fatal(err)
	}
	if err := missing.Init(t.Context()); !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("Init: %v", err)
	}
	wantFinding(t, missing.Verify(t.Context()), operator.LevelError, "collection outbox", "does not exist")
	open(t, db, mongo.StoreConfig{Shards: shards})
	other, err := mongo.Open(db.Collection("outbox_events"), mongo.StoreConfig{Mapping: &mapping})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Init(t.Context()); !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), "mapped: false") {
		t.Errorf("Init of an outbox of our own as a mapped one: %v", err)
	}
	m := newMapped(t, sparse())
	_, err = m.store.RowClaims().Renew(t.Context(), relay.Heartbeat{Member: relay.Member{Name: "main", ID: "a", Shards: shards}}, nil)
	if !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), "use claim: shard") {
		t.Errorf("claims without fields for them: %v", err)
	}
}

func TestRecordsOfDocumentsThatAreGoneAreCleaned(t *testing.T) {
	m := newMapped(t, preset(t))
	m.own()
	m.insert(lesson(t))
	m.settle(m.read()[0], postrider.StatePending, time.Hour)
	if _, err := m.events.DeleteMany(t.Context(), bson.M{}); err != nil {
		t.Fatal(err)
	}
	if done, err := m.store.Clean(t.Context(), relay.CleanRequest{Limit: 10}); err != nil || !done.Done {
		t.Errorf("cleaned %+v, %v", done, err)
	}
	for _, side := range []string{"outbox_failures", "outbox_attempts"} {
		n, err := m.events.Database().Collection(side).CountDocuments(t.Context(), bson.M{}, options.Count())
		if err != nil || n != 0 {
			t.Errorf("%d documents are left in %s, %v", n, side, err)
		}
	}
}
