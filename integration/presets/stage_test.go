package presets_test

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/integration/internal/servers"
	"github.com/postrider/postrider/sqlstore"
)

// server is one of the real database servers.
type server struct {
	name     string
	variable string // environment variable with its address
	driver   string
}

var (
	postgres = server{"PostgreSQL", "POSTRIDER_TEST_POSTGRES", "pgx"}
	mysql    = server{"MySQL", "POSTRIDER_TEST_MYSQL", "mysql"}
	mariadb  = server{"MariaDB", "POSTRIDER_TEST_MARIADB", "mysql"}
)

func (s server) isPostgres() bool { return s.driver == "pgx" }

func (s server) open(t *testing.T, address string) *sql.DB {
	t.Helper()
	var err error
	if !s.isPostgres() {
		if address, err = sqlstore.MySQLDSN(address); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open(s.driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// stage is a database with the table of a preset, and a topic that its events go to.
type stage struct {
	preset  preset
	server  server
	dsn     string
	db      *sql.DB
	kafka   string
	topic   string
	count   int            // events that were made
	numbers map[string]int // events of each key that were committed
}

func newStage(t *testing.T, p preset, on server) *stage {
	t.Helper()
	s := &stage{preset: p, server: on, kafka: os.Getenv("POSTRIDER_TEST_KAFKA"), numbers: make(map[string]int)}
	s.topic = p.topicPrefix + "t" + strings.ToLower(rand.Text())
	broker.CreateTopic(t, s.kafka, s.topic, 6, nil)
	s.makeDatabase(t)
	for statement := range strings.SplitSeq(s.ddl(t), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for _, command := range []string{"init", "check"} {
		if r := daemon.Run(t, binary, command, "-c", s.config(t, "")); r.Code != 0 {
			t.Fatalf("postrider %s: exit code %d\n%s%s", command, r.Code, r.Stdout, r.Stderr)
		}
	}
	return s
}

func (s *stage) makeDatabase(t *testing.T) {
	t.Helper()
	address := os.Getenv(s.server.variable)
	if address == "" {
		t.Fatalf("%s is not set: scripts/services starts the servers", s.server.variable)
	}
	name := "presets_" + strings.ToLower(rand.Text())
	admin := s.server.open(t, address)
	create := "CREATE DATABASE " + name
	if !s.server.isPostgres() {
		create += " CHARACTER SET utf8mb4"
	}
	if _, err := admin.Exec(create); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		drop := "DROP DATABASE " + name
		if s.server.isPostgres() {
			drop += " WITH (FORCE)"
		}
		if _, err := admin.Exec(drop); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	s.dsn = u.String()
	s.db = s.server.open(t, s.dsn)
}

// ddl is the statements that make the table, as its own framework or article has them.
func (s *stage) ddl(t *testing.T) string {
	t.Helper()
	kind := "mysql"
	if s.server.isPostgres() {
		kind = "postgres"
	}
	text, err := os.ReadFile(filepath.Join("testdata", s.preset.name+"."+kind+".sql"))
	if err != nil {
		text, err = os.ReadFile(filepath.Join("testdata", s.preset.name+".sql"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// config writes the configuration of one process.
func (s *stage) config(t *testing.T, admin string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "postrider.yaml")
	text := fmt.Sprintf(`
outbox: {dsn: %q, preset: %s}
relay: {name: presets, lease: 3s, publish_timeout: 1s%s}
sinks: {main: {type: kafka, brokers: [%q]}}
routes: [%s]
admin: {listen: %q}
`, s.dsn, s.preset.name, s.preset.relay, s.kafka, strings.ReplaceAll(s.preset.route, "{topic}", s.topic), admin)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (s *stage) start(t *testing.T) *daemon.Process {
	t.Helper()
	admin := fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t))
	return daemon.Start(t, binary, s.config(t, admin), admin)
}

// now is a time as the application writes it.
func (s *stage) now() time.Time { return time.Now().UTC() }
