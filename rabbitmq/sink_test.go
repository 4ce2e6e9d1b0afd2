package rabbitmq

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/keyorder"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// event returns a message of the type order.created.
func event(id, key, topic string) relay.Message {
	return relay.Message{EventID: id, Key: key, Topic: topic, Payload: []byte("{}"), Headers: []relay.Header{
		{Name: relay.HeaderEventID, Value: id}, {Name: relay.HeaderEventType, Value: "order.created"},
	}}
}

func publishOne(t testing.TB, s *Sink, m relay.Message) relay.Outcome {
	t.Helper()
	return s.Publish(testContext(t), []relay.Message{m})[0]
}

// wantOutcome wants a class and a reason that has all of these words in it.
func wantOutcome(t testing.TB, o relay.Outcome, class relay.Class, words ...string) {
	t.Helper()
	if o.Class != class {
		t.Fatalf("outcome %s (%v), want %s", o.Class, o.Err, class)
	}
	for _, word := range words {
		if !strings.Contains(o.Err.Error(), word) {
			t.Errorf("reason %q does not mention %q", o.Err, word)
		}
	}
}

func wantClasses(t testing.TB, outcomes []relay.Outcome, want ...relay.Class) {
	t.Helper()
	for i, o := range outcomes {
		if o.Class != want[i] {
			t.Errorf("message %d is %s (%v), want %s", i, o.Class, o.Err, want[i])
		}
	}
}

func wantIDs(t testing.TB, q *queue, want ...string) {
	t.Helper()
	got := q.ids(t)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("stored are %.300v, want %.300v", got, want)
	}
}

func TestTargetsAndProperties(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		exchange, q := b.newExchange(t), b.newQueue(t, classic)
		b.bind(t, q, exchange, "order.created")
		b.bind(t, q, exchange, "by.hand/too")
		sink := open(t, Config{Servers: []string{address}})
		for topic, want := range map[string]string{
			exchange:                  exchange + "/order.created",
			exchange + "/by.hand/too": exchange + "/by.hand/too",
			"/" + q.name:              "/" + q.name,
		} {
			m := event("e1", "key", topic)
			m.Headers = append(m.Headers, relay.Header{Name: relay.HeaderContentType, Value: "application/json"})
			before := time.Now().Truncate(time.Second)
			o := publishOne(t, sink, m)
			wantOutcome(t, o, relay.ClassPublished)
			if o.Coordinates != "rabbitmq:"+want+"@e1" {
				t.Errorf("coordinates %s, want those of %s", o.Coordinates, want)
			}
			d := q.read(t)[0]
			q.all = nil
			if d.Exchange+"/"+d.RoutingKey != want {
				t.Errorf("topic %s went to %s/%s, want %s", topic, d.Exchange, d.RoutingKey, want)
			}
			if d.MessageId != "e1" || d.Type != "order.created" || d.ContentType != "application/json" || d.DeliveryMode != amqp.Persistent || d.Timestamp.Before(before) {
				t.Errorf("properties are %+v", d)
			}
		}
	})
}

// TestEventTypes finds the event type in each style of headers.
func TestEventTypes(t *testing.T) {
	prefix := (&Sink{}).CloudEvents().Prefix
	for _, name := range []string{relay.HeaderEventType, relay.HeaderDebeziumEventType, prefix + "type"} {
		m, err := encode(relay.Message{Topic: "orders", Headers: []relay.Header{{Name: name, Value: "created"}}}, time.Now())
		if err != nil || m.target.key != "created" || m.publishing.Type != "created" {
			t.Errorf("header %s: routing key %q, type %q, error %v", name, m.target.key, m.publishing.Type, err)
		}
	}
}

