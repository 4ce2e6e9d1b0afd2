package mongo

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// newOurs opens a Store on an outbox of our own.
func newOurs(t *testing.T) *mapped {
	t.Helper()
	db := newDatabase(t, connect(t))
	return &mapped{t: t, events: db.Collection("outbox_events"), store: open(t, db, mongo.StoreConfig{Shards: shards})}
}

// die makes an event DEAD, so that it holds its key.
func (m *mapped) die(e relay.Event) {
	m.t.Helper()
	one := relay.Settlement{ID: e.ID, Lease: m.leases[e.Shard], State: postrider.StateDead, RetryCount: 1, Error: "no", HoldsKey: true}
	if ids, err := m.store.Settle(m.t.Context(), m.member, []relay.Settlement{one}); err != nil || len(ids) != 1 {
		m.t.Fatalf("settled %v, %v", ids, err)
	}
}

func (m *mapped) wantRead(when string, want ...string) {
	m.t.Helper()
	var got []string
	for _, e := range m.read() {
		got = append(got, e.ID)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		m.t.Fatalf("%s: read %q, want %q", when, got, want)
	}
}

func (m *mapped) wantHeldKeys(want int64) {
	m.t.Helper()
	if status, err := m.store.Status(m.t.Context(), "main"); err != nil || status.HeldKeys != want {
		m.t.Errorf("%d keys are held, want %d; %v", status.HeldKeys, want, err)
	}
}

func (m *mapped) holds() *driver.Collection { return m.events.Database().Collection("outbox_holds") }

// age makes all holds older than any settle that is under way.
func (m *mapped) age() {
	m.t.Helper()
	if _, err := m.holds().UpdateMany(m.t.Context(), bson.M{}, bson.M{"$set": bson.M{"held_at": time.Now().Add(-time.Hour)}}); err != nil {
		m.t.Fatal(err)
	}
}

