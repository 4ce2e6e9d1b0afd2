package mongo

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// staged is a stage behind a replicaSet, with one event and the leases of a relay.
type staged struct {
	*stage
	set    *replicaSet
	member relay.Member
	retry  relay.Settlement
}

func newStaged(t *testing.T) *staged {
	t.Helper()
	set, opts := newReplicaSet(t)
	s := &staged{stage: newStage(t, mongo.Config{}, opts), set: set}
	s.member = relay.Member{Name: "main", ID: "a", Claim: relay.ClaimShard, Shards: shards, LeaseTTL: time.Hour}
	if err := s.inTransaction(t.Context(), func(ctx context.Context) error {
		_, err := s.outbox.Add(ctx, order("17"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	table, err := s.store.Renew(t.Context(), relay.Heartbeat{Member: s.member}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := s.read(t)
	leases, err := s.store.Acquire(t.Context(), s.member, []relay.Lease{table.Shards[e.Shard].Lease})
	if err != nil || len(leases) != 1 {
		t.Fatalf("acquired %v, %v", leases, err)
	}
	s.retry = relay.Settlement{ID: e.ID, Lease: leases[0], State: postrider.StatePending, RetryCount: 1, Error: "no"}
	s.take()
	return s
}

func (s *staged) read(t *testing.T) relay.Event {
	t.Helper()
	events, err := s.store.Read(t.Context(), relay.ReadRequest{Shards: []int{0, 1, 2, 3}, PerShard: 1, Limit: 1, MaxBytes: 1})
	if err != nil || len(events) != 1 {
		t.Fatalf("read %v, %v", events, err)
	}
	return events[0]
}

func (s *staged) settle(t *testing.T) {
	t.Helper()
	if ids, err := s.store.Settle(t.Context(), s.member, []relay.Settlement{s.retry}); err != nil || len(ids) != 1 {
		t.Fatalf("settled %v, %v", ids, err)
	}
}

// transactions are the names of the commands that were sent, by transaction.
func (s *staged) transactions(t *testing.T) (list [][]string) {
	t.Helper()
	var last int64
	for _, command := range s.take() {
		number, _ := command.Lookup("txnNumber").AsInt64OK()
		autocommit, isSet := command.Lookup("autocommit").BooleanOK()
		if !isSet || autocommit {
			t.Errorf("%s is outside of any transaction", name(t, command))
			continue
		}
		starts, _ := command.Lookup("startTransaction").BooleanOK()
		if starts != (number != last) {
			t.Errorf("%s of transaction %d after %d starts one: %v", name(t, command), number, last, starts)
		}
		if starts {
			list = append(list, nil)
			if level, _ := command.Lookup("readConcern", "level").StringValueOK(); level != "snapshot" {
				t.Errorf("%s reads with the concern %q", name(t, command), level)
			}
		}
		last = number
		list[len(list)-1] = append(list[len(list)-1], name(t, command))
	}
	return list
}

var settleCommands = []string{
	"update outbox_shards", "find outbox_shards", "find outbox_events", "update outbox_events", "insert outbox_attempts", "commitTransaction ",
}

func TestASettleProvesItsLeasesFirstInTheSameTransaction(t *testing.T) {
	s := newStaged(t)
	s.settle(t)
	if got := s.transactions(t); len(got) != 1 || !slices.Equal(got[0], settleCommands) {
		t.Errorf("sent %q, want %q", got, settleCommands)
	}
	wantFinding(t, s.store.Verify(t.Context()), operator.LevelOK, "database", "MongoDB")
}

func TestASettleThatConflictsBeginsAgain(t *testing.T) {
	for _, at := range []string{"update outbox_shards", "update outbox_events"} {
		s := newStaged(t)
		s.set.inject(at, refusal(112, "TransientTransactionError"), refusal(112, "TransientTransactionError"))
		s.settle(t)
		got := s.transactions(t)
		if len(got) != 3 || !slices.Equal(got[2], settleCommands) {
			t.Fatalf("conflicts at %s: sent %q", at, got)
		}
		for _, failed := range got[:2] {
			if want := append(slices.Clone(settleCommands[:slices.Index(settleCommands, at)+1]), "abortTransaction "); !slices.Equal(failed, want) {
				t.Errorf("conflicts at %s: sent %q, want %q", at, failed, want)
			}
		}
	}
}

func TestACommitThatConflictsBeginsAgain(t *testing.T) {
	s := newStaged(t)
	s.set.inject("commitTransaction", refusal(251, "TransientTransactionError"))
	s.settle(t)
	if got := s.transactions(t); len(got) != 2 || !slices.Equal(got[1], settleCommands) {
		t.Errorf("sent %q", got)
	}
}

func TestACommitOfUnknownResultIsAskedForAgain(t *testing.T) {
	s := newStaged(t)
	unknown := refusal(50, "UnknownTransactionCommitResult")
	s.set.inject("commitTransaction", unknown, unknown, unknown)
	s.settle(t)
	want := append(slices.Clone(settleCommands), "commitTransaction ", "commitTransaction ", "commitTransaction ")
	if got := s.transactions(t); len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

func TestACommitOfUnknownResultEndsWithItsContext(t *testing.T) {
	s := newStaged(t)
	s.set.inject("commitTransaction", slices.Repeat([]bson.D{refusal(50, "UnknownTransactionCommitResult")}, 100_000)...)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if ids, err := s.store.Settle(ctx, s.member, []relay.Settlement{s.retry}); err == nil {
		t.Errorf("settled %v although nobody knows it", ids)
	}
}

func TestASettleThatFailsIsAborted(t *testing.T) {
	s := newStaged(t)
	s.set.inject("update outbox_events", refusal(13))
	_, err := s.store.Settle(t.Context(), s.member, []relay.Settlement{s.retry})
	if !errors.Is(err, mongo.ErrDenied) {
		t.Errorf("got %v, want ErrDenied", err)
	}
	if got := s.transactions(t); len(got) != 1 || !slices.Equal(got[0], append(slices.Clone(settleCommands[:4]), "abortTransaction ")) {
		t.Errorf("sent %q", got)
	}
}

func TestAReadSeesOneSnapshotAndWaitsForOne(t *testing.T) {
	s := newStaged(t)
	s.set.inject("aggregate outbox_events", refusal(246), refusal(246))
	s.read(t)
	sent := s.take()
	sessions := map[string]bool{}
	for _, command := range sent {
		if level, _ := command.Lookup("readConcern", "level").StringValueOK(); level != "snapshot" && name(t, command) != "endSessions " {
			t.Errorf("%s reads with the concern %q", name(t, command), level)
		}
		sessions[command.Lookup("lsid").String()] = true
	}
	n := 0
	for _, command := range sent {
		if name(t, command) == "aggregate outbox_events" {
			n++
		}
	}
	if n != 3 || len(sessions) == 0 {
		t.Errorf("looked %d times in %d sessions, want 3 times", n, len(sessions))
	}
}

func TestTheEventCommitsWithTheBusinessWrite(t *testing.T) {
	s := newStaged(t)
	ctx, session := s.begin(t)
	if _, err := s.db.Collection("orders").InsertOne(ctx, bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.outbox.Add(ctx, order("18")); err != nil {
		t.Fatal(err)
	}
	if err := session.CommitTransaction(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{"insert orders", "findAndModify outbox_keys", "insert outbox_events", "commitTransaction "}
	sent := s.take()
	var names []string
	for _, command := range sent {
		names = append(names, name(t, command))
		if !command.Lookup("txnNumber").Equal(sent[0].Lookup("txnNumber")) {
			t.Errorf("%s is in another transaction", name(t, command))
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("sent %q, want %q", names, want)
	}
}
