package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

func TestConfigReportsEveryMistake(t *testing.T) {
	_, err := Open(Config{
		URL:     "ftp://user:hidden1@host/hidden2",
		Secrets: []string{"hidden3", "whsec_hidden4!", "whsec_aGlkZGVuNQ=="},
		Timeout: -time.Second, Concurrency: -1,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, words := range []string{"https://", "secret 1 does not begin", "secret 2 is not base64", "secret 3 has 7 bytes", "concurrency", "time-out"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("error %q does not mention %q", err, words)
		}
	}
	if strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "aGlkZGVu") {
		t.Errorf("error %q shows a secret", err)
	}
	for text, words := range map[string]string{
		"": "no URL", "https://": "no host", "https://:80/": "no host", "hooks.example.com/a": "https://", "https://h/#hidden": "fragment",
		"https://h:hidden/": "does not parse", "https://h/%zz-hidden": "does not parse", "https://\x7fhidden": "does not parse",
	} {
		switch _, err := Open(Config{URL: text}); {
		case err == nil:
			t.Errorf("%q: no error", text)
		case !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "hidden"):
			t.Errorf("%q: error %q, want %q and nothing of the URL", text, err, words)
		}
	}
	if _, err := Open(Config{URL: "https://hooks.example.com", Concurrency: 1025}); err == nil {
		t.Error("no error for a concurrency of 1025")
	}
}

// TestConcurrency has two calls that share the requests that a host gets at once. The receiver holds them up for a while,
// so that more would come if more could.
func TestConcurrency(t *testing.T) {
	const limit = 3
	var now, most atomic.Int32
	release := make(chan struct{})
	reached := sync.OnceFunc(func() { time.AfterFunc(200*time.Millisecond, func() { close(release) }) })
	server := serve(t, func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == limit {
			reached()
		}
		<-release
	})
	sink := open(t, Config{URL: server.URL, Concurrency: limit})
	var calls sync.WaitGroup
	for call := range 2 {
		calls.Go(func() {
			var batch []relay.Message
			for i := range 30 {
				batch = append(batch, message(fmt.Sprint(call, "-", i)))
			}
			for _, o := range sink.Publish(testContext(t), batch) {
				if o.Class != relay.ClassPublished {
					t.Errorf("%s: %v", o.Class, o.Err)
				}
			}
		})
	}
	calls.Wait()
	if n := most.Load(); n != limit {
		t.Errorf("%d requests at once, want %d", n, limit)
	}
}

// TestRefusedLoginEndsTheCall because what refuses one request for its login refuses all.
func TestRefusedLoginEndsTheCall(t *testing.T) {
	var requests atomic.Int32
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
	})
	outcomes := open(t, Config{URL: server.URL, Concurrency: 1}).Publish(testContext(t), []relay.Message{message("1"), message("2"), message("3")})
	for i, o := range outcomes {
		wantOutcome(t, o, relay.ClassUnavailable, "401 Unauthorized")
		if wasSent := !strings.Contains(o.Err.Error(), "not sent"); wasSent != (i == 0) {
			t.Errorf("message %d: %v", i, o.Err)
		}
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// TestSlowKeyHoldsUpNoOther has a key whose event is answered when all others were.
func TestSlowKeyHoldsUpNoOther(t *testing.T) {
	r := newReceiver()
	const others = 20
	var answered atomic.Int32
	done := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("webhook-id") == "slow" {
			<-done
			return
		}
		r.ServeHTTP(w, request)
		if answered.Add(1) == others {
			close(done)
		}
	})
	batch := []relay.Message{message("slow")}
	for i := range others {
		m := message(fmt.Sprint(i))
		m.Key = "quick"
		batch = append(batch, m)
	}
	for _, o := range open(t, Config{URL: server.URL, Concurrency: 2}).Publish(testContext(t), batch) {
		wantOutcome(t, o, relay.ClassPublished)
	}
}

// faulty answers nothing to events whose id begins with bad: it closes the connection or, when it hangs, waits.
type faulty struct {
	*receiver
	hangs bool
	all   atomic.Bool // every event is bad
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !f.all.Load() && !strings.HasPrefix(r.Header.Get("webhook-id"), "bad"):
		f.receiver.ServeHTTP(w, r)
	case f.hangs:
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client is gone
		<-r.Context().Done()
	default:
		panic(http.ErrAbortHandler)
	}
}

