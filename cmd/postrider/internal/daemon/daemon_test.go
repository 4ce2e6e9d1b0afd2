package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/relay"
)

// buffer is a writer that several goroutines use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// running is a daemon at work.
type running struct {
	url            string
	stdout, stderr buffer
	stop           context.CancelFunc
	ended          chan error
}

func start(t *testing.T, c *config.Config) *running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{url: "http://" + listener.Addr().String(), stop: stop, ended: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(&r.stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	go func() {
		r.ended <- Run(ctx, c, Options{Version: "v1.2.3", Stdout: &r.stdout, Logger: log, Listener: listener})
	}()
	return r
}

// end stops the daemon and returns its error.
func (r *running) end(t *testing.T) error {
	t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(30 * time.Second):
		t.Fatalf("the daemon does not end:\n%s", r.stderr.String())
		return nil
	}
}

// get returns status and body; while the server does not answer, status 0.
func (r *running) get(path string) (status int, body string) {
	answer, err := http.Get(r.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

func await(t *testing.T, what string, r *running, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30s; the log:\n%s", what, r.stderr.String())
		}
	}
}

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("postrider.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newOutbox returns a configuration with an outbox that has one event.
func newOutbox(t *testing.T) *config.Config {
	t.Helper()
	c := parse(t, `
outbox: {dsn: "sqlite:`+filepath.Join(t.TempDir(), "orders.db")+`"}
sinks: {out: {type: stdout}}
routes: [{sink: out, topic: orders}]
`)
	outbox, err := wiring.CreateOutbox(c)
	if err != nil {
		t.Fatal(err)
	}
	defer outbox.Close()
	if err := outbox.Store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = outbox.DB.Exec(`INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', 'order-1', 'OrderPaid', '{}')`)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRelayAndServer(t *testing.T) {
	r := start(t, newOutbox(t))
	await(t, "ready", r, func() bool { status, _ := r.get("/readyz"); return status == 200 })
	await(t, "published", r, func() bool {
		_, text := r.get("/metrics")
		return strings.Contains(text, `postrider_events_total{outcome="published",sink="out"} 1`) &&
			strings.Contains(text, "postrider_settled_events_total 1") &&
			strings.Contains(text, "postrider_leases_held 64") && strings.Contains(text, `version="v1.2.3"`)
	})
	if status, page := r.get("/"); status != 200 || !strings.Contains(page, "64 owned") {
		t.Errorf("status page: %d: %s", status, page)
	}
	if err := r.end(t); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := r.stdout.String(); !strings.HasPrefix(got, `{"topic":"orders","key":"order-1"`) {
		t.Errorf("published %s", got)
	}
	if status, _ := r.get("/healthz"); status != 0 {
		t.Error("the server outlives the relay")
	}
}

// While the database cannot be reached the process lives, is not ready, says why, and tries again.
func TestUnreachableDatabase(t *testing.T) {
	c := parse(t, `
outbox: {dsn: "postgres://app:s3cret@127.0.0.1:1/orders?sslmode=disable"}
sinks: {out: {type: stdout}}
routes: [{sink: out}]
`)
	r := start(t, c)
	await(t, "second attempt", r, func() bool { return strings.Count(r.stderr.String(), "trying again") >= 2 })
	if status, _ := r.get("/healthz"); status != 200 {
		t.Errorf("/healthz: status %d", status)
	}
	status, body := r.get("/readyz")
	var h relay.Health
	if err := json.Unmarshal([]byte(body), &h); err != nil {
		t.Fatal(err)
	}
	if status != 503 || h.Ready || len(h.Reasons) != 1 || !strings.Contains(h.Reasons[0], "the outbox cannot be reached") {
		t.Errorf("/readyz: status %d: %s", status, body)
	}
	_, metrics := r.get("/metrics")
	if !strings.Contains(metrics, "postrider_ready 0") {
		t.Error("the metrics do not show it")
	}
	_, page := r.get("/")
	if err := r.end(t); err != nil {
		t.Errorf("Run: %v", err)
	}
	if strings.Contains(body+metrics+page+r.stderr.String(), "s3cret") {
		t.Error("the password was shown")
	}
}

// Without its server the relay does not go on unseen.
func TestServerThatFailsEndsTheRelay(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	err = Run(t.Context(), newOutbox(t), Options{
		Version: "v1.2.3", Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler), Listener: listener,
	})
	if err == nil || !strings.Contains(err.Error(), "admin server") {
		t.Errorf("Run: %v", err)
	}
}
