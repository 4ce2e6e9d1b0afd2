package mongo

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/postrider/postrider/relay"
)

func collection(t *testing.T, name string) *driver.Collection {
	t.Helper()
	client, err := driver.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Disconnect(t.Context()) })
	return client.Database("app").Collection(name)
}

func TestConfigurationsReportEveryMistake(t *testing.T) {
	for _, shards := range []int{-1, 32768} {
		if _, err := Open(nil, StoreConfig{Shards: shards}); err == nil ||
			!strings.Contains(err.Error(), "collection is missing") || !strings.Contains(err.Error(), "Shards is") {
			t.Errorf("%d shards and no collection: %v", shards, err)
		}
	}
	if _, err := New(nil, Config{MaxPayload: -1}); err == nil ||
		!strings.Contains(err.Error(), "collection is missing") || !strings.Contains(err.Error(), "MaxPayload is -1") {
		t.Errorf("a negative payload and no collection: %v", err)
	}
}

func TestConfigurationsOfAnInboxReportEveryMistake(t *testing.T) {
	_, err := NewInbox(nil, InboxConfig{Window: -1})
	for _, part := range []string{"collection of receipts is missing", "Consumer is empty", "Window is -1ns"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v says nothing of %q", err, part)
		}
	}
}

func TestSideCollectionsAreNamedAfterTheOutbox(t *testing.T) {
	for outbox, want := range map[string]string{"outbox_events": "outbox_shards", "outbox": "outbox_shards", "mails": "mails_shards"} {
		s, err := Open(collection(t, outbox), StoreConfig{})
		if err != nil || s.shards.Name() != want {
			t.Errorf("the leases of %s are in %s, %v; want %s", outbox, s.shards.Name(), err, want)
		}
	}
}

func TestAKeyHasTheShardThatTheDocumentationTellsOtherLanguages(t *testing.T) {
	for key, want := range map[string]int{"": 0, "order-17": 0x5aea0614 % 64, "ключ": 0x0caf961a % 64} {
		if got := shardOf(key, 64); got != want {
			t.Errorf("shard of %q is %d, want %d", key, got, want)
		}
	}
}

func TestAMemberGivesWayToThoseThatWereFirst(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	old := member{ID: "m", Name: "main", Claim: relay.ClaimShard, StartedAt: at(5), HeartbeatAt: at(9)}
	fresh := old
	fresh.HeartbeatAt = fresh.StartedAt
	for _, test := range []struct {
		what  string
		mine  member
		other member
		want  bool
	}{
		{"its own name", fresh, member{ID: "a", Name: "main", Claim: relay.ClaimShard, StartedAt: at(1), Live: true}, false},
		{"a new member meets an older one", fresh, member{ID: "a", Name: "x", StartedAt: at(9), Live: true}, true},
		{"a new member meets one that has died", fresh, member{ID: "a", Name: "x", StartedAt: at(1)}, false},
		{"a new member meets another claim", fresh, member{ID: "a", Name: "main", Claim: relay.ClaimRow, StartedAt: at(1), Live: true}, true},
		{"an old member meets one that came first", old, member{ID: "a", Name: "x", StartedAt: at(4), Live: true}, true},
		{"an old member meets one that came later", old, member{ID: "a", Name: "x", StartedAt: at(6), Live: true}, false},
		{"two came at once, the other is lower", old, member{ID: "a", Name: "x", StartedAt: at(5), Live: true}, true},
		{"two came at once, the other is higher", old, member{ID: "z", Name: "x", StartedAt: at(5), Live: true}, false},
	} {
		if got := conflict(test.mine, []member{test.mine, test.other}) != nil; got != test.want {
			t.Errorf("%s: gives way %v, want %v", test.what, got, test.want)
		}
	}
}