// TestEventWithoutAnswerHarmsNoOther blames the event that gets none, because other requests get theirs.
func TestEventWithoutAnswerHarmsNoOther(t *testing.T) {
	for name, hangs := range map[string]bool{"closes": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &faulty{receiver: newReceiver(), hangs: hangs}
			sink := open(t, Config{URL: serve(t, f.ServeHTTP).URL, Timeout: time.Second})
			o := publishOne(t, sink, message("bad"))
			wantOutcome(t, o, relay.ClassUnavailable, "no answer")
			wantOutcome(t, publishOne(t, sink, message("bad")), relay.ClassUnavailable) // still nothing else to go by
			wantOutcome(t, publishOne(t, sink, message("good")), relay.ClassPublished)
			wantOutcome(t, publishOne(t, sink, message("bad")), relay.ClassRetry, "no answer", "topic orders")
			wantOutcome(t, publishOne(t, sink, message("bad")), relay.ClassUnavailable) // each answer counts once

			var batch []relay.Message
			for i := range 40 {
				batch = append(batch, message(fmt.Sprint("good", i)))
			}
			next := message("next")
			next.Key = message("bad").Key
			batch = append(batch, message("bad"), next)
			outcomes := sink.Publish(testContext(t), batch)
			for _, o := range outcomes[:40] {
				wantOutcome(t, o, relay.ClassPublished)
			}
			wantOutcome(t, outcomes[41], relay.ClassSkipped)
			wantOutcome(t, publishOne(t, sink, message("good")), relay.ClassPublished)
			wantOutcome(t, publishOne(t, sink, message("bad")), relay.ClassRetry)
		})
	}
}

// TestWhenOthersWereAnswered has an event without an answer in one call while another call gets answers: only requests that
// began when the event had waited for half of the time-out tell that the receiver is at work.
func TestWhenOthersWereAnswered(t *testing.T) {
	for name, throughout := range map[string]bool{"early": false, "throughout": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &faulty{receiver: newReceiver(), hangs: true}
			arrived := make(chan struct{}, 1)
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("webhook-id") == "bad" {
					arrived <- struct{}{}
				}
				f.ServeHTTP(w, r)
			})
			sink := open(t, Config{URL: server.URL, Timeout: 2 * time.Second})
			returned := make(chan relay.Outcome, 1)
			go func() { returned <- publishOne(t, sink, message("bad")) }()
			<-arrived
			wantOutcome(t, publishOne(t, sink, message("early")), relay.ClassPublished)
			for n := 0; throughout && len(returned) == 0; n++ {
				wantOutcome(t, publishOne(t, sink, message(fmt.Sprint(n))), relay.ClassPublished)
			}
			want := relay.ClassUnavailable
			if throughout {
				want = relay.ClassRetry
			}
			wantOutcome(t, <-returned, want, "no answer within the time-out of 2s")
		})
	}
}

// TestAnswersBeforeTheEndProveNothing has a receiver that answers an event and then ends, with another one under way.
func TestAnswersBeforeTheEndProveNothing(t *testing.T) {
	arrived, end := make(chan struct{}), make(chan struct{})
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("webhook-id") == "under way" {
			close(arrived)
			<-end
			panic(http.ErrAbortHandler)
		}
	})
	sink := open(t, Config{URL: server.URL})
	returned := make(chan relay.Outcome, 1)
	go func() { returned <- publishOne(t, sink, message("under way")) }()
	<-arrived
	wantOutcome(t, publishOne(t, sink, message("answered")), relay.ClassPublished)
	close(end)
	wantOutcome(t, <-returned, relay.ClassUnavailable, "no answer")
}

// TestOutageIsBlamedOnNoEvent has a receiver that works, and then answers nothing.
func TestOutageIsBlamedOnNoEvent(t *testing.T) {
	for name, hangs := range map[string]bool{"closes": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &faulty{receiver: newReceiver(), hangs: hangs}
			sink := open(t, Config{URL: serve(t, f.ServeHTTP).URL, Timeout: time.Second})
			batch := []relay.Message{message("1"), message("2"), message("3")}
			for _, o := range sink.Publish(testContext(t), batch) {
				wantOutcome(t, o, relay.ClassPublished)
			}
			f.all.Store(true)
			for range 3 {
				for _, o := range sink.Publish(testContext(t), batch) {
					wantOutcome(t, o, relay.ClassUnavailable, "no answer")
				}
			}
			f.all.Store(false)
			for _, o := range sink.Publish(testContext(t), batch) {
				wantOutcome(t, o, relay.ClassPublished)
			}
		})
	}
}