// byHand changes the document of an event, or deletes it without a change.
func (m *mapped) byHand(id string, change bson.M) {
	m.t.Helper()
	object, err := bson.ObjectIDFromHex(id)
	if err != nil {
		m.t.Fatal(err)
	}
	if change == nil {
		_, err = m.events.DeleteOne(m.t.Context(), bson.M{"_id": object})
	} else {
		_, err = m.events.UpdateOne(m.t.Context(), bson.M{"_id": object}, change)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// TestAKeyGoesOnWhenItsDeadEventIsChangedByHand looks at what people and the owners of a collection do to an event that holds
// its key.
func TestAKeyGoesOnWhenItsDeadEventIsChangedByHand(t *testing.T) {
	t.Parallel()
	tidy := func(m *mapped) error { return m.store.Tidy(t.Context()) }
	clean := func(m *mapped) error {
		_, err := m.store.Clean(t.Context(), relay.CleanRequest{Retention: time.Hour, Limit: 100})
		return err
	}
	ours := func() *mapped { return newOurs(t) }
	theirs := func() *mapped { return newMapped(t, preset(t)) }
	for what, test := range map[string]struct {
		open  func() *mapped
		event func(key string) bson.M
		tidy  func(*mapped) error
	}{
		"ours, without a retention": {ours, ourEvent, tidy}, "ours, with one": {ours, ourEvent, clean},
		"theirs, without a retention": {theirs, theirEvent, tidy}, "theirs, with one": {theirs, theirEvent, clean},
	} {
		m := test.open()
		m.own()
		for range 2 {
			m.insert(test.event("deleted"), test.event("reset"), test.event("discarded"), test.event("dead"))
		}
		ids := map[string][]string{}
		events := map[string]relay.Event{}
		for _, e := range m.read() {
			ids[e.AggregateID] = append(ids[e.AggregateID], e.ID)
			events[e.ID] = e
		}
		for _, its := range ids {
			m.die(events[its[0]])
		}
		m.wantRead(what + ": with all keys held")
		m.byHand(ids["deleted"][0], nil)
		m.byHand(ids["reset"][0], bson.M{"$set": bson.M{"status": "PENDING", "waiting": false}, "$unset": bson.M{"last_error": ""}})
		m.discardHalf(ids["discarded"][0])
		if err := test.tidy(m); err != nil {
			t.Fatal(err)
		}
		m.wantRead(what + ": while settles may be under way")
		m.wantHeldKeys(4)
		m.age()
		if err := test.tidy(m); err != nil {
			t.Fatal(err)
		}
		want := []string{ids["deleted"][1], ids["reset"][0], ids["reset"][1], ids["discarded"][1]}
		slices.Sort(want)
		m.wantRead(what+": after the holds were tidied", want...)
		m.wantHeldKeys(1)
	}
}

// discardHalf discards an event as one does that ends before it deletes the hold, on a server without transactions.
func (m *mapped) discardHalf(id string) {
	m.t.Helper()
	var hold bson.M
	object, err := bson.ObjectIDFromHex(id)
	if err == nil {
		err = m.holds().FindOne(m.t.Context(), bson.M{"_id": object}).Decode(&hold)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	n, err := m.store.Discard(m.t.Context(), operator.Filter{IDs: []string{id}}, operator.Action{Who: "me", Reason: "r"})
	if err != nil || n != 1 {
		m.t.Fatalf("discarded %d, %v", n, err)
	}
	if _, err := m.holds().InsertOne(m.t.Context(), hold); err != nil {
		m.t.Fatal(err)
	}
}

func TestASettleWritesTheHoldBeforeTheEventIsDead(t *testing.T) {
	s := newStaged(t)
	s.retry.State, s.retry.HoldsKey = postrider.StateDead, true
	s.set.inject("update outbox_events", refusal(13))
	if _, err := s.store.Settle(t.Context(), s.member, []relay.Settlement{s.retry}); !errors.Is(err, mongo.ErrDenied) {
		t.Fatalf("got %v, want ErrDenied", err)
	}
	m := &mapped{t: t, events: s.db.Collection("outbox_events"), store: s.store}
	if !s.set.transactions {
		m.wantRead("after a settle that ended in between, where nothing was rolled back")
	}
	m.age()
	if err := s.store.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.wantRead("after the hold was tidied", s.retry.ID)

	s.take()
	s.settle(t)
	want := slices.Insert(slices.Clone(settleCommands), 3, "update outbox_holds")
	if got := s.transactions(t); len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

func TestARedriveDeletesTheHoldsWhenTheEventsHaveChanged(t *testing.T) {
	s := newStaged(t)
	s.retry.State, s.retry.HoldsKey = postrider.StateDead, true
	want := []string{"aggregate outbox_events", "aggregate outbox_schema", "update outbox_events", "insert outbox_attempts",
		"delete outbox_holds", "commitTransaction "}
	for what, act := range map[string]func(context.Context, operator.Filter, operator.Action) (int, error){
		"redrive": s.store.Redrive, "retry": s.store.Retry,
	} {
		s.settle(t)
		s.take()
		if n, err := act(t.Context(), operator.Filter{Limit: 1}, operator.Action{Who: "me"}); err != nil || n != 1 {
			t.Fatalf("%s of %d, %v", what, n, err)
		}
		got := s.transactions(t)
		if what == "retry" {
			got = got[1:] // it looked for events that wait
		}
		if len(got) != 1 || !slices.Equal(got[0], want) {
			t.Errorf("%s sent %q, want %q", what, got, want)
		}
	}
}

// TestThousandsOfKeysAreHeld is about the size of what a read asks for.
func TestThousandsOfKeysAreHeld(t *testing.T) {
	t.Parallel()
	const n = 10_000
	key := func(i int) string { return fmt.Sprintf("a-key-of-an-aggregate-that-is-as-long-as-a-UUID-%d", i) }
	for what, test := range map[string]struct {
		open  func() *mapped
		event func(key string) bson.M
	}{
		"ours":   {func() *mapped { return newOurs(t) }, ourEvent},
		"theirs": {func() *mapped { return newMapped(t, preset(t)) }, theirEvent},
	} {
		m := test.open()
		events, holds := make([]bson.M, n), make([]bson.M, n)
		for i := range events {
			events[i] = test.event(key(i))
			holds[i] = bson.M{"aggregate_id": key(i), "shard": crc32.ChecksumIEEE([]byte(key(i))) % shards, "held_at": time.Now()}
		}
		m.insert(events...)
		if _, err := m.holds().InsertMany(t.Context(), holds); err != nil {
			t.Fatal(err)
		}
		free := bson.NewObjectID()
		last := test.event("free")
		last["_id"] = free
		m.insert(last)
		m.wantRead(what, free.Hex())
		m.wantHeldKeys(n)
	}
}

func TestAnOutboxOfTheVersionBeforeIsCompletedByInit(t *testing.T) {
	s := newStage(t, mongo.Config{})
	if _, err := s.db.Collection("outbox_events").InsertOne(t.Context(), plain(nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Collection("outbox_schema").UpdateOne(t.Context(), bson.M{"_id": "layout"}, bson.M{"$set": bson.M{"version": 1}}); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Collection("outbox_holds").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := mongo.Open(s.db.Collection("outbox_events"), mongo.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Backlog(t.Context()); !errors.Is(err, relay.ErrSchema) {
		t.Errorf("got %v, want ErrSchema", err)
	}
	if err := again.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if odd := serious(again.Verify(t.Context())); len(odd) > 0 {
		t.Errorf("findings %+v", odd)
	}
	m := &mapped{t: t, store: again}
	if events := m.read(); len(events) != 1 || events[0].AggregateID != "17" {
		t.Errorf("read %+v", events)
	}
}
