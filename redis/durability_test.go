package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// TestReplicas has a replica that does not acknowledge for a while.
func TestReplicas(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			master, replica := launch(t, kind), launch(t, kind)
			follow(t, replica, master)
			sink := open(t, Config{Addresses: []string{master.address()}, IdempotentFor: time.Minute, Replicas: 1})
			wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "1", Key: "k", Topic: "events"}), relay.ClassPublished)
			if stored := readAll(t, client(t, replica.address()), "events"); len(stored) != 1 {
				t.Errorf("the replica has %d entries, want 1", len(stored))
			}
			wantFinding(t, sink.Check(testContext(t), nil), operator.LevelWarning, "appendfsync everysec")
			wantFinding(t, open(t, Config{Addresses: []string{master.address()}, IdempotentFor: time.Minute, Replicas: 2}).Check(testContext(t), nil),
				operator.LevelError, "1 replicas have it")

			replica.Hang(t)
			batch := []relay.Message{
				{EventID: "2", Key: "k", Topic: "events"}, {EventID: "3", Key: "k", Topic: "events"}, {EventID: "4", Key: "l", Topic: "events"},
			}
			for range 2 { // the second time nothing new is written that a replica could lack
				outcomes := sink.Publish(testContext(t), batch)
				wantOutcome(t, outcomes[0], relay.ClassUnavailable, "0 replicas", "want 1")
				wantOutcome(t, outcomes[1], relay.ClassSkipped)
				wantOutcome(t, outcomes[2], relay.ClassUnavailable, "0 replicas")
			}
			replica.Resume(t)
			for _, o := range sink.Publish(testContext(t), batch) {
				wantOutcome(t, o, relay.ClassPublished)
			}
			stored := readAll(t, client(t, replica.address()), "events")
			if len(stored) != 4 {
				t.Errorf("the replica has %d entries, want 4", len(stored))
			}
		})
	}
}

// follow makes a server the replica of another one, and waits until it has caught up.
func follow(t *testing.T, replica, master server) {
	t.Helper()
	do(t, client(t, master.address()), "CONFIG", "SET", "repl-diskless-sync-delay", 0)
	c := client(t, replica.address())
	do(t, c, "REPLICAOF", "127.0.0.1", master.Port())
	await.True(t, time.Minute, "the replica follows", func() bool {
		return strings.Contains(c.Info(testContext(t), "replication").Val(), "master_link_status:up")
	})
}

// TestConfirm has a server that no longer knows what it accepted, as after a failover.
func TestConfirm(t *testing.T) {
	master, replica := launch(t, "redis"), launch(t, "redis")
	follow(t, replica, master)
	sink := open(t, Config{Addresses: []string{master.address()}, IdempotentFor: time.Minute, Replicas: 1})
	batch := []relay.Message{{EventID: "1", Key: "a", Topic: "events"}, {EventID: "2", Key: "b", Topic: "events"}}
	for _, o := range sink.Publish(testContext(t), batch) {
		wantOutcome(t, o, relay.ClassPublished)
	}
	do(t, client(t, master.address()), "DEL", marker(batch[1]))
	b := keyorder.New(batch)
	b.SettleRest(relay.Published("redis:events@1-1"))
	sink.confirm(testContext(t), batch, []int{0, 1}, b)
	outcomes := b.Outcomes()
	wantOutcome(t, outcomes[0], relay.ClassPublished)
	wantOutcome(t, outcomes[1], relay.ClassUnavailable, "lost")
}

func TestFsync(t *testing.T) {
	s := launch(t, "valkey")
	c := client(t, s.address())
	sink := open(t, Config{Addresses: []string{s.address()}, IdempotentFor: time.Minute, Fsync: true})
	m := relay.Message{EventID: "1", Topic: "events"}
	do(t, c, "CONFIG", "SET", "appendfsync", "no")
	wantOutcome(t, publishOne(t, sink, m), relay.ClassUnavailable, "not on the master's disk")
	for _, policy := range []string{"always", "everysec"} {
		do(t, c, "CONFIG", "SET", "appendfsync", policy)
		wantOutcome(t, publishOne(t, sink, m), relay.ClassPublished)
	}
	for _, f := range sink.Check(testContext(t), []string{"events"}) {
		if f.Level != operator.LevelOK {
			t.Errorf("Check found %+v, want nothing", f)
		}
	}
	replicas := open(t, Config{Addresses: []string{s.address()}, IdempotentFor: time.Minute, Fsync: true, Replicas: 1})
	wantOutcome(t, publishOne(t, replicas, m), relay.ClassUnavailable, "disks of 0 replicas")
	do(t, c, "CONFIG", "SET", "appendonly", "no")
	wantOutcome(t, publishOne(t, sink, m), relay.ClassUnavailable, "appendonly")
	wantFinding(t, sink.Check(testContext(t), nil), operator.LevelError, "appendonly")
	if stored := readAll(t, c, "events"); len(stored) != 1 {
		t.Errorf("%d entries are stored, want 1", len(stored))
	}
}

// TestFsyncOfAnOldServer has one that cannot be asked.
func TestFsyncOfAnOldServer(t *testing.T) {
	address := shared(t, "redis")
	stream := newStream(t, client(t, address))
	sink := open(t, Config{Addresses: []string{address}, IdempotentFor: time.Minute, Fsync: true})
	wantOutcome(t, publishOne(t, sink, relay.Message{EventID: stream, Topic: stream}), relay.ClassUnavailable, "unknown command")
	wantFinding(t, sink.Check(testContext(t), nil), operator.LevelError, "unknown command")
}
