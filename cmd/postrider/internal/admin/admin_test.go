package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// outbox answers with what a test puts into it.
type outbox struct {
	status operator.Status
	dead   []operator.DeadGroup
	err    error
}

func (o *outbox) Status(context.Context, string) (operator.Status, error) { return o.status, o.err }

func (o *outbox) DeadGroups(context.Context, int) ([]operator.DeadGroup, error) { return o.dead, o.err }

func settings() Config {
	return Config{
		Relay: "orders", Version: "v1.2.3",
		Health:  func() relay.Health { return relay.Health{Ready: true, Relay: "orders", Reasons: []string{}} },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "some metrics") }),
		Hint:    func() {},
		Store:   &outbox{},
		Jobs:    func(context.Context) ([]operator.Job, error) { return nil, nil },
		Logger:  slog.New(slog.DiscardHandler),
	}
}

func get(c Config, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8970"+path, nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	Handler(c).ServeHTTP(w, r)
	return w
}

func TestLivenessDoesNotDependOnReadiness(t *testing.T) {
	c := settings()
	c.Health = func() relay.Health { return relay.Health{Reasons: []string{"sink main is unavailable"}} }
	if w := get(c, "/healthz"); w.Code != 200 {
		t.Errorf("/healthz: status %d", w.Code)
	}
	w := get(c, "/readyz")
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("/readyz: status %d, want 503", w.Code)
	}
	var h relay.Health
	if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil || len(h.Reasons) != 1 || h.Reasons[0] != "sink main is unavailable" {
		t.Errorf("/readyz: %v, %s", err, w.Body)
	}
}

func TestReady(t *testing.T) {
	w := get(settings(), "/readyz")
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || !strings.Contains(w.Body.String(), `"ready": true`) {
		t.Errorf("/readyz: status %d, %v, %s", w.Code, w.Header(), w.Body)
	}
}

func TestToken(t *testing.T) {
	c := settings()
	c.Token = "hunter2"
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	basic := func(password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth("anybody", password) }
	}
	elsewhere := func(r *http.Request) { r.Host = "postrider.internal:8970" }
	for _, test := range []struct {
		name   string
		path   string
		change func(*http.Request)
		want   int
	}{
		{"no token", "/", elsewhere, 401},
		{"no token for metrics", "/metrics", elsewhere, 401},
		{"no token for what is not there", "/admin", elsewhere, 401},
		{"wrong bearer token", "/", bearer("hunter3"), 401},
		{"empty bearer token", "/", bearer(""), 401},
		{"wrong password", "/", basic("hunter3"), 401},
		{"bearer token", "/", bearer("hunter2"), 200},
		{"bearer token for metrics", "/metrics", bearer("hunter2"), 200},
		{"password", "/metrics", basic("hunter2"), 200},
		{"liveness is open", "/healthz", elsewhere, 200},
		{"readiness is open", "/readyz", elsewhere, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := get(c, test.path, test.change)
			if w.Code != test.want {
				t.Errorf("status %d, want %d", w.Code, test.want)
			}
			if test.want == 401 && w.Header().Get("WWW-Authenticate") == "" {
				t.Error("a browser is not told to ask for the password")
			}
			if strings.Contains(w.Body.String(), "hunter2") {
				t.Error("the answer holds the token")
			}
		})
	}
}

// A web page must not read the answers through a host name of its own that leads to the loopback address.
func TestWithoutTokenOnlyLoopbackNames(t *testing.T) {
	for host, want := range map[string]int{
		"127.0.0.1:8970": 200, "localhost:8970": 200, "LOCALHOST": 200, "[::1]:8970": 200, "127.1.2.3": 200,
		"evil.example": 403, "evil.example:8970": 403, "10.0.0.1:8970": 403, "localhost.evil.example": 403, "": 403,
	} {
		w := get(settings(), "/metrics", func(r *http.Request) { r.Host = host })
		if w.Code != want {
			t.Errorf("host %q: status %d, want %d", host, w.Code, want)
		}
	}
}

func TestOnlyGet(t *testing.T) {
	w := get(settings(), "/", func(r *http.Request) { r.Method = http.MethodPost })
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d, want 405", w.Code)
	}
}