func TestWhatRabbitMQCannotCarryIsPermanent(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		q := b.newQueue(t, classic)
		sink := open(t, Config{Servers: []string{address}})
		long := strings.Repeat("a", 256)
		for topic, word := range map[string]string{
			"": "no exchange", "/": "no exchange", long: "exchange of 256", "a/" + long: "routing key of 256", "/" + long: "routing key of 256", "a\xff/b": "UTF-8",
		} {
			outcomes := sink.Publish(testContext(t), []relay.Message{event("bad", "a", topic), event("good", "b", "/"+q.name)})
			wantOutcome(t, outcomes[0], relay.ClassPermanent, word)
			wantOutcome(t, outcomes[1], relay.ClassPublished)
		}
		for _, name := range []string{long, "CC", "BCC"} {
			m := event("bad", "a", "/"+q.name)
			m.Headers = append(m.Headers, relay.Header{Name: name, Value: "x"})
			outcomes := sink.Publish(testContext(t), []relay.Message{event("good", "b", "/"+q.name), m})
			wantOutcome(t, outcomes[0], relay.ClassPublished)
			wantOutcome(t, outcomes[1], relay.ClassPermanent, name)
		}
		wantOutcome(t, publishOne(t, sink, event(long, "a", "/"+q.name)), relay.ClassPermanent, "event id of 256")
		if ids := q.ids(t); len(ids) != 9 || slices.Contains(ids, "bad") {
			t.Errorf("stored are %v, want the 9 good ones", ids)
		}
	})
}

// TestOddValues sends what is legal: bytes that are no UTF-8, and a type that is too long for a property.
func TestOddValues(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		for _, kind := range []string{classic, quorum, stream} {
			q := newBroker(t, address).newQueue(t, kind)
			m := event("odd", "a", "/"+q.name)
			odd := []relay.Header{{Name: "X-Bytes", Value: "a\x00\xff\r\n"}, {Name: "X-Lang", Value: strings.Repeat("é", 2000)}, {Name: "Ümlaut 1", Value: ""}}
			m.Headers = append(odd, relay.Header{Name: relay.HeaderEventType, Value: strings.Repeat("t", 300)})
			wantOutcome(t, publishOne(t, open(t, Config{Servers: []string{address}}), m), relay.ClassPublished)
			d := q.read(t)[0]
			for _, h := range m.Headers {
				if d.Headers[h.Name] != h.Value {
					t.Errorf("%s queue: header %q is stored as %.50q, want %.50q", kind, h.Name, d.Headers[h.Name], h.Value)
				}
			}
			if d.Type != "" {
				t.Errorf("type %q", d.Type)
			}
		}
	})
}

func TestUnroutable(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		exchange, other, q := b.newExchange(t), b.newExchange(t), b.newQueue(t, classic)
		b.bind(t, q, exchange, "known")
		batch := []relay.Message{
			event("1", "a", exchange+"/unknown"), event("2", "a", exchange+"/known"), event("3", "b", exchange+"/known"), event("4", "c", other+"/unknown"),
			event("5", "d", "/"+newName()),
		}
		for _, test := range []struct {
			config Config
			want   []relay.Class
			stored []string
		}{
			{Config{}, []relay.Class{relay.ClassRetry, relay.ClassSkipped, relay.ClassPublished, relay.ClassRetry, relay.ClassRetry}, []string{"3"}},
			{Config{Unroutable: UnroutableDead}, []relay.Class{relay.ClassPermanent, relay.ClassSkipped, relay.ClassPublished, relay.ClassPermanent, relay.ClassPermanent}, []string{"3"}},
			{Config{Unroutable: UnroutableAllow}, []relay.Class{relay.ClassPublished, relay.ClassPublished, relay.ClassPublished, relay.ClassPublished, relay.ClassPublished}, []string{"2", "3"}},
			{Config{UnroutableBy: map[string]Unroutable{exchange: UnroutableDead, "": UnroutableAllow}},
				[]relay.Class{relay.ClassPermanent, relay.ClassSkipped, relay.ClassPublished, relay.ClassRetry, relay.ClassPublished}, []string{"3"}},
		} {
			q.all = nil
			test.config.Servers = []string{address}
			outcomes := open(t, test.config).Publish(testContext(t), batch)
			wantClasses(t, outcomes, test.want...)
			if o := outcomes[0]; o.Class != relay.ClassPublished {
				wantOutcome(t, o, o.Class, exchange+"/unknown", "NO_ROUTE", "312")
			}
			wantIDs(t, q, test.stored...)
		}
	})
}

