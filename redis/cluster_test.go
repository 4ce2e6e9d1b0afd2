package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

const slots = 16384

// cluster is one of three masters without replicas.
type cluster struct {
	nodes []server
	c     *redis.ClusterClient
}

func newCluster(t *testing.T, kind string) cluster {
	t.Helper()
	var x cluster
	for range 3 {
		port := servers.FreePort(t) // the next one is for the nodes among themselves
		x.nodes = append(x.nodes, server{servers.LaunchAt(t, port, kind,
			fmt.Sprintf("REDIS_OPTIONS=--cluster-enabled yes --cluster-port %d --cluster-node-timeout 2000", port+1))})
	}
	for i, s := range x.nodes {
		c := client(t, s.address())
		do(t, c, "CLUSTER", "ADDSLOTSRANGE", i*slots/3, (i+1)*slots/3-1)
		do(t, c, "CLUSTER", "MEET", "127.0.0.1", x.nodes[0].Port(), x.nodes[0].Port()+1)
	}
	for _, s := range x.nodes {
		c := client(t, s.address())
		await.True(t, time.Minute, "the cluster serves", func() bool {
			info := c.ClusterInfo(testContext(t)).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	x.c = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{x.nodes[0].address()}, Protocol: 2})
	t.Cleanup(func() { x.c.Close() })
	return x
}

// owner returns the node that has the key, and a key of another node.
func (x cluster) owner(t *testing.T, key string) server {
	t.Helper()
	node, err := x.c.MasterForKey(testContext(t), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range x.nodes {
		if s.address() == node.Options().Addr {
			return s
		}
	}
	t.Fatalf("key %s is at %s, which is no node", key, node.Options().Addr)
	return server{}
}

func (x cluster) other(s server) server {
	if x.nodes[0] == s {
		return x.nodes[1]
	}
	return x.nodes[0]
}

func (x cluster) config(idempotentFor time.Duration) Config {
	return Config{Addresses: []string{x.nodes[1].address(), x.nodes[2].address()}, Cluster: true, IdempotentFor: idempotentFor}
}

func TestClusterConformance(t *testing.T) {
	t.Parallel()
	x := newCluster(t, "redis")
	for _, idempotentFor := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprintf("idempotent for %s", idempotentFor), func(t *testing.T) {
			sinktest.Run(t, func(t testing.TB) sinktest.Fixture { return newFixture(t, x.c, x.config(idempotentFor)) })
		})
	}
}

// TestClusterSpreads has one batch for streams of all nodes.
func TestClusterSpreads(t *testing.T) {
	t.Parallel()
	x := newCluster(t, "valkey")
	sink := open(t, x.config(time.Minute))
	var batch []relay.Message
	topics := []string{"a}"} // has no key in its slot
	for i := range 300 {
		topic := fmt.Sprintf("orders-%d{tag-%d}", i%30, i%30)
		topics = append(topics, topic)
		batch = append(batch, relay.Message{EventID: fmt.Sprint(i), Key: fmt.Sprint(i % 10), Topic: topic})
	}
	owners := make(map[server]bool)
	for i, o := range sink.Publish(testContext(t), batch) {
		wantOutcome(t, o, relay.ClassPublished)
		owners[x.owner(t, batch[i].Topic)] = true
	}
	if len(owners) != 3 {
		t.Errorf("the streams are on %d nodes, want 3", len(owners))
	}
	for _, topic := range topics[1:31] {
		if stored := readAll(t, x.c, topic); len(stored) != 10 {
			t.Errorf("stream %s has %d entries, want 10", topic, len(stored))
		}
	}
	findings := sink.Check(testContext(t), topics[:2])
	for _, node := range x.nodes {
		wantFinding(t, findings, operator.LevelOK, "redis node "+node.address()+": answers")
		wantFinding(t, findings, operator.LevelWarning, "redis node "+node.address()+": appendfsync")
	}
	wantFinding(t, findings, operator.LevelWarning, "failover: ")
	wantFinding(t, findings, operator.LevelError, "stream a}: ")
	wantFinding(t, findings, operator.LevelOK, "stream "+topics[1])

	alone := open(t, Config{Addresses: []string{x.other(x.owner(t, "orders")).address()}})
	wantOutcome(t, publishOne(t, alone, relay.Message{EventID: "1", Topic: "orders"}), relay.ClassUnavailable, "MOVED", "set cluster")
}

