package kafka

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// TestPartitionsAreThoseOfOtherClients uses the hashes that Kafka's own client has in its tests.
func TestPartitionsAreThoseOfOtherClients(t *testing.T) {
	const partitions = 7
	topic := &topic{name: "t", partitions: partitions, partitioner: kgo.StickyKeyPartitioner(nil).ForTopic("t")}
	for key, hash := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"abc":                        479470107,
	} {
		if got, want := topic.partitionOf(&kgo.Record{Key: []byte(key)}), (hash&0x7fffffff)%partitions; got != want {
			t.Errorf("key %s goes to partition %d, want %d", key, got, want)
		}
	}
}

// TestRefusedRecord has a broker that refuses every batch with a certain record in it.
func TestRefusedRecord(t *testing.T) {
	for _, refusal := range []*kerr.Error{kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.PolicyViolation, kerr.MessageTooLarge} {
		t.Run(refusal.Message, func(t *testing.T) {
			c := newCluster(t)
			refuse(c, "poison", refusal)
			sink := openSink(t, Config{Brokers: c.ListenAddrs()})
			var batch []relay.Message
			var want []relay.Class
			var stored []string
			for i := range 300 {
				m := message(orders, fmt.Sprintf("key-%d", i%30), fmt.Sprintf("payload-%d", i))
				class := relay.ClassPublished
				switch {
				case i == 100:
					m.Payload, class = []byte("poison"), relay.ClassPermanent
				case i > 100 && i%30 == 10:
					class = relay.ClassSkipped
				default:
					stored = append(stored, string(m.Payload))
				}
				batch, want = append(batch, m), append(want, class)
			}
			wantClasses(t, sink.Publish(testContext(t), batch), want...)
			wantPayloads(t, c.ListenAddrs(), orders, stored...)
		})
	}
}

// TestKeyAcrossTopics wants a key's order also where its events go to several topics.
func TestKeyAcrossTopics(t *testing.T) {
	c := newCluster(t)
	refuse(c, "poison", kerr.InvalidRecord)
	sink := openSink(t, Config{Brokers: c.ListenAddrs()})
	outcomes := sink.Publish(testContext(t), []relay.Message{
		message(orders, "a", "a1"),
		message(payments, "a", "a2"),
		message(orders, "a", "poison"),
		message(payments, "a", "a4"),
		message(payments, "b", "b1"),
	})
	wantClasses(t, outcomes, relay.ClassPublished, relay.ClassPublished, relay.ClassPermanent, relay.ClassSkipped, relay.ClassPublished)
	wantPayloads(t, c.ListenAddrs(), orders, "a1")
	wantPayloads(t, c.ListenAddrs(), payments, "a2", "b1")
}

// TestOneRecordBatchPerPartition wants whole record batches, also for a topic that the producer has not used before.
func TestOneRecordBatchPerPartition(t *testing.T) {
	c := newCluster(t)
	sink := openSink(t, Config{Brokers: c.ListenAddrs()})
	wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(payments, "a", "a1")})[0], relay.ClassPublished)
	var batches []int // records of each record batch
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			for _, p := range topic.Partitions {
				var b kmsg.RecordBatch
				if err := b.ReadFrom(p.Records); err == nil {
					batches = append(batches, int(b.NumRecords))
				}
			}
		}
		return nil, nil, false
	})
	var batch []relay.Message
	for i := range 1000 {
		batch = append(batch, message(orders, fmt.Sprint(i), fmt.Sprint(i)))
	}
	for _, o := range sink.Publish(testContext(t), batch) {
		wantOutcome(t, o, relay.ClassPublished)
	}
	c.Close() // ends the use of batches
	sum := 0
	for _, n := range batches {
		sum += n
	}
	if len(batches) != 4 || sum != len(batch) {
		t.Errorf("record batches of %v records, want one for each of 4 partitions and %d records", batches, len(batch))
	}
}