// TestReturnsAreMatchedByMessage has an exchange that routes by headers, so that messages of one channel differ.
func TestReturnsAreMatchedByMessage(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		exchange, q := newName(), b.newQueue(t, quorum)
		if err := b.channel(t).ExchangeDeclare(exchange, amqp.ExchangeHeaders, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.channel(t).ExchangeDelete(exchange, false, false) })
		if err := b.channel(t).QueueBind(q.name, "", exchange, false, amqp.Table{"x-match": "all", "route": "yes"}); err != nil {
			t.Fatal(err)
		}
		var batch []relay.Message
		var want []relay.Class
		var stored []string
		for i := range 1200 {
			m := event(fmt.Sprint(i), fmt.Sprint(i), exchange)
			if i%3 == 0 {
				want = append(want, relay.ClassRetry)
			} else {
				m.Headers = append(m.Headers, relay.Header{Name: "route", Value: "yes"})
				want, stored = append(want, relay.ClassPublished), append(stored, m.EventID)
			}
			batch = append(batch, m)
		}
		sink := open(t, Config{Servers: []string{address}})
		wantClasses(t, sink.Publish(testContext(t), batch), want...)
		wantIDs(t, q, stored...)
		wantClasses(t, sink.Publish(testContext(t), batch[:3]), want[:3]...) // nothing is left over on the channels
	})
}

// TestMissingExchangesHarmNobody has many that are missing among messages that are well.
func TestMissingExchangesHarmNobody(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		exchange, q := b.newExchange(t), b.newQueue(t, quorum)
		b.bind(t, q, exchange, "#")
		sink := open(t, Config{Servers: []string{address}})
		wantOutcome(t, publishOne(t, sink, event("first", "a", exchange)), relay.ClassPublished)
		var batch []relay.Message
		var want []relay.Class
		stored := []string{"first"}
		for i := range 400 {
			m := event(fmt.Sprint(i), fmt.Sprint(i), exchange)
			if i%4 == 0 {
				m.Topic = fmt.Sprintf("missing-%d/key", i%5)
				want = append(want, relay.ClassRetry)
			} else {
				want, stored = append(want, relay.ClassPublished), append(stored, m.EventID)
			}
			batch = append(batch, m)
		}
		conn := sink.line.attempt.session.conn
		outcomes := sink.Publish(testContext(t), batch)
		wantClasses(t, outcomes, want...)
		wantOutcome(t, outcomes[0], relay.ClassRetry, "missing-0/key", "404")
		wantIDs(t, q, stored...)
		if sink.line.attempt.session.conn != conn {
			t.Error("the connection did not survive")
		}
	})
}

// TestMissingExchangeIsToldOfAll wants one refusal to be enough for all messages to an exchange.
func TestMissingExchangeIsToldOfAll(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		sink := open(t, Config{Servers: []string{address}})
		session, err := sink.line.connect(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		session.learn(100)
		batch := []relay.Message{event("1", "a", "missing"), event("2", "b", "missing"), event("3", "c", "missing")}
		b, suspects := keyorder.New(batch), make(map[int]bool)
		messages := sink.encode(batch, 0, b)
		if err := newFlight(session, &sink.config, b.Round(), messages, suspects, 1).fly(messages, suspects, b); err != nil || len(suspects) > 0 {
			t.Errorf("error %v, to be sent again alone: %v", err, suspects)
		}
		wantClasses(t, b.Outcomes(), relay.ClassRetry, relay.ClassRetry, relay.ClassRetry)
	})
}

// TestFullQueueIsRetry has a queue that refuses what it cannot hold.
func TestFullQueueIsRetry(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		full, q := b.newQueue(t, classic, "x-max-length", 1, "x-overflow", "reject-publish"), b.newQueue(t, classic)
		outcomes := open(t, Config{Servers: []string{address}}).Publish(testContext(t), []relay.Message{
			event("1", "a", "/"+full.name), event("2", "a", "/"+full.name), event("3", "a", "/"+q.name), event("4", "b", "/"+q.name),
		})
		wantClasses(t, outcomes, relay.ClassPublished, relay.ClassRetry, relay.ClassSkipped, relay.ClassPublished)
		wantOutcome(t, outcomes[1], relay.ClassRetry, "nack", full.name)
		wantIDs(t, q, "4")
	})
}

