package nats

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// runServer starts a server in this process.
func runServer(t testing.TB, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog, o.StoreDir = "127.0.0.1", server.RANDOM_PORT, true, true, t.TempDir()
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server does not serve")
	}
	return s
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

func TestWhatNATSCannotCarryIsPermanent(t *testing.T) {
	address := serverURL(t)
	stream := newStream(t, client(t, address), jetstream.StreamConfig{})
	subject := stream.CachedInfo().Config.Name + ".events"
	sink := open(t, Config{Servers: []string{address}})
	for _, topic := range []string{"", ".a", "a.", "a..b", "a.*", "a.>", ">", "a b", "a\tb", "a\r\nPUB b 0", "$JS.API.STREAM.DELETE.x", "$SYS.REQ", strings.Repeat("a", 2000)} {
		wantOutcome(t, publishOne(t, sink, relay.Message{Topic: topic}), relay.ClassPermanent, "subject")
	}
	for _, h := range []relay.Header{
		{Name: "X-Line", Value: "a\r\nNats-Rollup: all"},
		{Name: "X-Line", Value: "a\nb"},
		{Name: "X-Edge", Value: " a"},
		{Name: "X-Edge", Value: "a\t"},
		{Name: "Nats-Rollup", Value: "all"},
		{Name: "nats-msg-id", Value: "other"},
		{Name: "X Space", Value: "a"},
		{Name: "X:Colon", Value: "a"},
		{Name: "X-Ümlaut", Value: "a"},
		{Name: "", Value: "a"},
	} {
		wantOutcome(t, publishOne(t, sink, relay.Message{Topic: subject, Headers: []relay.Header{h}}), relay.ClassPermanent, h.Name)
	}
	if stored := readAll(t, stream); len(stored) != 0 {
		t.Errorf("%d messages were stored", len(stored))
	}
}

func TestMaxPayload(t *testing.T) {
	const limit = 4096
	s := runServer(t, server.Options{JetStream: true, MaxPayload: limit})
	sink := open(t, Config{Servers: []string{s.ClientURL()}})
	if _, err := sink.js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events"}}); err != nil {
		t.Fatal(err)
	}
	m := fill(relay.Message{EventID: "1", Topic: "events"}, limit)
	if o := publishOne(t, sink, m); o.Class != relay.ClassPublished {
		t.Fatalf("a message as large as max_payload is %s: %v", o.Class, o.Err)
	}
	m = fill(relay.Message{EventID: "2", Topic: "events"}, limit+1)
	wantOutcome(t, publishOne(t, sink, m), relay.ClassPermanent, "4097", "max_payload")
}

func TestExpectedStream(t *testing.T) {
	address := serverURL(t)
	stream := newStream(t, client(t, address), jetstream.StreamConfig{})
	name := stream.CachedInfo().Config.Name
	m := relay.Message{EventID: "1", Topic: name + ".events"}
	wantOutcome(t, publishOne(t, open(t, Config{Servers: []string{address}, Stream: "OTHER"}), m), relay.ClassRetry, "OTHER", m.Topic)
	wantOutcome(t, publishOne(t, open(t, Config{Servers: []string{address}, Stream: name}), m), relay.ClassPublished)
	if stored := readAll(t, stream); len(stored) != 1 {
		t.Errorf("%d messages are stored, want 1", len(stored))
	}
}

func TestWithoutJetStreamIsUnavailable(t *testing.T) {
	sink := open(t, Config{Servers: []string{runServer(t, server.Options{}).ClientURL()}})
	wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "1", Topic: "events"}), relay.ClassUnavailable, "events")
	findings := sink.Check(testContext(t), []string{"events"})
	if last := findings[len(findings)-1]; last.Level != operator.LevelError || last.Subject != "jetstream" {
		t.Errorf("Check found %+v, want an error about jetstream", findings)
	}
}