// TestTopicLimitUnknown has a topic whose limit the login may not read. The sink learns it from refusals.
func TestTopicLimitUnknown(t *testing.T) {
	const limit = 10_000
	c := newCluster(t)
	if err := c.CreateTopic("small", 1, map[string]string{"max.message.bytes": fmt.Sprint(limit)}); err != nil {
		t.Fatal(err)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	sink := openSink(t, Config{Brokers: c.ListenAddrs()})
	var batch []relay.Message
	var want []relay.Class
	var stored []string
	for i := range 100 {
		payload, class := strings.Repeat("x", 1000)+fmt.Sprint(i), relay.ClassPublished
		if i == 50 {
			payload, class = strings.Repeat("x", limit), relay.ClassPermanent
		} else {
			stored = append(stored, payload)
		}
		batch, want = append(batch, message("small", fmt.Sprint(i), payload)), append(want, class)
	}
	wantClasses(t, sink.Publish(testContext(t), batch), want...)
	wantPayloads(t, c.ListenAddrs(), "small", stored...)

	refused := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Count: -1, Observe: true, When: func(r kmsg.Request) bool {
		return len(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records) > limit
	}})
	for i := range batch {
		batch[i].Payload = []byte(fmt.Sprint("second", strings.Repeat("x", 1000), i))
	}
	for _, o := range sink.Publish(testContext(t), batch) {
		wantOutcome(t, o, relay.ClassPublished)
	}
	if n := refused.Hits(); n != 0 {
		t.Errorf("%d record batches over the topic's limit after it was learned", n)
	}
}

// TestCompressedMessage is larger than the topic's limit until it is compressed.
func TestCompressedMessage(t *testing.T) {
	for _, codec := range []Compression{CompressionGzip, CompressionSnappy, CompressionLZ4, CompressionZstd} {
		t.Run(string(codec), func(t *testing.T) {
			topic := newTopic(t, 1, "max.message.bytes", "10000")
			sink := openSink(t, Config{Brokers: brokers(t), Compression: codec})
			payload := strings.Repeat("0123456789", 10_000)
			wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(topic, "a", payload)})[0], relay.ClassPublished)
			wantPayloads(t, brokers(t), topic, payload)
		})
	}
	topic := newTopic(t, 1, "max.message.bytes", "10000")
	sink := openSink(t, Config{Brokers: brokers(t)})
	o := sink.Publish(testContext(t), []relay.Message{message(topic, "a", strings.Repeat("x", 10_000))})[0]
	wantOutcome(t, o, relay.ClassPermanent, topic, "max.message.bytes 10000")
}

func TestLargestMessageOfTheSink(t *testing.T) {
	c := newCluster(t)
	sink := openSink(t, Config{Brokers: c.ListenAddrs(), MaxMessageBytes: 2000, Compression: CompressionGzip})
	outcomes := sink.Publish(testContext(t), []relay.Message{
		fill(message(orders, "a", ""), 2000),
		fill(message(orders, "b", ""), 2001),
	})
	wantOutcome(t, outcomes[0], relay.ClassPublished)
	wantOutcome(t, outcomes[1], relay.ClassPermanent, "2001", "2000")
}

// TestForbiddenTopic has logins that may not write to a topic, or not even see it.
func TestForbiddenTopic(t *testing.T) {
	allow := func(operation kmsg.ACLOperation, topic string) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
	}
	login := SASL{Mechanism: MechanismPlain, User: "relay", Password: "secret"}
	for name, rights := range map[string][]kfake.ACL{
		"write":    {allow(kmsg.ACLOperationDescribe, orders), allow(kmsg.ACLOperationWrite, payments)},
		"describe": {allow(kmsg.ACLOperationWrite, payments)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", login.User, login.Password, rights...))
			sink := openSink(t, Config{Brokers: c.ListenAddrs(), SASL: login})
			outcomes := sink.Publish(testContext(t), []relay.Message{message(orders, "a", "a1"), message(orders, "a", "a2"), message(payments, "b", "b1")})
			wantOutcome(t, outcomes[0], relay.ClassRetry, orders, "TOPIC_AUTHORIZATION_FAILED")
			wantClasses(t, outcomes[1:], relay.ClassSkipped, relay.ClassPublished)
		})
	}
}

func TestInvalidTopic(t *testing.T) {
	sink := openSink(t, Config{Brokers: brokers(t)})
	for _, topic := range []string{"", "no spaces", "ä", "..", strings.Repeat("x", 250)} {
		wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(topic, "a", "")})[0], relay.ClassPermanent)
	}
}