func TestWitnessForgets(t *testing.T) {
	w := newWitness()
	for i := range 3 * maxSilent {
		w.blames(fmt.Sprint(i), time.Now())
	}
	if n := len(w.silent); n > maxSilent {
		t.Errorf("%d events are remembered", n)
	}
	w.blames("known", time.Now())
	w.hear("known", time.Now())
	if _, known := w.silent["known"]; known {
		t.Error("an event that was answered is remembered")
	}
}

// TestEndedContext waits for what was sent, and sends no more.
func TestEndedContext(t *testing.T) {
	r := newReceiver()
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		arrived <- struct{}{}
		<-release
		r.ServeHTTP(w, request)
	})
	ctx, cancel := context.WithCancelCause(testContext(t))
	go func() {
		<-arrived
		cancel(errors.New("the relay stops"))
		close(release)
	}()
	outcomes := open(t, Config{URL: server.URL, Concurrency: 1}).Publish(ctx, []relay.Message{message("a"), message("b")})
	wantOutcome(t, outcomes[0], relay.ClassPublished)
	wantOutcome(t, outcomes[1], relay.ClassUnavailable, "not sent", "the relay stops")
	if got := r.ids(); got != "a" {
		t.Errorf("stored %q, want a", got)
	}
}

// TestConnectingEndsWithTheContext has a server whose TLS never begins.
func TestConnectingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sink := open(t, Config{URL: "https://" + listener.Addr().String()})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	wantOutcome(t, sink.Publish(ctx, []relay.Message{message("1")})[0], relay.ClassUnavailable, "no connection", context.DeadlineExceeded.Error())
	if took := time.Since(began); took > connectTimeout/2 {
		t.Errorf("it took %v", took)
	}
}

// TestClosedConnectionIsReplaced has a server that closes a connection when its second request comes, as one does whose
// patience with idle connections ends.
func TestClosedConnectionIsReplaced(t *testing.T) {
	r := newReceiver()
	var onConn sync.Map // remote address -> seen
	server := serve(t, func(w http.ResponseWriter, request *http.Request) {
		if _, again := onConn.LoadOrStore(request.RemoteAddr, true); again {
			panic(http.ErrAbortHandler)
		}
		r.ServeHTTP(w, request)
	})
	sink := open(t, Config{URL: server.URL})
	for _, id := range []string{"a", "b", "c"} {
		wantOutcome(t, publishOne(t, sink, message(id)), relay.ClassPublished)
	}
	if got := r.ids(); got != "a b c" {
		t.Errorf("stored %q", got)
	}
}

// TestReceiverThatStopsIsNotConnected closes its port while it has a connection, and then that connection.
func TestReceiverThatStopsIsNotConnected(t *testing.T) {
	var server *httptest.Server
	var requests atomic.Int32
	server = serve(t, func(http.ResponseWriter, *http.Request) {
		if requests.Add(1) > 1 {
			server.Listener.Close()
			panic(http.ErrAbortHandler)
		}
	})
	sink := open(t, Config{URL: server.URL})
	wantOutcome(t, publishOne(t, sink, message("1")), relay.ClassPublished)
	wantOutcome(t, publishOne(t, sink, message("2")), relay.ClassUnavailable, "no connection", "refused")
}

// TestAnswerIsBounded has an answer with more headers than are read.
func TestAnswerIsBounded(t *testing.T) {
	server := serve(t, answering(200, map[string]string{"X-Long": strings.Repeat("x", 100_000)}, ""))
	wantOutcome(t, publishOne(t, open(t, Config{URL: server.URL}), message("1")), relay.ClassUnavailable, "headers exceeded")
}

// deafListener has connections on which, once deaf is set, nothing arrives any more. It is set for those that exist.
type deafListener struct {
	net.Listener
	mu    sync.Mutex
	conns []*deafConn
}

type deafConn struct {
	net.Conn
	deaf atomic.Bool
}

func (c *deafConn) Read(p []byte) (int, error) {
	for {
		if n, err := c.Conn.Read(p); err != nil || !c.deaf.Load() {
			return n, err
		}
	}
}

func (l *deafListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, &deafConn{Conn: conn})
	return l.conns[len(l.conns)-1], nil
}