func TestStatusPage(t *testing.T) {
	c := settings()
	c.Health = func() relay.Health {
		return relay.Health{Shards: 64, InFlight: 3, Reasons: []string{"sink main is unavailable since noon"}}
	}
	c.Store = &outbox{
		status: operator.Status{
			States:               map[postrider.State]int64{postrider.StatePending: 1234, postrider.StateDead: 5},
			Estimated:            true,
			OldestPendingSeconds: 75,
			HeldKeys:             77,
			Shards:               operator.Shards{Total: 64, Owned: 60, Free: 1, Expired: 3},
			Relays:               []operator.Relay{{ID: "RELAYID", Host: "node-1", Version: "v1.2.3", HeartbeatSeconds: 0.5, Shards: 60}},
			Sinks:                []relay.SinkState{{Name: "main", Type: "kafka", Circuit: relay.CircuitOpen, LastError: "connection refused"}},
			KeyGroups:            []operator.KeyGroup{{Shard: 7, OldestKey: "order-17", OldestEventID: "EVENTID", LastError: "no leader"}},
			Destinations: []operator.Destination{{
				Sink: "hooks", Table: "events_to_hooks", OldestPendingSeconds: 7200,
				States: map[postrider.State]int64{postrider.StatePending: 4321, postrider.StateDead: 8765},
			}},
		},
		dead: []operator.DeadGroup{
			{Sink: "SINKNAME", AggregateType: "order", EventType: "OrderPaid", Error: "too large: <n> bytes", Count: 5, Holding: 333, Sample: "SAMPLEID"},
			{AggregateType: "order", Error: "refused", Count: 1, Destination: "archive"},
		},
	}
	c.Jobs = func(context.Context) ([]operator.Job, error) {
		return []operator.Job{{ID: "17", Kind: operator.JobRedrive, State: operator.JobPaused, Total: 9, Looked: 4, Rate: 2, Who: "bob", Reason: "room", Destination: "attic"}}, nil
	}
	w := get(c, "/")
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("status %d, %v", w.Code, w.Header())
	}
	for _, want := range []string{
		"not ready", "sink main is unavailable since noon", "1234", "(estimate)", "1m15s", "RELAYID", "node-1", "500ms ago",
		"60 owned, 1 free, 3 expired", "kafka", "connection refused", "order-17", "EVENTID", "no leader",
		"OrderPaid", "too large: &lt;n&gt; bytes", "SAMPLEID", "SINKNAME", "v1.2.3",
		"on hold because of dead letters: <strong>77<", ">333<",
		"Job 17 to attic: redrive PAUSED, 4 of 9 events at 2/s. bob: room",
		"hooks", "events_to_hooks", "4321", "8765", "2h", "archive",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestStatusPageEscapesAndRunsNothing(t *testing.T) {
	c := settings()
	const script = `<script>alert(1)</script>`
	c.Store = &outbox{
		status: operator.Status{
			Relays:    []operator.Relay{{Host: script}},
			Sinks:     []relay.SinkState{{LastError: script}},
			KeyGroups: []operator.KeyGroup{{OldestKey: script, LastError: script}},
		},
		dead: []operator.DeadGroup{{Sink: script, AggregateType: script, EventType: script, Error: script}},
	}
	c.Jobs = func(context.Context) ([]operator.Job, error) {
		return []operator.Job{{Who: script, Reason: script}}, nil
	}
	w := get(c, "/")
	if body := w.Body.String(); strings.Contains(body, "<script") || !strings.Contains(body, "&lt;script&gt;") {
		t.Errorf("the page does not escape: %s", body)
	}
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "script-src") {
		t.Errorf("policy %q", policy)
	}
	if w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Error("no nosniff")
	}
}

func TestStatusPageTellsThatTheOutboxDoesNotAnswer(t *testing.T) {
	c := settings()
	c.Store = &outbox{err: errors.New("connection refused")}
	w := get(c, "/")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "The outbox does not answer: connection refused") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

func TestServeUntilTheEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener, Handler(settings()), slog.New(slog.DiscardHandler)) }()
	url := "http://" + listener.Addr().String() + "/healthz"
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	stop()
	select {
	case err := <-served:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve does not end")
	}
	if answer, err := http.Get(url); err == nil {
		answer.Body.Close()
		t.Error("it still answers")
	}
}

func TestHint(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"with the token":      {func(r *http.Request) { r.Header.Set("Authorization", "Bearer hunter2") }, http.StatusNoContent},
		"without it":          {func(*http.Request) {}, http.StatusUnauthorized},
		"from another's page": {func(r *http.Request) { r.SetBasicAuth("", "hunter2"); r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"as something to see": {func(r *http.Request) { r.SetBasicAuth("", "hunter2"); r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
	} {
		c, hints := settings(), 0
		c.Token, c.Hint = "hunter2", func() { hints++ }
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8970/hint", nil)
		test.change(r)
		w := httptest.NewRecorder()
		Handler(c).ServeHTTP(w, r)
		if w.Code != test.status || (hints == 1) != (test.status == http.StatusNoContent) {
			t.Errorf("%s: status %d, %d hints", name, w.Code, hints)
		}
	}
}