func TestLogins(t *testing.T) {
	for _, mechanism := range []Mechanism{MechanismPlain, MechanismScramSHA256, MechanismScramSHA512} {
		t.Run(string(mechanism), func(t *testing.T) {
			c := newCluster(t, kfake.EnableSASL(), kfake.Superuser(string(mechanism), "relay", "right"))
			login := SASL{Mechanism: mechanism, User: "relay", Password: "right"}
			batch := []relay.Message{message(orders, "a", "a1")}
			wantOutcome(t, openSink(t, Config{Brokers: c.ListenAddrs(), SASL: login}).Publish(testContext(t), batch)[0], relay.ClassPublished)

			for name, refused := range map[string]SASL{"wrong password": {mechanism, "relay", "hidden"}, "no login": {}} {
				start := time.Now()
				o := openSink(t, Config{Brokers: c.ListenAddrs(), SASL: refused}).Publish(testContext(t), batch)[0]
				wantOutcome(t, o, relay.ClassUnavailable)
				if strings.Contains(o.Err.Error(), "hidden") {
					t.Errorf("%s: reason %q shows the password", name, o.Err)
				}
				if took := time.Since(start); took > patience+requestTimeout {
					t.Errorf("%s: told after %s", name, took)
				}
			}
		})
	}
}

// TestFatalProducer has a broker that does not know the producer any more. The sink says so and goes on with a new one.
func TestFatalProducer(t *testing.T) {
	for _, fatal := range []*kerr.Error{kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidProducerIDMapping} {
		t.Run(fatal.Message, func(t *testing.T) {
			c := newCluster(t)
			sink := openSink(t, Config{Brokers: c.ListenAddrs()})
			wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(orders, "a", "a1")})[0], relay.ClassPublished)
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: fatal})
			batch := []relay.Message{message(orders, "a", "a2"), message(orders, "a", "a3")}
			outcomes := sink.Publish(testContext(t), batch)
			wantOutcome(t, outcomes[0], relay.ClassUnavailable, orders, fatal.Message)
			wantClasses(t, outcomes[1:], relay.ClassSkipped)
			wantClasses(t, sink.Publish(testContext(t), batch), relay.ClassPublished, relay.ClassPublished)
			wantPayloads(t, c.ListenAddrs(), orders, "a1", "a2", "a3")
		})
	}
}

// TestNoProducer has a broker that gives out no producer id.
func TestNoProducer(t *testing.T) {
	c := newCluster(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ClusterAuthorizationFailed, TopLevel: true})
	sink := openSink(t, Config{Brokers: c.ListenAddrs()})
	batch := []relay.Message{message(orders, "a", "a1")}
	wantOutcome(t, sink.Publish(testContext(t), batch)[0], relay.ClassUnavailable, "CLUSTER_AUTHORIZATION_FAILED")
	wantOutcome(t, sink.Publish(testContext(t), batch)[0], relay.ClassPublished)
}

// TestTooFewReplicas has a broker that takes nothing for longer than the sink is patient. It may have stored what it
// refused, so the sink asks until it is taken.
func TestTooFewReplicas(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	sink := openSink(t, Config{Brokers: c.ListenAddrs()})
	ctx, cancel := context.WithCancel(testContext(t))
	returned := make(chan relay.Outcome, 1)
	go func() { returned <- sink.Publish(ctx, []relay.Message{message(orders, "a", "a1")})[0] }()
	if err := fault.Wait(testContext(t), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := fault.Wait(testContext(t), 3); err != nil {
		t.Fatalf("the sink did not ask again: %v", err)
	}
	fault.Remove()
	wantOutcome(t, <-returned, relay.ClassPublished)
	wantPayloads(t, c.ListenAddrs(), orders, "a1")
}

// TestMaybeAppended has a broker that appends and does not know whether enough replicas have it. The sink asks until it
// is told, also when its context has long ended.
func TestMaybeAppended(t *testing.T) {
	for _, unsure := range []*kerr.Error{kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend} {
		t.Run(unsure.Message, func(t *testing.T) {
			c := newCluster(t)
			sink := openSink(t, Config{Brokers: c.ListenAddrs()})
			wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(orders, "a", "a1")})[0], relay.ClassPublished)
			ctx, cancel := context.WithCancel(context.Background())
			c.Fault(
				kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: unsure, When: func(kmsg.Request) bool { cancel(); return true }},
				kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: 3},
			)
			wantOutcome(t, sink.Publish(ctx, []relay.Message{message(orders, "a", "a2")})[0], relay.ClassPublished)
			wantPayloads(t, c.ListenAddrs(), orders, "a1", "a2")
		})
	}
}

