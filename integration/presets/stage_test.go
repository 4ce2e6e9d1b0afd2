package presets_test

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/internal/servers"
)

// table is a table or a collection of a database server, as its application has it.
type table interface {
	// add adds events in one transaction. The transaction is rolled back where it is not to be committed.
	add(t *testing.T, s *stage, some []event, commit bool)
	// left counts the events that are not published yet.
	left(t *testing.T) int
}

// stage is a database with the table of a preset, and a topic that its events go to.
type stage struct {
	preset  preset
	dsn     string
	table   table
	kafka   string
	topic   string
	count   int            // events that were made
	numbers map[string]int // events of each key that were committed
}

func newStage(t *testing.T, p preset, on server) *stage {
	t.Helper()
	s := &stage{preset: p, kafka: os.Getenv("POSTRIDER_TEST_KAFKA"), numbers: make(map[string]int)}
	s.topic = p.topicPrefix + "t" + strings.ToLower(rand.Text())
	broker.CreateTopic(t, s.kafka, s.topic, 6, nil)
	address := os.Getenv(on.variable)
	if address == "" {
		t.Fatalf("%s is not set: scripts/services starts the servers", on.variable)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/presets_" + strings.ToLower(rand.Text())
	s.dsn = u.String()
	if on == mongodb {
		s.table = newCollection(t, s.dsn, p)
	} else {
		s.table = newSQLTable(t, on, address, s.dsn, p)
	}
	for _, command := range []string{"init", "check"} {
		if r := daemon.Run(t, binary, command, "-c", s.config(t, "")); r.Code != 0 {
			t.Fatalf("postrider %s: exit code %d\n%s%s", command, r.Code, r.Stdout, r.Stderr)
		}
	}
	return s
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
