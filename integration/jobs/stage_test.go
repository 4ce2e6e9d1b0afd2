package jobs_test

import (
	"cmp"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/integration/internal/ledger"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/sqlstore"
)

const (
	maxInFlight = 1000
	soon        = 30 * time.Second // for what takes a moment
	drainLimit  = 3 * time.Minute  // for all events of a test
)

// stage is a database with an outbox, and a topic that its events go to.
type stage struct {
	db      *sql.DB
	dialect postrider.Dialect
	kafka   string
	topic   string
	config  string // file
	admin   string // host:port at which the relay listens
}

// newStage makes a database on the server whose address the environment variable holds. It is dropped after the test.
func newStage(t *testing.T, variable string) *stage {
	t.Helper()
	kafka := servers.Address(t, "POSTRIDER_TEST_KAFKA")
	address, db := newDatabase(t, servers.Address(t, variable))
	s := &stage{
		db: db, dialect: postrider.PostgreSQL, kafka: kafka,
		topic:  broker.Topic(t, kafka, 6, nil),
		config: filepath.Join(t.TempDir(), "postrider.yaml"),
		admin:  fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t)),
	}
	if address.Scheme == "mysql" {
		s.dialect = postrider.MySQL
	}
	text := fmt.Sprintf("outbox: {dsn: %q}\nrelay: {name: orders, lease: 6s, publish_timeout: 3s, max_in_flight_events: %d}\n"+
		"sinks: {main: {type: kafka, brokers: [%q]}}\nroutes: [{sink: main, topic: %s}]\nadmin: {listen: %q}\n",
		address, maxInFlight, kafka, s.topic, s.admin)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.command(t, "init")
	return s
}

func newDatabase(t *testing.T, server string) (*url.URL, *sql.DB) {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	name := "jobs_" + strings.ToLower(rand.Text())
	admin := open(t, address)
	execute(t, admin, "CREATE DATABASE "+name)
	drop := "DROP DATABASE " + name
	if address.Scheme == "postgres" {
		drop += " WITH (FORCE)" // a process that was killed may still be connected
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(drop); err != nil {
			t.Error(err)
		}
	})
	address.Path = "/" + name
	return address, open(t, address)
}

func open(t *testing.T, address *url.URL) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", address.String()
	if address.Scheme == "mysql" {
		var err error
		if dsn, err = sqlstore.MySQLDSN(dsn); err != nil {
			t.Fatal(err)
		}
		driver = "mysql"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// addDead adds dead letters of that many keys, in turn.
func (s *stage) addDead(t *testing.T, events, keys int) {
	t.Helper()
	outbox, err := postrider.New(postrider.Config{Dialect: s.dialect})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]postrider.Event, events)
	for i := range list {
		list[i] = postrider.Event{
			AggregateType: "order", AggregateID: fmt.Sprintf("order-%d", i%keys), Type: "OrderPaid", Payload: fmt.Appendf(nil, `{"n": %d}`, i),
		}
	}
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := outbox.Add(t.Context(), tx, list...); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE outbox_events SET status = 'DEAD', retry_count = 5, last_error = 'refused'"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// command runs a postrider command, which must succeed, and returns what it printed.
func (s *stage) command(t *testing.T, arguments ...string) string {
	t.Helper()
	r := daemon.Run(t, binary, append(arguments, "-c", s.config)...)
	if r.Code != 0 {
		t.Fatalf("postrider %s: exit code %d\n%s%s", strings.Join(arguments, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// relay starts the relay and waits until it is ready.
func (s *stage) relay(t *testing.T) *daemon.Process {
	t.Helper()
	p := daemon.Start(t, binary, s.config, s.admin)
	await.True(t, soon, "the relay is ready", func() bool {
		h, _, ok := p.Health()
		return ok && h.Ready && h.Shards > 0
	})
	return p
}

// job returns the only job.
func (s *stage) job(t *testing.T) operator.Job {
	t.Helper()
	var list struct {
		Jobs []operator.Job `json:"jobs"`
	}
	if err := json.Unmarshal([]byte(s.command(t, "dead", "jobs", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Jobs) != 1 {
		t.Fatalf("%d jobs, want one", len(list.Jobs))
	}
	return list.Jobs[0]
}

// What tells how far a job is: a kill that follows the one closely shows whether the other stays behind.
const (
	byPosition = "SELECT coalesce(sum(looked), 0) FROM outbox_jobs"
	byEvents   = "SELECT count(*) FROM outbox_attempts WHERE outcome = 'redriven'"
)

// awaitHalfway waits until the job has been through a part of its set.
func (s *stage) awaitHalfway(t *testing.T, events int, by string) {
	t.Helper()
	done := 0
	await.True(t, soon, "the job is halfway", func() bool {
		done = s.count(t, by)
		return done >= events/5
	})
	if done > 4*events/5 {
		t.Fatalf("the job is at %d of %d already: too far for a kill to show anything", done, events)
	}
}

// awaitDone waits until the job is DONE and all that it redrove is published.
func (s *stage) awaitDone(t *testing.T, events int) {
	t.Helper()
	await.True(t, drainLimit, "the job is DONE", func() bool { return s.job(t).State == operator.JobDone })
	if job := s.job(t); job.Total != events || job.Looked != events || job.Changed != events {
		t.Errorf("the job went through %d of %d events and changed %d, want %d", job.Looked, job.Total, job.Changed, events)
	}
	await.True(t, drainLimit, "all events are PUBLISHED", func() bool {
		return s.count(t, "SELECT count(*) FROM outbox_events WHERE status = 'PUBLISHED'") == events
	})
}

func (s *stage) count(t *testing.T, query string) (n int) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (s *stage) pending(t *testing.T) int {
	t.Helper()
	return s.count(t, "SELECT count(*) FROM outbox_events WHERE status = 'PENDING'")
}

// checkRedrivenOnce fails unless exactly that many events were redriven, each once.
func (s *stage) checkRedrivenOnce(t *testing.T, events int) {
	t.Helper()
	if n := s.count(t, "SELECT count(*) FROM outbox_attempts WHERE outcome = 'redriven'"); n != events {
		t.Errorf("events were redriven %d times, want %d", n, events)
	}
	if n := s.count(t, "SELECT count(DISTINCT event) FROM outbox_attempts WHERE outcome = 'redriven'"); n != events {
		t.Errorf("%d events were redriven, want %d", n, events)
	}
}

// checkArrived fails unless each event is in the topic, first deliveries of a key in outbox order. It returns how many
// messages repeat an event.
func (s *stage) checkArrived(t *testing.T, events int) (duplicates int) {
	t.Helper()
	messages := broker.Messages(t, s.kafka, s.topic)
	slices.SortFunc(messages, func(a, b ledger.Message) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	arrived := make(map[string]bool)
	last := make(map[string]int64) // outbox id of the key's latest
	for _, m := range messages {
		if arrived[m.Header("X-Event-Id")] {
			duplicates++
			continue
		}
		arrived[m.Header("X-Event-Id")] = true
		id, err := strconv.ParseInt(m.Header("X-Outbox-Id"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if id < last[m.Key] {
			t.Errorf("event %d of key %s stands behind event %d, at %d@%d", id, m.Key, last[m.Key], m.Partition, m.Offset)
		}
		last[m.Key] = id
	}
	if len(arrived) != events {
		t.Errorf("%d events arrived, want %d", len(arrived), events)
	}
	return duplicates
}