func TestFlightKnowsTheShardsOfWhatWasRead(t *testing.T) {
	var f flight
	ids := []bson.ObjectID{idAt(1), idAt(2), idAt(3)}
	if _, _, err := f.split(nil); err != nil {
		t.Fatal(err)
	}
	f.remember([]relay.Event{{Shard: 7}, {Shard: 9}}, ids[:2])
	byShard, rest, err := f.split([]string{ids[0].Hex(), ids[2].Hex()})
	if err != nil || !reflect.DeepEqual(byShard, map[int][]bson.ObjectID{7: ids[:1]}) || !reflect.DeepEqual(rest, ids[2:]) {
		t.Errorf("split into %v and %v, %v", byShard, rest, err)
	}
	if byShard, rest, _ = f.split([]string{ids[1].Hex()}); len(byShard) > 0 || len(rest) != 1 {
		t.Errorf("what left the flight is still known: %v and %v", byShard, rest)
	}
	if _, _, err := f.split([]string{"17"}); err == nil {
		t.Error("an id that is none was accepted")
	}
}

func TestMissingPrivileges(t *testing.T) {
	on := func(db, collection string, actions ...string) (p privilege) {
		p.Resource.DB, p.Resource.Collection, p.Actions = db, collection, actions
		return p
	}
	cluster := on("", "", "find", "update")
	cluster.Resource.Cluster = true
	anything := privilege{Actions: []string{"anyAction"}}
	anything.Resource.Any = true
	for what, test := range map[string]struct {
		have []privilege
		want []string
	}{
		"none":                   {nil, []string{"find", "update"}},
		"on the collection":      {[]privilege{on("app", "outbox", "find"), on("app", "outbox", "update")}, nil},
		"on another collection":  {[]privilege{on("app", "other", "find", "update")}, []string{"find", "update"}},
		"on another database":    {[]privilege{on("other", "", "find", "update")}, []string{"find", "update"}},
		"on the database, read":  {[]privilege{on("app", "", "find")}, []string{"update"}},
		"on all databases":       {[]privilege{on("", "", "find", "update")}, nil},
		"on the cluster itself":  {[]privilege{cluster}, []string{"find", "update"}},
		"any action on anything": {[]privilege{anything}, nil},
	} {
		if got := missingActions(test.have, "app", "outbox", []string{"find", "update"}); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: missing %q, want %q", what, got, test.want)
		}
	}
}

func TestServersThatCanKeepAnOutbox(t *testing.T) {
	for what, test := range map[string]struct {
		server server
		fits   bool
	}{
		"a replica set":       {server{wire: 17, transactions: true}, true},
		"an old replica set":  {server{wire: 13, transactions: true}, false},
		"a server on its own": {server{wire: 25}, false},
		"FerretDB":            {server{wire: 21, compatible: true}, true},
	} {
		if err := test.server.problem(); (err == nil) != test.fits {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := (server{wire: 25}).problem(); !errors.Is(err, ErrNoTransactions) {
		t.Errorf("a server on its own: %v", err)
	}
}

func TestADeadLetterTellsWhenItDied(t *testing.T) {
	one, err := fit(relay.Settlement{State: "DEAD", RetryAfter: time.Hour})
	if err != nil || one.RetryAfter != 0 {
		t.Errorf("fit made %+v, %v", one, err)
	}
}

func TestErrorsAreTold(t *testing.T) {
	s, err := Open(collection(t, "outbox"), StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int32]error{13: ErrDenied, 18: ErrDenied, 14031: ErrFull} {
		if err := s.fail("settle", driver.CommandError{Code: code, Message: "no"}); !errors.Is(err, want) || !strings.Contains(err.Error(), "settle, outbox outbox: ") {
			t.Errorf("code %d: %v, want %v", code, err, want)
		}
	}
	for _, label := range []string{"NetworkError", "RetryableWriteError"} {
		if err := s.fail("settle", driver.CommandError{Labels: []string{label}}); !errors.Is(err, ErrUnreachable) {
			t.Errorf("label %s: %v", label, err)
		}
	}
	if err := s.fail("settle", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

func TestEveryCollectionThatTheRelayUsesIsCheckedForPrivileges(t *testing.T) {
	mapping := complete()
	for _, config := range []StoreConfig{{}, {Mapping: &mapping}} {
		s, err := Open(collection(t, "outbox"), config)
		if err != nil {
			t.Fatal(err)
		}
		used := s.ours()
		if s.theirs != nil {
			used = append(s.beside(), s.events)
		}
		for _, c := range used {
			checked := slices.ContainsFunc(s.needs(), func(n need) bool { return n.collection == c.Name() })
			if checked == (c == s.keys) { // which only producers use
				t.Errorf("%s is checked: %v", c.Name(), checked)
			}
		}
	}
}