// TestHeadersFitIntoAFrame has headers as large as the server's frame, and one byte more.
func TestHeadersFitIntoAFrame(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		q := newBroker(t, address).newQueue(t, classic)
		sink := open(t, Config{Servers: []string{address}})
		m := event("fits", "a", "/"+q.name)
		m.Headers = append(m.Headers, relay.Header{Name: "X-Long"})
		encoded, err := encode(m, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		const frameMax = 131072 // of both versions
		m.Headers[2].Value = strings.Repeat("x", frameMax-8-encoded.headerSize)
		wantOutcome(t, publishOne(t, sink, m), relay.ClassPublished)
		m.Headers[2].Value += "x"
		outcomes := sink.Publish(testContext(t), []relay.Message{m, event("other", "b", "/"+q.name)})
		wantOutcome(t, outcomes[0], relay.ClassPermanent, "frame_max")
		wantOutcome(t, outcomes[1], relay.ClassPublished)
		wantIDs(t, q, "fits", "other")
	})
}

// TestManyTargetsAndManyMessages has more targets than channels, and more messages for one than a channel carries.
func TestManyTargetsAndManyMessages(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		b := newBroker(t, address)
		exchange, q := b.newExchange(t), b.newQueue(t, classic)
		b.bind(t, q, exchange, "#")
		var batch []relay.Message
		var stored []string
		for i := range 1000 {
			id := fmt.Sprint(i)
			topic := exchange + "/same"
			if i < 300 {
				topic = exchange + "/" + id
			}
			batch, stored = append(batch, event(id, id, topic)), append(stored, id)
		}
		sink := open(t, Config{Servers: []string{address}})
		for _, o := range sink.Publish(testContext(t), batch) {
			wantOutcome(t, o, relay.ClassPublished)
		}
		wantIDs(t, q, stored...)
		if n := len(sink.line.attempt.session.idle); n > maxBundles {
			t.Errorf("%d channels were used at the same time, want at most %d", n, maxBundles)
		}
	})
}

// TestWaitsForWhatWasSent has a context that ends before the confirmation comes.
func TestWaitsForWhatWasSent(t *testing.T) {
	address := serverURL(t, "rabbitmq4")
	q := newBroker(t, address).newQueue(t, classic)
	sink, proxy := openThroughProxy(t, address)
	wantOutcome(t, publishOne(t, sink, event("1", "a", "/"+q.name)), relay.ClassPublished)
	proxy.HoldAnswersAfter(0)
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan []relay.Outcome, 1)
	go func() {
		returned <- sink.Publish(ctx, []relay.Message{event("2", "a", "/"+q.name), event("3", "a", "/"+q.name)})
	}()
	await.True(t, time.Minute, "what was sent is stored", func() bool { return len(q.ids(t)) >= 2 })
	cancel()
	proxy.Heal()
	outcomes := <-returned
	wantClasses(t, outcomes, relay.ClassPublished, relay.ClassUnavailable)
	wantIDs(t, q, "1", "2")
}

// openThroughProxy opens a sink to the server behind a proxy.
func openThroughProxy(t testing.TB, address string) (*Sink, *sinktest.Proxy) {
	t.Helper()
	proxy := sinktest.NewProxy(t, host(t, address))
	return open(t, Config{Servers: []string{at(t, address, proxy.Addr, "")}}), proxy
}

// TestNoConfirmation has answers that never come. The connection is given up, and the next call has another one.
func TestNoConfirmation(t *testing.T) {
	t.Parallel()
	address := serverURL(t, "rabbitmq4")
	q := newBroker(t, address).newQueue(t, classic)
	sink, proxy := openThroughProxy(t, address)
	wantOutcome(t, publishOne(t, sink, event("1", "a", "/"+q.name)), relay.ClassPublished)
	proxy.HoldAnswersAfter(0)
	start := time.Now()
	wantOutcome(t, publishOne(t, sink, event("2", "a", "/"+q.name)), relay.ClassUnavailable, q.name)
	if took := time.Since(start); took > confirmTimeout+patience {
		t.Errorf("it took %s", took)
	}
	proxy.Heal()
	wantOutcome(t, publishOne(t, sink, event("3", "a", "/"+q.name)), relay.ClassPublished)
}

// TestNoAnswer has a server that answers neither a connection nor a channel.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	address := serverURL(t, "rabbitmq")
	sink, proxy := openThroughProxy(t, address)
	wantFinding(t, sink.Check(testContext(t), nil), "ok", "connected")
	proxy.Freeze()
	for range 2 { // the first time on the connection there is, the second without one
		start := time.Now()
		wantOutcome(t, publishOne(t, sink, event("1", "a", "orders")), relay.ClassUnavailable)
		if took := time.Since(start); took > 2*patience {
			t.Errorf("it took %s", took)
		}
	}
	proxy.Cut()
}