// TestLostAnswerThenRefusals loses the answer to a batch that was appended. Afterwards the broker refuses it for a
// while, which says nothing about the first time. Giving up on such a refusal would publish the events twice.
func TestLostAnswerThenRefusals(t *testing.T) {
	c := newCluster(t)
	proxy := sinktest.NewProxy(t, c.ListenAddrs()[0])
	sink := openSink(t, Config{Brokers: c.ListenAddrs()}, throughProxy(proxy))
	wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(orders, "a", "a1")})[0], relay.ClassPublished)

	ctx, cancel := context.WithCancel(context.Background())
	appended := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true})
	returned := make(chan relay.Outcome, 1)
	second := strings.Repeat("a2", 1000)
	proxy.HoldAnswersAfter(1000)
	go func() { returned <- sink.Publish(ctx, []relay.Message{message(orders, "a", second)})[0] }()
	if err := appended.Wait(testContext(t), 1); err != nil {
		t.Fatal(err)
	}
	wantPayloads(t, c.ListenAddrs(), orders, "a1", second)
	refusals := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: 3})
	cancel()
	proxy.Cut()
	proxy.Heal()
	if err := refusals.Wait(testContext(t), 3); err != nil {
		t.Fatalf("the batch was not repeated until the broker told: %v", err)
	}
	wantOutcome(t, <-returned, relay.ClassPublished)
	wantPayloads(t, c.ListenAddrs(), orders, "a1", second)
}

// TestPartitionWithoutLeader has one partition that takes nothing. The others are published, and only its own messages
// come back as unavailable.
func TestPartitionWithoutLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(2))
	for p := range int32(4) {
		if err := c.MoveTopicPartition(orders, p, p/3); err != nil { // partition 3 is at broker 1, the others at 0
			t.Fatal(err)
		}
	}
	proxy := sinktest.NewProxy(t, c.ListenAddrs()[c.LeaderFor(orders, 3)])
	sink := openSink(t, Config{Brokers: c.ListenAddrs()[:1]}, kgo.Dialer(detour(c.ListenAddrs()[1], proxy.Addr)))
	proxy.Cut()
	var batch []relay.Message
	var want []relay.Class
	var stored []string
	topic := &topic{partitions: 4, partitioner: kgo.StickyKeyPartitioner(nil).ForTopic(orders)}
	for i := range 40 {
		m := message(orders, fmt.Sprint(i), fmt.Sprint(i))
		class := relay.ClassPublished
		if topic.partitionOf(&kgo.Record{Key: []byte(m.Key)}) == 3 {
			class = relay.ClassUnavailable
		} else {
			stored = append(stored, string(m.Payload))
		}
		batch, want = append(batch, m), append(want, class)
	}
	wantClasses(t, sink.Publish(testContext(t), batch), want...)
	proxy.Heal()
	wantPayloads(t, c.ListenAddrs(), orders, stored...)
}

// TestAllLanesBusy holds back the answers of as many calls as there are lanes. The next call is told so.
func TestAllLanesBusy(t *testing.T) {
	c := newCluster(t)
	proxy := sinktest.NewProxy(t, c.ListenAddrs()[0])
	sink := openSink(t, Config{Brokers: c.ListenAddrs()}, throughProxy(proxy))
	var warm sync.WaitGroup
	for i := range maxLanes {
		warm.Go(func() { sink.Publish(testContext(t), []relay.Message{message(orders, fmt.Sprint(i), "warm")}) })
	}
	warm.Wait()
	proxy.HoldAnswersAfter(0)
	var busy sync.WaitGroup
	for i := range maxLanes {
		busy.Go(func() {
			wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(orders, fmt.Sprint(i), "busy")})[0], relay.ClassPublished)
		})
	}
	for len(sink.free) > 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	wantOutcome(t, sink.Publish(ctx, []relay.Message{message(orders, "next", "next")})[0], relay.ClassUnavailable, "earlier messages")
	proxy.Heal()
	busy.Wait()
	wantOutcome(t, sink.Publish(testContext(t), []relay.Message{message(orders, "next", "next")})[0], relay.ClassPublished)
}
