package mainjob_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/integration/internal/ledger"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
)

const (
	lease       = 6 * time.Second
	maxInFlight = 2000
	partitions  = 6

	soon = 30 * time.Second // for what takes a moment
)

// drainLimit is for all events of a run.
var drainLimit = full(20*time.Minute, 5*time.Minute)

// stage is a database with an outbox, and a topic that its events go to.
type stage struct {
	dsn   string
	db    *sql.DB
	kafka string
	topic string
	relay map[string]string // settings of the relay section
	sink  map[string]string // settings of the sink
}

// newStage makes a stage on the shared servers.
func newStage(t *testing.T) *stage {
	t.Helper()
	return stageOn(t, servers.Address(t, "POSTRIDER_TEST_POSTGRES"), servers.Address(t, "POSTRIDER_TEST_KAFKA"), nil)
}

// stageOn makes a stage on other servers. topicSettings are those of its topic.
func stageOn(t *testing.T, postgres, kafka string, topicSettings map[string]string) *stage {
	t.Helper()
	dsn, db := newDatabase(t, postgres)
	s := &stage{
		dsn: dsn, db: db, kafka: kafka,
		topic: broker.Topic(t, kafka, partitions, topicSettings),
		relay: map[string]string{
			"name": "wallets", "lease": lease.String(), "publish_timeout": "3s",
			"max_in_flight_events": fmt.Sprint(maxInFlight),
		},
		sink: map[string]string{"type": "kafka", "brokers": "[" + kafka + "]"},
	}
	s.command(t, 0, "init")
	return s
}

// newDatabase makes a database that is dropped after the test if its server still runs by then.
func newDatabase(t *testing.T, postgres string) (dsn string, db *sql.DB) {
	t.Helper()
	name := "mainjob_" + strings.ToLower(rand.Text())
	admin := open(t, postgres)
	if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Logf("database %s stays: %v", name, err)
		}
	})
	dsn = withPart(t, postgres, func(u *url.URL) { u.Path = "/" + name })
	return dsn, open(t, dsn)
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// withPart returns the DSN with a part of it changed.
func withPart(t *testing.T, dsn string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

// config writes the configuration of one process, whose connections have the application name.
func (s *stage) config(t *testing.T, name, admin string) string {
	t.Helper()
	dsn := withPart(t, s.dsn, func(u *url.URL) {
		q := u.Query()
		q.Set("application_name", name)
		u.RawQuery = q.Encode()
	})
	return writeConfig(t, fmt.Sprintf("outbox: {dsn: %q}\nrelay: %s\nsinks: {main: %s}\nroutes: [{sink: main, topic: %s}]\nadmin: {listen: %q}\n",
		dsn, mapping(s.relay), mapping(s.sink), s.topic, admin))
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "postrider.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func mapping(settings map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		pairs = append(pairs, key+": "+settings[key])
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// start starts a relay.
func (s *stage) start(t *testing.T, name string) *daemon.Process {
	t.Helper()
	admin := fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t))
	return daemon.Start(t, binary, s.config(t, name, admin), admin)
}

// startReady starts relays and waits until each is ready and holds shards.
func (s *stage) startReady(t *testing.T, names ...string) []*daemon.Process {
	t.Helper()
	var relays []*daemon.Process
	for _, name := range names {
		relays = append(relays, s.start(t, name))
	}
	for i, relay := range relays {
		await.True(t, soon, names[i]+" is ready and holds its share of the shards", func() bool {
			h, _, ok := relay.Health()
			return ok && h.Ready && h.Shards > 0 && h.Shards <= 64/len(names)+1
		})
	}
	return relays
}

// command runs a postrider command with the stage's configuration, which must end with that code.
func (s *stage) command(t *testing.T, code int, arguments ...string) daemon.Result {
	t.Helper()
	r := daemon.Run(t, binary, append(arguments, "-c", s.config(t, "command", ""))...)
	if r.Code != code {
		t.Fatalf("postrider %s: exit code %d, want %d\n%s%s", strings.Join(arguments, " "), r.Code, code, r.Stdout, r.Stderr)
	}
	return r
}

// status is what `postrider status --json` promises, as far as it is asked for here.
type status struct {
	States               map[string]int64 `json:"states"`
	OldestPendingSeconds float64          `json:"oldest_pending_seconds"`
	Sinks                []struct {
		Name      string `json:"name"`
		Circuit   string `json:"circuit"`
		LastError string `json:"last_error"`
	} `json:"sinks"`
}

func (s *stage) status(t *testing.T) (now status) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.command(t, 0, "status", "--json").Stdout), &now); err != nil {
		t.Fatal(err)
	}
	return now
}

// count returns the number that a query yields, -1 while the database does not answer.
func (s *stage) count(query string, arguments ...any) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	n := -1
	if err := s.db.QueryRowContext(ctx, query, arguments...).Scan(&n); err != nil {
		return -1
	}
	return n
}

func (s *stage) inState(state string) int {
	return s.count("SELECT count(*) FROM outbox_events WHERE status = $1", state)
}

func (s *stage) execute(t *testing.T, statement string, arguments ...any) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), statement, arguments...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func (s *stage) awaitPublished(t *testing.T, n int) {
	t.Helper()
	await.True(t, drainLimit, fmt.Sprintf("%d events are published", n), func() bool { return s.inState("PUBLISHED") >= n })
}

// check waits until nothing is PENDING, compares the topic with the ledger and fails at any difference but duplicates.
func (s *stage) check(t *testing.T, events []ledger.Event) *ledger.Report {
	t.Helper()
	await.True(t, drainLimit, "nothing is PENDING", func() bool { return s.inState("PENDING") == 0 })
	report := ledger.Check("wallet", events, broker.Messages(t, s.kafka, s.topic))
	t.Log(report)
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	return report
}

// checkNoAttempts fails when any event failed an attempt or became DEAD.
func (s *stage) checkNoAttempts(t *testing.T) {
	t.Helper()
	if n := s.count("SELECT count(*) FROM outbox_events WHERE retry_count > 0 OR last_error IS NOT NULL OR status = 'DEAD'"); n != 0 {
		t.Errorf("%d events spent attempts", n)
	}
	if n := s.count("SELECT count(*) FROM outbox_attempts"); n != 0 {
		t.Errorf("%d failed attempts are recorded", n)
	}
}