// TestAllCallsBusy holds back the answers of as many calls as may send. The next one is told so.
func TestAllCallsBusy(t *testing.T) {
	address := serverURL(t, "rabbitmq")
	q := newBroker(t, address).newQueue(t, classic)
	sink, proxy := openThroughProxy(t, address)
	wantOutcome(t, publishOne(t, sink, event("warm", "a", "/"+q.name)), relay.ClassPublished)
	var busy sync.WaitGroup
	proxy.HoldAnswersAfter(0)
	for i := range maxCalls {
		busy.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			sink.Publish(ctx, []relay.Message{event(fmt.Sprint(i), "a", "/"+q.name)})
		})
	}
	await.True(t, time.Minute, "all calls are taken", func() bool { return len(sink.calls) >= maxCalls })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	wantOutcome(t, sink.Publish(ctx, []relay.Message{event("next", "b", "/"+q.name)})[0], relay.ClassUnavailable, "deadline")
	if took := time.Since(start); took > patience/2 {
		t.Errorf("it took %s", took)
	}
	proxy.Heal()
	busy.Wait()
	wantOutcome(t, publishOne(t, sink, event("next", "b", "/"+q.name)), relay.ClassPublished)
}

// TestNextServer has a first server that is away, and then one that goes away.
func TestNextServer(t *testing.T) {
	address := serverURL(t, "rabbitmq")
	q := newBroker(t, address).newQueue(t, classic)
	away, proxy := sinktest.NewProxy(t, host(t, address)), sinktest.NewProxy(t, host(t, address))
	away.Cut()
	sink := open(t, Config{Servers: []string{at(t, address, away.Addr, ""), at(t, address, proxy.Addr, "")}})
	wantOutcome(t, publishOne(t, sink, event("1", "a", "/"+q.name)), relay.ClassPublished)
	away.Heal()
	proxy.Cut()
	<-sink.line.attempt.session.ended
	wantOutcome(t, publishOne(t, sink, event("2", "a", "/"+q.name)), relay.ClassPublished)
	wantIDs(t, q, "1", "2")
}

func TestRefusedLoginIsUnavailable(t *testing.T) {
	perVersion(t, func(t *testing.T, address string) {
		sink := open(t, Config{Servers: []string{address}, User: "guest", Password: "hidden"})
		o := publishOne(t, sink, event("1", "a", "orders"))
		wantOutcome(t, o, relay.ClassUnavailable, "not allowed")
		findings := sink.Check(testContext(t), nil)
		wantFinding(t, findings, "error", "not allowed")
		for _, text := range []string{o.Err.Error(), fmt.Sprint(findings)} {
			if strings.Contains(text, "hidden") {
				t.Errorf("%q shows the password", text)
			}
		}
		sink = open(t, Config{Servers: []string{address + "nowhere"}})
		wantOutcome(t, publishOne(t, sink, event("1", "a", "orders")), relay.ClassUnavailable, "nowhere")
		wantFinding(t, sink.Check(testContext(t), nil), "error", "nowhere")
	})
}

// TestPrivate has servers of its own, which the cases change.
func TestPrivate(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := launch(t, version, fmt.Sprintf("RABBITMQ_MAX_MESSAGE_SIZE=%d", serverLimit), "RABBITMQ_TLS=1")
			t.Run("TLS", func(t *testing.T) { testTLS(t, server) })
			t.Run("Oversize", func(t *testing.T) { testOversize(t, server) })
			t.Run("LoweredLimit", func(t *testing.T) { testLoweredLimit(t, server) })
			t.Run("Rights", func(t *testing.T) { testRights(t, server) })
			t.Run("Stalled", func(t *testing.T) { testStalled(t, server) })
			t.Run("Blocked", func(t *testing.T) { testBlocked(t, server) })
		})
	}
}

const serverLimit = 20_000