// TestSlotThatMoves moves a stream to another node, step by step, while events for it go on.
func TestSlotThatMoves(t *testing.T) {
	t.Parallel()
	x := newCluster(t, "redis")
	plain, once := open(t, x.config(0)), open(t, x.config(time.Minute))
	publish := func(sink *Sink, id string, class relay.Class, words ...string) {
		t.Helper()
		wantOutcome(t, publishOne(t, sink, relay.Message{EventID: id, Topic: "orders"}), class, words...)
	}
	publish(plain, "1", relay.ClassPublished)
	publish(once, "2", relay.ClassPublished)

	from := x.owner(t, "orders")
	to := x.other(from)
	source, target := client(t, from.address()), client(t, to.address())
	sourceID, targetID := do(t, source, "CLUSTER", "MYID"), do(t, target, "CLUSTER", "MYID")
	slot := do(t, source, "CLUSTER", "KEYSLOT", "orders")
	do(t, target, "CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID)
	do(t, source, "CLUSTER", "SETSLOT", slot, "MIGRATING", targetID)
	publish(plain, "3", relay.ClassPublished) // the stream is still at the source
	publish(once, "4", relay.ClassUnavailable, "TRYAGAIN")
	do(t, source, "MIGRATE", "127.0.0.1", to.Port(), "orders", 0, 5000)
	publish(plain, "5", relay.ClassPublished) // ASK
	publish(once, "4", relay.ClassUnavailable, "TRYAGAIN")
	for _, key := range source.ClusterGetKeysInSlot(testContext(t), int(slot.(int64)), 100).Val() {
		do(t, source, "MIGRATE", "127.0.0.1", to.Port(), key, 0, 5000)
	}
	for _, c := range []*redis.Client{target, source} {
		do(t, c, "CLUSTER", "SETSLOT", slot, "NODE", targetID)
	}
	publish(plain, "6", relay.ClassPublished) // MOVED
	publish(once, "4", relay.ClassPublished)
	publish(once, "2", relay.ClassPublished) // recognized at the new node
	var ids []string
	for _, entry := range target.XRange(testContext(t), "orders", "-", "+").Val() {
		ids = append(ids, entry.Values["id"].(string))
	}
	if got := strings.Join(ids, " "); got != "1 2 3 5 6 4" {
		t.Errorf("the stream has events %s, want 1 2 3 5 6 4", got)
	}
}

// TestNodeThatFails makes its own streams unavailable, with an answer in time, until it is back.
func TestNodeThatFails(t *testing.T) {
	t.Parallel()
	x := newCluster(t, "redis")
	sink := open(t, x.config(time.Minute))
	m := relay.Message{EventID: "1", Topic: "orders"}
	wantOutcome(t, publishOne(t, sink, m), relay.ClassPublished)
	failing := x.owner(t, "orders")
	failing.kill(t)
	m.EventID = "2"
	start := time.Now()
	wantOutcome(t, publishOne(t, sink, m), relay.ClassUnavailable, "orders")
	if took := time.Since(start); took > answerTimeout+time.Second {
		t.Errorf("the outcome took %s", took)
	}
	failing.Start(t)
	await.True(t, time.Minute, "the event is published", func() bool {
		o := publishOne(t, sink, m)
		if o.Class != relay.ClassPublished && o.Class != relay.ClassUnavailable {
			t.Fatalf("%s: %v", o.Class, o.Err)
		}
		return o.Class == relay.ClassPublished
	})
}

// TestSentinels has the master fail and a replica take over.
func TestSentinels(t *testing.T) {
	t.Parallel()
	master, replica := launch(t, "redis"), launch(t, "redis")
	follow(t, replica, master)
	sentinel := launch(t, "redis", fmt.Sprintf("REDIS_SENTINEL_OF=%d", master.Port()))
	watch := client(t, sentinel.address())
	await.True(t, time.Minute, "the sentinel knows the replica", func() bool {
		return strings.Contains(watch.Info(testContext(t), "sentinel").Val(), "status=ok,address="+master.address()+",slaves=1")
	})
	sink := open(t, Config{Addresses: []string{sentinel.address()}, Master: "postrider", IdempotentFor: time.Minute, Replicas: 1})
	m := relay.Message{EventID: "1", Topic: "events"}
	wantOutcome(t, publishOne(t, sink, m), relay.ClassPublished)
	master.kill(t)
	wantOutcome(t, publishOne(t, sink, m), relay.ClassUnavailable)

	alone := open(t, Config{Addresses: []string{sentinel.address()}, Master: "postrider", IdempotentFor: time.Minute})
	await.True(t, time.Minute, "an event is published by the new master", func() bool {
		o := publishOne(t, alone, m)
		if o.Class != relay.ClassPublished && o.Class != relay.ClassUnavailable {
			t.Fatalf("%s: %v", o.Class, o.Err)
		}
		return o.Class == relay.ClassPublished
	})
	m.EventID = "2"
	wantOutcome(t, publishOne(t, alone, m), relay.ClassPublished)
	if stored := readAll(t, client(t, replica.address()), "events"); len(stored) != 2 {
		t.Errorf("the new master has %d entries, want 2: the first is recognized there", len(stored))
	}
	wantFinding(t, alone.Check(testContext(t), nil), operator.LevelWarning, "failover: ")

	unknown := open(t, Config{Addresses: []string{sentinel.address()}, Master: "nobody"})
	wantOutcome(t, publishOne(t, unknown, m), relay.ClassUnavailable)
}
