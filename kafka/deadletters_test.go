package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/dlt/dlttest"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/operator"
)

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	dlttest.Run(t, func(t testing.TB) dlttest.Broker {
		sink, err := Open(Config{Brokers: brokers(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sink.Close() })
		return dlttest.Broker{
			Sink:   sink,
			Origin: newTopic(t, 2), Letter: newTopic(t, 2), None: "none", Key: true,
			Open: func(t testing.TB, topic string) dlt.Topic {
				d, err := OpenDeadLetters(Config{Brokers: brokers(t)}, topic)
				if err != nil {
					t.Fatal(err)
				}
				return d
			},
		}
	})
}

// TestDeadLettersOfTransactions has control records, which nobody gets to see, at the end of the topic.
func TestDeadLettersOfTransactions(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, 1)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers(t)...), kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(end))).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDeadLetters(Config{Brokers: brokers(t)}, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	awaitEnd(t, d, 6)
	var payloads []string
	err = d.Scan(ctx, func(l dlt.Letter) error {
		payloads = append(payloads, string(l.Message.Payload))
		return nil
	})
	if err != nil || len(payloads) != 1 || payloads[0] != fmt.Sprint(kgo.TryCommit) {
		t.Errorf("got %q and %v, want what was committed", payloads, err)
	}
}

// awaitEnd waits until transactions have ended in the partition: brokers say that they have before they write it there.
func awaitEnd(t *testing.T, d *DeadLetters, end int64) {
	t.Helper()
	await.True(t, time.Minute, "the end of a transaction", func() bool {
		ends, err := d.ends(t.Context())
		return err == nil && ends[0] == end
	})
}

// TestDeadLettersBesideAnOpenTransaction has one that was given up before it, of which nothing is ever delivered: the scan must not wait
// for it.
func TestDeadLettersBesideAnOpenTransaction(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := func(id string) *kgo.Client {
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers(t)...), kgo.TransactionalID(topic+id), kgo.DefaultProduceTopic(topic))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		if err := errors.Join(client.BeginTransaction(), client.ProduceSync(ctx, kgo.StringRecord(id)).FirstErr()); err != nil {
			t.Fatal(err)
		}
		return client
	}
	first, open := begin("first"), begin("open")
	if err := first.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDeadLetters(Config{Brokers: brokers(t)}, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	awaitEnd(t, d, 1)
	err = d.Scan(ctx, func(dlt.Letter) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "a transaction is open") {
		t.Errorf("Scan returned %v, want that a transaction is open", err)
	}
	if err := open.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	if err := d.Scan(ctx, func(dlt.Letter) error { return nil }); err != nil {
		t.Errorf("Scan returned %v after the transaction", err)
	}
}

// TestMarksTellWhoAndWhy reads a mark as others see it.
func TestMarksTellWhoAndWhy(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, 1)
	d, err := OpenDeadLetters(Config{Brokers: brokers(t)}, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("letter")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var letters []dlt.Letter
	scan := func() {
		letters = nil
		if err := d.Scan(t.Context(), func(l dlt.Letter) error {
			letters = append(letters, l)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	scan()
	if err := d.Settle(t.Context(), letters, operator.Action{Who: "bob", Reason: "cured"}); err != nil {
		t.Fatal(err)
	}
	if scan(); len(letters) != 0 {
		t.Errorf("%d letters are left", len(letters))
	}
	headers := make(map[string]string)
	err = d.read(t.Context(), map[int32]int64{0: 2}, func(r *kgo.Record) error {
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		return nil
	})
	if at := headers[dlt.HeaderRedrivenAt]; err != nil || at == "" || headers[dlt.HeaderRedriven] != "0@0" || headers[dlt.HeaderRedrivenBy] != "bob" ||
		headers[dlt.HeaderRedrivenReason] != "cured" {
		t.Errorf("the mark has %v, %v", headers, err)
	}
}

// TestLettersThatLookLikeMarks has headers that whoever sent the message has chosen, and a mark that a consumer could not apply.
func TestLettersThatLookLikeMarks(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, 1)
	d, err := OpenDeadLetters(Config{Brokers: brokers(t)}, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	origin := kgo.RecordHeader{Key: consumer.HeaderOriginTopic, Value: []byte("orders")}
	header := kgo.RecordHeader{Key: dlt.HeaderRedriven, Value: []byte("0@0")}
	err = d.client.ProduceSync(t.Context(),
		&kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte("letter"), Headers: []kgo.RecordHeader{origin}},
		&kgo.Record{Topic: topic, Key: []byte("k"), Headers: []kgo.RecordHeader{header}},
		&kgo.Record{Topic: topic, Key: []byte(markKey + "0@0"), Headers: []kgo.RecordHeader{header, origin}},
		&kgo.Record{Topic: topic, Key: []byte(markKey + "0@0"), Value: []byte("letter"), Headers: []kgo.RecordHeader{header}},
		&kgo.Record{Topic: topic, Key: []byte(markKey + "0@1"), Headers: []kgo.RecordHeader{header}},
	).FirstErr()
	if err != nil {
		t.Fatal(err)
	}
	visits := 0
	if err := d.Scan(t.Context(), func(dlt.Letter) error { visits++; return nil }); err != nil || visits != 5 {
		t.Errorf("Scan visited %d letters and returned %v, want all 5", visits, err)
	}
}
