package nats

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/dlt"
	"github.com/postrider/postrider/dlt/dlttest"
	"github.com/postrider/postrider/operator"
)

// TestDeadLetters has a work queue as well, which lets nobody read without consuming but by number.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	for name, retention := range map[string]jetstream.RetentionPolicy{"limits": jetstream.LimitsPolicy, "work queue": jetstream.WorkQueuePolicy} {
		t.Run(name, func(t *testing.T) {
			dlttest.Run(t, func(t testing.TB) dlttest.Broker {
				address := serverURL(t)
				stream := newStream(t, client(t, address), jetstream.StreamConfig{Retention: retention, Duplicates: time.Minute})
				name := stream.CachedInfo().Config.Name
				return dlttest.Broker{
					Sink:   open(t, Config{Servers: []string{address}}),
					Origin: name + ".orders", Letter: name + ".orders.dlt", None: "none-" + name,
					Open: func(t testing.TB, topic string) dlt.Topic {
						d, err := OpenDeadLetters(Config{Servers: []string{address}}, topic)
						if err != nil {
							t.Fatal(err)
						}
						return d
					},
				}
			})
		})
	}
}

// TestSettleWhatIsGone has another redrive that was faster with some letters of a batch, and one that has nothing left to do.
func TestSettleWhatIsGone(t *testing.T) {
	t.Parallel()
	address := serverURL(t)
	js := client(t, address)
	stream := newStream(t, js, jetstream.StreamConfig{})
	subject := stream.CachedInfo().Config.Name + ".orders.dlt"
	for range 3 {
		_, err := js.Publish(testContext(t), subject, []byte("letter"))
		must(t, err)
	}
	d, err := OpenDeadLetters(Config{Servers: []string{address}}, subject)
	must(t, err)
	defer d.Close()
	var letters []dlt.Letter
	must(t, d.Scan(testContext(t), func(l dlt.Letter) error {
		letters = append(letters, l)
		return nil
	}))
	must(t, stream.DeleteMsg(testContext(t), 2))
	must(t, d.Settle(testContext(t), letters, operator.Action{}))
	info, err := stream.Info(testContext(t))
	must(t, err)
	if info.State.Msgs != 0 {
		t.Errorf("%d letters are left", info.State.Msgs)
	}
	must(t, d.Settle(testContext(t), letters, operator.Action{}))
}

// TestSettleRefused has a stream that lets nobody delete.
func TestSettleRefused(t *testing.T) {
	t.Parallel()
	address := serverURL(t)
	js := client(t, address)
	stream := newStream(t, js, jetstream.StreamConfig{DenyDelete: true})
	subject := stream.CachedInfo().Config.Name + ".orders.dlt"
	_, err := js.Publish(testContext(t), subject, []byte("letter"))
	must(t, err)
	d, err := OpenDeadLetters(Config{Servers: []string{address}}, subject)
	must(t, err)
	defer d.Close()
	err = d.Scan(testContext(t), func(l dlt.Letter) error { return d.Settle(testContext(t), []dlt.Letter{l}, operator.Action{}) })
	if err == nil {
		t.Error("Settle returned no error, and the letter is there")
	}
}

// TestLettersAreAskedFromTheLeader has a stream that replicas may answer for. A client takes a letter without payload for an answer of the
// server then, and a replica may be behind.
func TestLettersAreAskedFromTheLeader(t *testing.T) {
	t.Parallel()
	address := serverURL(t)
	js := client(t, address)
	stream := newStream(t, js, jetstream.StreamConfig{AllowDirect: true})
	subject := stream.CachedInfo().Config.Name + ".orders.dlt"
	for range 2 {
		_, err := js.PublishMsg(testContext(t), &nats.Msg{Subject: subject, Header: nats.Header{"Status": {"404"}}})
		must(t, err)
	}
	d, err := OpenDeadLetters(Config{Servers: []string{address}}, subject)
	must(t, err)
	defer d.Close()
	visits := 0
	must(t, d.Scan(testContext(t), func(dlt.Letter) error { visits++; return nil }))
	if visits != 2 {
		t.Errorf("Scan visited %d letters, want 2", visits)
	}
}