// deafen makes the connections deaf and returns how many there are.
func (l *deafListener) deafen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		conn.deaf.Store(true)
	}
	return len(l.conns)
}

// TestDeadConnectionIsReplaced has a connection of HTTP/2, which all requests share, whose other end is gone.
func TestDeadConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(newReceiver().ServeHTTP))
	listener := &deafListener{Listener: server.Listener}
	server.Listener, server.EnableHTTP2, server.TLS = listener, true, ca.serverConfig(t)
	server.StartTLS()
	defer server.Close()
	sink := open(t, Config{URL: server.URL, TLS: ca.clientConfig()})
	wantOutcome(t, publishOne(t, sink, message("1")), relay.ClassPublished)
	wantOutcome(t, publishOne(t, sink, message("2")), relay.ClassPublished)
	if n := listener.deafen(); n != 1 {
		t.Fatalf("%d connections, want 1", n)
	}
	wantOutcome(t, publishOne(t, sink, message("3")), relay.ClassUnavailable, "no answer")
	wantOutcome(t, publishOne(t, sink, message("3")), relay.ClassPublished)
}

func TestTLS(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	var protocol atomic.Value
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { protocol.Store(r.Proto) }))
	server.EnableHTTP2, server.TLS = true, ours.serverConfig(t)
	server.StartTLS()
	defer server.Close()

	good := open(t, Config{URL: secretURL(server.URL), TLS: ours.clientConfig(), Secrets: []string{oldSecret}})
	wantOutcome(t, publishOne(t, good, message("1")), relay.ClassPublished)
	if protocol.Load() != "HTTP/2.0" {
		t.Errorf("protocol %s", protocol.Load())
	}
	if findings := good.Check(testContext(t), []string{"orders"}); len(findings) != 1 || findings[0].Level != operator.LevelOK {
		t.Errorf("Check found %+v, want one line that all is well", findings)
	}

	wrong := open(t, Config{URL: secretURL(server.URL), TLS: other.clientConfig()})
	o := publishOne(t, wrong, message("1"))
	wantOutcome(t, o, relay.ClassUnavailable, "no connection", "certificate")
	wantNoSecrets(t, o.Err.Error())
	if findings := wrong.Check(testContext(t), nil); findings[0].Level != operator.LevelError || !strings.Contains(findings[0].Message, "certificate") {
		t.Errorf("Check found %+v, want an error about the certificate", findings)
	}
	wantOutcome(t, publishOne(t, open(t, Config{URL: server.URL}), message("1")), relay.ClassUnavailable, "certificate")

	plain := serve(t, answering(200, nil, ""))
	wantOutcome(t, publishOne(t, open(t, Config{URL: strings.Replace(plain.URL, "http", "https", 1)}), message("1")), relay.ClassUnavailable, "no connection")
}

// TestClientCertificate has a server that wants one.
func TestClientCertificate(t *testing.T) {
	ca := newAuthority(t)
	server := httptest.NewUnstartedServer(answering(200, nil, ""))
	server.TLS = ca.serverConfig(t)
	server.TLS.ClientAuth, server.TLS.ClientCAs = tlsVerify, ca.pool
	server.StartTLS()
	defer server.Close()
	settings := ca.clientConfig()
	wantOutcome(t, publishOne(t, open(t, Config{URL: server.URL, TLS: settings}), message("1")), relay.ClassUnavailable)
	settings.Certificates = ca.serverConfig(t).Certificates
	wantOutcome(t, publishOne(t, open(t, Config{URL: server.URL, TLS: settings}), message("1")), relay.ClassPublished)
}

func TestCheck(t *testing.T) {
	server := serve(t, answering(200, nil, ""))
	sink := open(t, Config{URL: server.URL})
	findings := sink.Check(testContext(t), []string{"orders", "bad\ntopic"})
	var levels []operator.Level
	for _, f := range findings {
		levels = append(levels, f.Level)
	}
	want := []operator.Level{operator.LevelOK, operator.LevelWarning, operator.LevelWarning, operator.LevelError}
	if !slices.Equal(levels, want) {
		t.Errorf("Check found %+v, want levels %v", findings, want)
	}
	server.Close()
	if findings := sink.Check(testContext(t), nil); findings[0].Level != operator.LevelError {
		t.Errorf("Check found %+v, want an error", findings)
	}
}