func TestRefusedLoginIsUnavailable(t *testing.T) {
	t.Parallel()
	s := runServer(t, server.Options{JetStream: true, Username: "relay", Password: "right"})
	sink := open(t, Config{Servers: []string{s.ClientURL()}, User: "relay", Password: "wrong"})
	o := publishOne(t, sink, relay.Message{EventID: "1", Topic: "events"})
	wantOutcome(t, o, relay.ClassUnavailable, "Authorization")
	if strings.Contains(o.Err.Error(), "wrong") {
		t.Errorf("reason %q shows the password", o.Err)
	}
	if findings := sink.Check(testContext(t), nil); len(findings) != 1 || findings[0].Level != operator.LevelError {
		t.Errorf("Check found %+v, want one error", findings)
	}
	wantOutcome(t, publishOne(t, open(t, Config{Servers: []string{s.ClientURL()}, User: "relay", Password: "right"}), relay.Message{Topic: "events"}), relay.ClassRetry, "no stream")
}

func TestLogins(t *testing.T) {
	for name, test := range map[string]struct {
		options server.Options
		config  Config
	}{
		"user":  {server.Options{Username: "relay", Password: "secret"}, Config{User: "relay", Password: "secret"}},
		"token": {server.Options{Authorization: "secret"}, Config{Token: "secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.JetStream = true
			test.config.Servers = []string{runServer(t, test.options).ClientURL()}
			sink := open(t, test.config)
			if _, err := sink.js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events"}}); err != nil {
				t.Fatal(err)
			}
			wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "1", Topic: "events"}), relay.ClassPublished)
		})
	}
}

// denying is a sink whose login may not publish to some subjects. The stream EVENTS takes events.>.
func denying(t *testing.T, subjects ...string) *Sink {
	t.Helper()
	s := runServer(t, server.Options{JetStream: true, Users: []*server.User{
		{Username: "relay", Password: "secret", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: subjects}}},
		{Username: "admin", Password: "secret"},
	}})
	js := client(t, "nats://admin:secret@"+s.Addr().String())
	if _, err := js.CreateStream(testContext(t), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events.>"}}); err != nil {
		t.Fatal(err)
	}
	return open(t, Config{Servers: []string{s.ClientURL()}, User: "relay", Password: "secret"})
}

// TestForbiddenSubject shows that the server's complaint, which comes apart from the message, is told with it.
func TestForbiddenSubject(t *testing.T) {
	sink := denying(t, "events.secret", "events.secret.>")
	outcomes := sink.Publish(testContext(t), []relay.Message{
		{EventID: "1", Key: "a", Topic: "events.secret"},
		{EventID: "2", Key: "b", Topic: "events.secret.too"},
		{EventID: "3", Key: "c", Topic: "events.open"},
	})
	wantOutcome(t, outcomes[0], relay.ClassRetry, "events.secret", "permissions")
	wantOutcome(t, outcomes[1], relay.ClassRetry, "events.secret.too", "permissions")
	wantOutcome(t, outcomes[2], relay.ClassPublished)
}

// TestManyForbiddenMessages has more messages that are never answered than may wait for an answer at once.
func TestManyForbiddenMessages(t *testing.T) {
	t.Parallel()
	sink := denying(t, "events.secret")
	for range maxPending / 256 {
		for _, o := range sink.Publish(testContext(t), newMessages("events.secret", 256)) {
			wantOutcome(t, o, relay.ClassRetry, "events.secret", "permissions")
		}
	}
	publishOpen := func() relay.Class {
		ctx, cancel := context.WithTimeout(testContext(t), time.Second)
		defer cancel()
		return sink.Publish(ctx, newMessages("events.open", 10))[0].Class
	}
	start := time.Now()
	if class := publishOpen(); class != relay.ClassUnavailable {
		t.Errorf("without a place for another message it is %s", class)
	}
	if took := time.Since(start); took > ackTimeout/2 {
		t.Errorf("Publish returned after %s, though its context ended after a second", took)
	}
	await.True(t, 2*forgetAfter, "an allowed subject is served", func() bool { return publishOpen() == relay.ClassPublished })
}

// newMessages returns messages of as many keys.
func newMessages(topic string, n int) []relay.Message {
	messages := make([]relay.Message, n)
	for i := range messages {
		id := strconv.Itoa(i)
		messages[i] = relay.Message{EventID: id, Key: id, Topic: topic, Payload: []byte("{}")}
	}
	return messages
}