func testTLS(t *testing.T, server private) {
	pem, err := os.ReadFile(server.File("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	address := fmt.Sprintf("amqps://127.0.0.2:%d", server.Port())
	q := newBroker(t, server.address()).newQueue(t, classic)
	sink := open(t, Config{Servers: []string{address}, TLS: &tls.Config{RootCAs: pool}})
	wantOutcome(t, publishOne(t, sink, event("1", "a", "/"+q.name)), relay.ClassPublished)
	for _, config := range []*tls.Config{{RootCAs: x509.NewCertPool()}, nil} {
		sink := open(t, Config{Servers: []string{address}, TLS: config})
		wantOutcome(t, publishOne(t, sink, event("2", "a", "/"+q.name)), relay.ClassUnavailable, "certificate")
		wantFinding(t, sink.Check(testContext(t), nil), "error", "certificate")
	}
	sink = open(t, Config{Servers: []string{"amqp" + strings.TrimPrefix(address, "amqps")}})
	wantOutcome(t, publishOne(t, sink, event("3", "a", "/"+q.name)), relay.ClassUnavailable)
	wantIDs(t, q, "1")
}

// testOversize has payloads over the server's limit, which the sink does not know, in the first batch of a connection.
func testOversize(t *testing.T, server private) {
	q := newBroker(t, server.address()).newQueue(t, quorum)
	sink := open(t, Config{Servers: []string{server.address()}})
	var batch []relay.Message
	var want []relay.Class
	var stored []string
	for i := range 300 {
		m := event(fmt.Sprint(i), fmt.Sprint(i%100), "/"+q.name)
		class := relay.ClassPublished
		switch i {
		case 150, 160:
			m.Payload, class = make([]byte, serverLimit+1), relay.ClassPermanent
		case 250, 260:
			class = relay.ClassSkipped
		case 151:
			m.Payload = make([]byte, serverLimit)
		}
		if class == relay.ClassPublished {
			stored = append(stored, m.EventID)
		}
		batch, want = append(batch, m), append(want, class)
	}
	outcomes := sink.Publish(testContext(t), batch)
	wantClasses(t, outcomes, want...)
	wantOutcome(t, outcomes[150], relay.ClassPermanent, fmt.Sprint(serverLimit), "size")
	wantIDs(t, q, stored...)
}

// testLoweredLimit has a limit that falls below what the server has taken before.
func testLoweredLimit(t *testing.T, server private) {
	q := newBroker(t, server.address()).newQueue(t, quorum)
	sink := open(t, Config{Servers: []string{server.address()}})
	large := event("large", "a", "/"+q.name)
	large.Payload = make([]byte, serverLimit)
	wantOutcome(t, publishOne(t, sink, large), relay.ClassPublished)
	setLimit := func(limit int) {
		server.ctl(t, "eval", fmt.Sprintf("application:set_env(rabbit, max_message_size, %[1]d), persistent_term:put(max_message_size, %[1]d).", limit))
	}
	setLimit(serverLimit / 2)
	t.Cleanup(func() { setLimit(serverLimit) })
	sink.line.attempt.session.idle = nil // an old channel has the old limit
	batch := []relay.Message{event("1", "a", "/"+q.name), event("2", "b", "/"+q.name), large, event("3", "d", "/"+q.name), event("4", "e", "/"+q.name)}
	batch[2].Key = "c"
	wantClasses(t, sink.Publish(testContext(t), batch), relay.ClassPublished, relay.ClassPublished, relay.ClassPermanent, relay.ClassPublished, relay.ClassPublished)
	ids := q.ids(t)
	slices.Sort(ids)
	if ids = slices.Compact(ids); !slices.Equal(ids, []string{"1", "2", "3", "4", "large"}) {
		t.Errorf("stored are %v", ids)
	}
}

func testRights(t *testing.T, server private) {
	b := newBroker(t, server.address())
	exchange, secret, q := b.newExchange(t), b.newExchange(t), b.newQueue(t, quorum)
	b.bind(t, q, exchange, "#")
	b.bind(t, q, secret, "#")
	server.addUser(t, "relay", exchange)
	server.ctl(t, "set_topic_permissions", "relay", exchange, "^open", ".*")
	sink := open(t, Config{Servers: []string{server.address()}, User: "relay", Password: "relay"})
	var batch []relay.Message
	var want []relay.Class
	var stored []string
	for i := range 90 {
		m := event(fmt.Sprint(i), fmt.Sprint(i), exchange+"/open")
		class := relay.ClassRetry
		switch i % 3 {
		case 0:
			m.Topic = secret + "/open"
		case 1:
			m.Topic = exchange + "/closed"
		default:
			class, stored = relay.ClassPublished, append(stored, m.EventID)
		}
		batch, want = append(batch, m), append(want, class)
	}
	for range 2 { // the second time with channels that were used
		q.all = nil
		outcomes := sink.Publish(testContext(t), batch)
		wantClasses(t, outcomes, want...)
		wantOutcome(t, outcomes[0], relay.ClassRetry, secret, "refused")
		wantOutcome(t, outcomes[1], relay.ClassRetry, "closed", "refused")
		wantIDs(t, q, stored...)
	}
}

// setAlarm has the server stop to read from publishers. The function it returns ends that.
func setAlarm(t *testing.T, server private) (clear func()) {
	t.Helper()
	const alarm = "{resource_limit, memory, node()}"
	server.ctl(t, "eval", "rabbit_alarm:set_alarm({"+alarm+", []}).")
	return func() { server.ctl(t, "eval", "rabbit_alarm:clear_alarm("+alarm+").") }
}

// testStalled has a server that stops to read in the middle of a message, and goes on with its heartbeats.
func testStalled(t *testing.T, server private) {
	sink := open(t, Config{Servers: []string{server.address()}, MaxMessageBytes: 200 << 20})
	m := event("1", "a", "/"+newBroker(t, server.address()).newQueue(t, classic).name)
	defer setAlarm(t, server)()
	m.Payload = make([]byte, 100<<20)
	start := time.Now()
	wantOutcome(t, publishOne(t, sink, m), relay.ClassUnavailable, "timeout")
	if took := time.Since(start); took > writeTimeout+patience {
		t.Errorf("the outcome took %s", took)
	}
}

// testBlocked has a server that is short of memory. Messages wait at most as long as for any confirmation, and while
// the server is known to be blocked they are not sent at all.
func testBlocked(t *testing.T, server private) {
	q := newBroker(t, server.address()).newQueue(t, quorum)
	sink := open(t, Config{Servers: []string{server.address()}})
	wantOutcome(t, publishOne(t, sink, event("1", "a", "/"+q.name)), relay.ClassPublished)
	clearAlarm := setAlarm(t, server)
	start := time.Now()
	for n := 2; ; n++ {
		o := publishOne(t, sink, event(fmt.Sprint(n), "a", "/"+q.name))
		if o.Class == relay.ClassUnavailable {
			wantOutcome(t, o, relay.ClassUnavailable, "blocks publishers", "memory")
			break
		}
	}
	if took := time.Since(start); took > confirmTimeout+patience {
		t.Errorf("the outcome took %s", took)
	}
	start = time.Now()
	wantOutcome(t, publishOne(t, sink, event("blocked", "a", "/"+q.name)), relay.ClassUnavailable, "blocks publishers")
	if took := time.Since(start); took > patience {
		t.Errorf("the outcome of a server that is known to be blocked took %s", took)
	}
	wantFinding(t, sink.Check(testContext(t), nil), "error", "blocks publishers")
	clearAlarm()
	await.True(t, time.Minute, "the server unblocks", func() bool { return sink.line.attempt.session.state() == nil })
	wantOutcome(t, publishOne(t, sink, event("after", "a", "/"+q.name)), relay.ClassPublished)
	if ids := q.ids(t); slices.Contains(ids, "blocked") || !slices.Contains(ids, "after") {
		t.Errorf("stored are %v, want after and not blocked", ids)
	}
}

func TestConfigReportsEveryMistake(t *testing.T) {
	_, err := Open(Config{
		Servers:         []string{"amqp://user:hidden%@host", "http://host", "amqp://user:hidden@host?heartbeat=0", "amqp://user:hidden@host/a/b/c"},
		TLS:             &tls.Config{},
		Unroutable:      "drop",
		UnroutableBy:    map[string]Unroutable{"orders": "perhaps"},
		Declare:         []Exchange{{Name: "orders"}},
		MaxMessageBytes: 1,
	})
	for _, words := range []string{"server 1 is not", "server 2 is not", "server 3 has parameters", "no address begins with amqps", `"drop"`, `"orders"`, `"perhaps"`, "exchange 1 to declare", "of 1 bytes"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("error %q does not mention %q", err, words)
		}
	}
	if strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %q shows a password", err)
	}
	if _, err := Open(Config{}); !strings.Contains(cmp.Or(err, context.Canceled).Error(), "no servers") {
		t.Errorf("error %v for no servers", err)
	}
}
