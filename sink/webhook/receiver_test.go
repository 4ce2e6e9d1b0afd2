package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// receiver keeps what is posted to it, each id once, as receivers of webhooks must. Over HTTP/1 it also sees how names
// of headers are spelled.
type receiver struct {
	topic string // others are not found; empty takes all
	limit int    // of a message with its headers; 0 means none

	mu     sync.Mutex
	stored []sinktest.Stored
	known  map[string]bool
}

func newReceiver() *receiver { return &receiver{known: make(map[string]bool)} }

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	headers := spelled(request)
	switch {
	case r.topic != "" && request.Header.Get("X-Topic") != r.topic:
		http.Error(w, "no such topic", http.StatusNotFound)
	case r.limit > 0 && messageSize(headers, body) > r.limit:
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	default:
		r.keep(request, headers, body)
	}
}

func (r *receiver) keep(request *http.Request, headers []relay.Header, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := request.Header.Get("webhook-id")
	if r.known[id] {
		return
	}
	r.known[id] = true
	r.stored = append(r.stored, sinktest.Stored{
		Headers: headers, Payload: body, Coordinates: fmt.Sprintf("webhook:%s@%s", request.Host, id),
	})
}

func (r *receiver) read(testing.TB) []sinktest.Stored {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]sinktest.Stored(nil), r.stored...)
}

// ids returns the ids of what was stored, in that order.
func (r *receiver) ids() string {
	var all []string
	for _, s := range r.read(nil) {
		for _, h := range s.Headers {
			if strings.EqualFold(h.Name, "webhook-id") {
				all = append(all, h.Value)
			}
		}
	}
	return strings.Join(all, " ")
}

// messageSize counts what the events of the suite bring along.
func messageSize(headers []relay.Header, body []byte) int {
	size := len(body)
	for _, h := range headers {
		if strings.HasPrefix(h.Name, "X-Event-") {
			size += len(h.Name) + len(h.Value)
		}
	}
	return size
}

// recording keeps the bytes of the request that is being read.
type recording struct {
	net.Conn
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *recording) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(p[:n])
	return n, err
}

func (c *recording) take() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.text.Reset()
	return bytes.Clone(c.text.Bytes())
}

type recordingListener struct{ net.Listener }

func (l recordingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &recording{Conn: conn}, nil
}

type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// spelled returns the headers of a request with their names as they were on the wire.
func spelled(request *http.Request) []relay.Header {
	var head []byte
	if conn, ok := request.Context().Value(connKey{}).(*recording); ok {
		head, _, _ = bytes.Cut(conn.take(), []byte("\r\n\r\n"))
	}
	names := make(map[string]string)
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, _, _ := strings.Cut(string(line), ":")
		names[http.CanonicalHeaderKey(name)] = name
	}
	var headers []relay.Header
	for name, values := range request.Header {
		if asSent, ok := names[name]; ok {
			name = asSent
		}
		headers = append(headers, relay.Header{Name: name, Value: strings.Join(values, " AND ")})
	}
	return headers
}

// serve starts a receiver on loopback.
func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// answering always answers the same.
func answering(status int, header map[string]string, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// open opens a sink that may go to loopback.
func open(t testing.TB, c Config) *Sink {
	t.Helper()
	c.AllowPrivate = true
	return openStrict(t, c)
}

func openStrict(t testing.TB, c Config) *Sink {
	t.Helper()
	sink, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return sink
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// message returns an event of its own key.
func message(id string) relay.Message {
	return relay.Message{EventID: id, Key: "key of " + id, Topic: "orders", Payload: []byte(`{"id":"` + id + `"}`)}
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
