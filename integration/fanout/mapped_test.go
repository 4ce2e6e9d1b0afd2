package fanout_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/sqlstore"
)

// newMySQL makes a database on MySQL.
func newMySQL(t *testing.T) (dsn string, db *sql.DB) {
	t.Helper()
	u, err := url.Parse(servers.Address(t, "POSTRIDER_TEST_MYSQL"))
	must(t, err)
	openMySQL := func() *sql.DB {
		text, err := sqlstore.MySQLDSN(u.String())
		must(t, err)
		db, err := sql.Open("mysql", text)
		must(t, err)
		t.Cleanup(func() { db.Close() })
		return db
	}
	admin, name := openMySQL(), newName()
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE "+name)
	must(t, err)
	t.Cleanup(func() {
		if _, err := admin.ExecContext(context.WithoutCancel(t.Context()), "DROP DATABASE "+name); err != nil {
			t.Log(err)
		}
	})
	u.Path = "/" + name
	return u.String(), openMySQL()
}

// requests are what a webhook was sent, in the order of its arrival.
type requests struct {
	mu  sync.Mutex
	all []string // event id, aggregate id, event type, version and body
	odd []string // headers that nobody should see
}

func (r *requests) ServeHTTP(_ http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	h := q.Header
	r.all = append(r.all, strings.Join([]string{h.Get("X-Event-Id"), h.Get("X-Aggregate-Id"), h.Get("X-Event-Type"), h.Get("X-Aggregate-Version"), string(body)}, " "))
	for name := range h {
		if strings.HasPrefix(name, "Postrider-") {
			r.odd = append(r.odd, name)
		}
	}
}

func (r *requests) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// The outbox is a table of somebody else, with ids that are no UUIDs, keys that are not the aggregate and payloads that are no JSON.
// Consumers see each event as if it had come directly.
func TestATableOfSomebodyElse(t *testing.T) {
	dsn, db := newMySQL(t)
	execute := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	execute(`CREATE TABLE messages (no bigint AUTO_INCREMENT PRIMARY KEY, msg varchar(50) NOT NULL, tenant varchar(50) NOT NULL, order_no varchar(50) NOT NULL,
		version bigint NOT NULL, kind varchar(50) NOT NULL, body longtext NOT NULL, sent_at datetime(6))`)
	var first, second requests
	a, b := httptest.NewServer(&first), httptest.NewServer(&second)
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	admin := fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t))
	config := filepath.Join(t.TempDir(), "postrider.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, `
outbox:
  dsn: %q
  table: messages
  payload: binary
  columns:
    {id: no, event_id: msg, aggregate_type: "'order'", aggregate_id: order_no, partition_key: tenant, aggregate_version: version,
     event_type: kind, payload: body, content_type: "'text/plain'", published_at: sent_at}
relay: {shards: 4}
sinks:
  first: {type: webhook, url: %q, allow_private: true}
  second: {type: webhook, url: %q, allow_private: true}
routes: [{sinks: [first, second]}]
admin: {listen: %q}
`, dsn, a.URL, b.URL, admin), 0o600))
	if r := daemon.Run(t, binary, "init", "-c", config); r.Code != 0 || !strings.Contains(r.Stdout, "messages_to_second") {
		t.Fatalf("init: %+v", r)
	}
	execute(`INSERT INTO messages (msg, tenant, order_no, version, kind, body) VALUES
		('m-1', 'eu', '17', 1, 'Placed', 'plain text'), ('m-2', 'eu', '18', 1, 'Placed', ''), ('m-3', 'eu', '17', 2, 'Paid', '{"a": 1}')`)
	daemon.Start(t, binary, config, admin)
	want := []string{"m-1 17 Placed 1 plain text", "m-2 18 Placed 1 ", `m-3 17 Paid 2 {"a": 1}`}
	for name, r := range map[string]*requests{"first": &first, "second": &second} {
		await.True(t, soon, name+" has got all", func() bool { return len(r.seen()) >= len(want) })
		if got := r.seen(); !slices.Equal(got, want) {
			t.Errorf("%s got %q, want %q", name, got, want)
		}
		if len(r.odd) > 0 {
			t.Errorf("%s saw the headers %q", name, r.odd)
		}
	}
	await.True(t, soon, "the trace tells of both", func() bool {
		r := daemon.Run(t, binary, "trace", "m-2", "-c", config)
		return strings.Contains(r.Stdout, "to first: published") && strings.Contains(r.Stdout, "to second: published")
	})
	if r := daemon.Run(t, binary, "check", "-c", config); r.Code != 0 {
		t.Errorf("check: %+v", r)
	}
}