// TestNoAcknowledgement stops waiting by its own bound, and with the context.
func TestNoAcknowledgement(t *testing.T) {
	t.Parallel()
	address := serverURL(t)
	stream := newStream(t, client(t, address), jetstream.StreamConfig{NoAck: true})
	sink := open(t, Config{Servers: []string{address}})
	topic := stream.CachedInfo().Config.Name + ".events"
	wantOutcome(t, publishOne(t, sink, relay.Message{EventID: "1", Topic: topic}), relay.ClassUnavailable, "no acknowledgement")

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	o := sink.Publish(ctx, []relay.Message{{EventID: "2", Topic: topic}})[0]
	wantOutcome(t, o, relay.ClassUnavailable, context.DeadlineExceeded.Error())
	findings := sink.Check(testContext(t), []string{topic})
	if findings[len(findings)-1].Level != operator.LevelWarning || !hasFinding(findings, operator.LevelError, "acknowledges nothing") {
		t.Errorf("Check found %+v, want an error about acknowledgements and a warning about the window", findings)
	}
}

func hasFinding(findings []operator.Finding, level operator.Level, words string) bool {
	for _, f := range findings {
		if f.Level == level && strings.Contains(f.Message, words) {
			return true
		}
	}
	return false
}

func TestCheck(t *testing.T) {
	address := serverURL(t)
	js := client(t, address)
	good := newStream(t, js, jetstream.StreamConfig{Duplicates: time.Hour}).CachedInfo().Config.Name
	weak := newStream(t, js, jetstream.StreamConfig{Storage: jetstream.MemoryStorage, Retention: jetstream.InterestPolicy}).CachedInfo().Config.Name
	sink := open(t, Config{Servers: []string{address}})
	for _, test := range []struct {
		subject string
		level   operator.Level
		words   string
	}{
		{good + ".events", operator.LevelOK, "stored by stream " + good},
		{weak + ".events", operator.LevelWarning, "memory only"},
		{weak + ".events", operator.LevelWarning, "no consumer exists"},
		{weak + ".events", operator.LevelWarning, "recognizes duplicates"},
		{"missing." + good, operator.LevelError, "no stream takes"},
		{"bad..subject", operator.LevelError, "empty part"},
	} {
		if findings := sink.Check(testContext(t), []string{test.subject}); !hasFinding(findings, test.level, test.words) {
			t.Errorf("%s: Check found %+v, want %s: %s", test.subject, findings, test.level, test.words)
		}
	}
	other := open(t, Config{Servers: []string{address}, Stream: "OTHER"})
	if findings := other.Check(testContext(t), []string{good + ".events"}); !hasFinding(findings, operator.LevelError, "not to OTHER") {
		t.Errorf("Check found %+v, want an error about the stream", findings)
	}
}

func TestConfigReportsEveryMistake(t *testing.T) {
	_, err := Open(Config{Servers: []string{"nats://user:hidden@"}, InProcess: &server.Server{}, User: "a", Token: "b"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, words := range []string{"either servers", "server 1", "only one of them"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("error %q does not mention %q", err, words)
		}
	}
	if strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %q shows a password", err)
	}
	var provider nats.InProcessConnProvider
	if _, err := Open(Config{InProcess: provider}); err == nil {
		t.Error("no error without a server")
	}
}

// TestTLS has a server that wants a client certificate.
func TestTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	certificate, pool := web.TLS.Certificates[0], x509.NewCertPool()
	pool.AddCert(web.Certificate())
	s := runServer(t, server.Options{JetStream: true, TLS: true, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert,
	}})
	address := "nats://" + s.Addr().String()
	for name, test := range map[string]struct {
		config *tls.Config
		want   relay.Class
	}{
		"good":              {&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}}, relay.ClassRetry}, // no stream
		"no certificate":    {&tls.Config{RootCAs: pool}, relay.ClassUnavailable},
		"unknown authority": {&tls.Config{Certificates: []tls.Certificate{certificate}}, relay.ClassUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := open(t, Config{Servers: []string{address}, TLS: test.config})
			wantOutcome(t, publishOne(t, sink, relay.Message{Topic: "events"}), test.want)
		})
	}
}

func TestMissingCredentials(t *testing.T) {
	sink, err := Open(Config{Servers: []string{serverURL(t)}, CredsFile: filepath.Join(t.TempDir(), "missing.creds")})
	if err == nil {
		sink.Close()
		t.Fatal("no error for a credentials file that does not exist")
	}
	if !strings.Contains(err.Error(), "missing.creds") {
		t.Errorf("error %q does not name the file", err)
	}
}
