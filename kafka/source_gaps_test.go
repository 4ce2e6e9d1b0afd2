package kafka

import (
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/inbox"
)

// TestTransactions has committed and aborted transactions: what was aborted does not come, and neither it nor the marks in the
// log, which take offsets, hold the position up.
func TestTransactions(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, 1)
	producer, err := kgo.NewClient(kgo.SeedBrokers(brokers(t)...), kgo.TransactionalID(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	transaction := func(commit kgo.TransactionEndTry, payloads ...string) {
		t.Helper()
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, producer, topic, payloads...)
		if err := producer.EndTransaction(testContext(t), commit); err != nil {
			t.Fatal(err)
		}
	}
	transaction(kgo.TryCommit, "a0", "a1")    // and a mark at 2
	transaction(kgo.TryAbort, "never", "too") // 3, 4, and a mark at 5
	transaction(kgo.TryCommit, "a6")          // and a mark at 7
	source := newSource(t, SourceConfig{Brokers: brokers(t), Group: topic, Topics: []string{topic}})
	got := wantFetched(t, source, "a0", "a1", "a6")
	source.Finish(got[2])
	flush(t, source)
	wantCommitted(t, topic, -1)
	source.Finish(got[:2]...)
	flush(t, source)
	wantCommitted(t, topic, 7)
	closeSource(t, source)
}

// TestRecordWithoutValue is a deletion for a topic that is compacted.
func TestRecordWithoutValue(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, 1)
	producer := newProducer(t)
	record := &kgo.Record{Topic: topic, Key: []byte("a"), Headers: []kgo.RecordHeader{{Key: "B", Value: []byte("2")}, {Key: "A"}, {Key: "B", Value: []byte("1")}}}
	if err := producer.ProduceSync(testContext(t), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	source := newSource(t, SourceConfig{Brokers: brokers(t), Group: topic, Topics: []string{topic}})
	d := wantFetched(t, source, "")[0]
	at := d.Message.At
	d.Message.At = time.Time{}
	want := inbox.Message{
		Topic: topic, Partition: "0", Offset: "0", Coordinates: "kafka:" + topic + "/0@0", Key: "a",
		Headers: []inbox.Header{{Name: "B", Value: "2"}, {Name: "A"}, {Name: "B", Value: "1"}},
	}
	if !reflect.DeepEqual(d.Message, want) {
		t.Errorf("got %#v, want %#v", d.Message, want)
	}
	if !at.Equal(record.Timestamp) {
		t.Errorf("stored at %v, want %v", at, record.Timestamp)
	}
	closeSource(t, source)
}

// TestPositionIsGone has the records after the committed offset deleted before anybody has read them.
func TestPositionIsGone(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, 1)
	produce(t, newProducer(t), topic, "0", "1", "2", "3")
	c := SourceConfig{Brokers: brokers(t), Group: topic, Topics: []string{topic}}
	source := newSource(t, c)
	source.Finish(wantFetched(t, source, "0")...)
	closeSource(t, source)
	wantCommitted(t, topic, 1)
	limit := make(kadm.Offsets)
	limit.AddOffset(topic, 0, 3, -1)
	if _, err := admin(t).DeleteRecords(testContext(t), limit); err != nil {
		t.Fatal(err)
	}
	source = newSource(t, c)
	wantFetched(t, source, "3")
	closeSource(t, source)
}

func newProducer(t testing.TB) *kgo.Client {
	t.Helper()
	producer, err := kgo.NewClient(kgo.SeedBrokers(brokers(t)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	return producer
}

func produce(t testing.TB, producer *kgo.Client, topic string, payloads ...string) {
	t.Helper()
	for _, payload := range payloads {
		if err := producer.ProduceSync(testContext(t), &kgo.Record{Topic: topic, Value: []byte(payload)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func flush(t testing.TB, s *Source) {
	t.Helper()
	if err := s.Flush(testContext(t)); err != nil {
		t.Errorf("Flush: %v", err)
	}
}

func closeSource(t testing.TB, s *Source) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// wantCommitted looks at the first partition of a topic, for the group of the same name. Without a commit the offset is -1.
func wantCommitted(t testing.TB, topic string, offset int64) {
	t.Helper()
	offsets, err := admin(t).FetchOffsetsForTopics(testContext(t), topic, topic)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := offsets.Lookup(topic, 0); got.At != offset {
		t.Errorf("the committed offset is %d, want %d", got.At, offset)
	}
}
