package mainjob_test

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
)

const secret = "s3cret-w0rd"

// refused runs postrider run, which must end with that code and tell each of the words, and nobody's password.
func refused(t *testing.T, code int, config string, words ...string) {
	t.Helper()
	tells(t, code, daemon.Run(t, binary, "run", "-c", config), words...)
}

func tells(t *testing.T, code int, r daemon.Result, words ...string) {
	t.Helper()
	said := r.Stdout + r.Stderr
	if r.Code != code {
		t.Errorf("exit code %d, want %d", r.Code, code)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("the error does not contain %q", word)
		}
	}
	if strings.Contains(said, secret) {
		t.Error("the error shows a password")
	}
	if t.Failed() {
		t.Logf("it said:\n%s", said)
	}
}

// as returns the stage as another user of the database sees it.
func (s *stage) as(t *testing.T, user, password string) *stage {
	t.Helper()
	other := *s
	other.dsn = withPart(t, s.dsn, func(u *url.URL) { u.User = url.UserPassword(user, password) })
	return &other
}

// newUser creates a user of the database server that is dropped with the test.
func (s *stage) newUser(t *testing.T) (name string) {
	t.Helper()
	name = "u" + strings.ToLower(rand.Text())
	s.execute(t, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, secret))
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := s.db.Exec(statement + name); err != nil {
				t.Error(err)
			}
		}
	})
	return name
}

func TestWrongDSNIsAConfigurationError(t *testing.T) {
	for dsn, word := range map[string]string{
		"oracle://app:" + secret + "@127.0.0.1/db":               "no address of a database",
		"postgres://app:" + secret + "@127.0.0.1:notaport/db":    "port",
		"postgres://app:" + secret + "@127.0.0.1/db?sslmode=yes": "sslmode",
	} {
		config := writeConfig(t, fmt.Sprintf("outbox: {dsn: %q}\nsinks: {main: {type: stdout}}\nroutes: [{sink: main}]\n", dsn))
		refused(t, 2, config, "dsn", word)
	}
}

func TestUnreachableDatabaseIsToldByEveryCommand(t *testing.T) {
	s := newStage(t)
	s.dsn = withPart(t, s.dsn, func(u *url.URL) {
		u.Host = fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t))
		u.User = url.UserPassword("postgres", secret)
	})
	tells(t, 1, s.command(t, 1, "status"), "refused")
	tells(t, 1, s.command(t, 1, "check"), "refused")

	relay := s.start(t, "waiting")
	awaitNotReady(t, relay, "refused")
	relay.Signal(t, syscall.SIGTERM)
	if code := relay.Wait(t, soon); code != 0 {
		t.Errorf("exit code %d after SIGTERM while waiting for the database, want 0", code)
	}
	if strings.Contains(relay.Output(), secret) {
		t.Error("the log shows a password")
	}
}

func TestCredentialsThatPostgresRefusesAreTold(t *testing.T) {
	s := newStage(t)
	wrong := s.as(t, s.newUser(t), secret+"-old")
	tells(t, 1, wrong.command(t, 1, "status"), "password authentication failed")
	tells(t, 1, wrong.command(t, 1, "check"), "password authentication failed")
}

func TestMissingPrivilegesAreToldWithTheirRemedy(t *testing.T) {
	s := newStage(t)
	user := s.newUser(t)
	s.execute(t, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+user)
	poor := s.as(t, user, secret)
	tells(t, 1, poor.command(t, 1, "check"), "outbox_events", "UPDATE")
	refused(t, 1, poor.config(t, "poor", ""), "no privilege", "outbox_relays")

	for _, grant := range grants(poor.command(t, 1, "check").Stdout) {
		s.execute(t, strings.ReplaceAll(grant, "the user in outbox.dsn", user))
	}
	poor.command(t, 0, "check")
	poor.startReady(t, "poor")
	var b batch
	b.event("w-1", payload(1))
	s.check(t, b.commit(t, s))
}

// grants returns the statements that check tells to run.
func grants(said string) []string {
	return regexp.MustCompile(`GRANT [^)\n]*`).FindAllString(said, -1)
}

func TestMissingTableIsToldWithTheRemedy(t *testing.T) {
	s := newStage(t)
	s.execute(t, "DROP TABLE outbox_events")
	tells(t, 1, s.command(t, 1, "check"), "outbox_events")
	refused(t, 1, s.config(t, "one", ""), "outbox_events")

	empty := *s
	empty.dsn, empty.db = newDatabase(t, servers.Address(t, "POSTRIDER_TEST_POSTGRES"))
	tells(t, 1, empty.command(t, 1, "check"), "postrider init")
	tells(t, 1, empty.command(t, 1, "status"), "postrider init")
	refused(t, 1, empty.config(t, "one", ""), "postrider init")
}

func TestMissingColumnIsTold(t *testing.T) {
	s := newStage(t)
	s.execute(t, "ALTER TABLE outbox_events DROP COLUMN published_to")
	tells(t, 1, s.command(t, 1, "check"), "published_to")
	refused(t, 1, s.config(t, "one", ""), "published_to")
}

func TestTablesOfANewerVersionAreRefused(t *testing.T) {
	s := newStage(t)
	s.execute(t, "INSERT INTO outbox_schema (version, outbox_table, shards, payload) SELECT version + 1, outbox_table, shards, payload FROM outbox_schema ORDER BY version DESC LIMIT 1")
	tells(t, 1, s.command(t, 1, "check"), "newer")
	tells(t, 1, s.command(t, 1, "init"), "newer")
	refused(t, 1, s.config(t, "one", ""), "newer")
}

func TestRelaysOfOneNameWithDifferentShardsAreRefused(t *testing.T) {
	s := newStage(t)
	first := s.startReady(t, "one")[0]
	s.relay["shards"] = "32"
	refused(t, 1, s.config(t, "two", ""), "64", "32", "shards")
	if h, _, ok := first.Health(); !ok || !h.Ready || h.Shards != 64 {
		t.Errorf("the first relay suffers: %+v", h)
	}
}

func TestRelaysOfTwoNamesOnOneTableAreRefused(t *testing.T) {
	s := newStage(t)
	first := s.startReady(t, "one")[0]
	s.relay["name"] = "other"
	refused(t, 1, s.config(t, "two", ""), "wallets", "other", "again")
	if h, _, ok := first.Health(); !ok || !h.Ready || h.Shards != 64 {
		t.Errorf("the first relay suffers: %+v", h)
	}
}

func TestUnknownConfigurationKeysAreToldTogether(t *testing.T) {
	config := writeConfig(t, strings.Join([]string{
		"outbox: {dsn: sqlite:outbox.db, tabel: outbox_events}",
		"relay:",
		"  lease: 30",
		"  pol: {min: 5ms}",
		"sinks: {main: {type: stdout, colour: red}}",
		"routes: [{sink: main}]",
		"admins: {}",
		"",
	}, "\n"))
	refused(t, 2, config, "tabel", "table", "postrider.yaml:3", "lease", "postrider.yaml:4", "pol", "colour", "admins")
}

func TestTopicThatDoesNotExistIsTold(t *testing.T) {
	s := newStage(t)
	s.topic = "t" + strings.ToLower(rand.Text())
	s.relay["retry"] = "{schedule: [100ms]}"
	tells(t, 1, s.command(t, 1, "check"), s.topic)
	var b batch
	b.event("w-1", payload(1))
	b.commit(t, s)
	s.startReady(t, "one")
	await.True(t, soon, "the event is DEAD because its topic does not exist", func() bool {
		return s.count("SELECT count(*) FROM outbox_events WHERE status = 'DEAD' AND retry_count = 2 AND last_error LIKE '%topic does not exist%'") == 1
	})
	r := s.command(t, 0, "dead", "list")
	if !strings.Contains(r.Stdout, "topic does not exist") {
		t.Errorf("dead list does not tell the cause:\n%s", r.Stdout)
	}
}

// Promise P7: refused credentials are an outage, and end with a relay that has the right ones.
func TestCredentialsThatKafkaRefusesSpendNoAttempt(t *testing.T) {
	kafka := servers.Launch(t, "kafka", "KAFKA_SASL=plain")
	s := newStage(t)
	s.sink["brokers"] = fmt.Sprintf("[127.0.0.1:%d]", kafka.Port())
	s.sink["sasl"] = fmt.Sprintf("{mechanism: plain, username: postrider, password: %s}", secret)
	tells(t, 1, s.command(t, 1, "check"), "SASL_AUTHENTICATION_FAILED")
	var b batch
	b.event("w-1", payload(1))
	b.commit(t, s)

	relay := s.start(t, "wrong")
	awaitNotReady(t, relay, "SASL_AUTHENTICATION_FAILED")
	if strings.Contains(relay.Output(), secret) {
		t.Error("the log shows a password")
	}
	relay.Signal(t, syscall.SIGTERM)
	if code := relay.Wait(t, soon); code != 0 {
		t.Errorf("exit code %d after SIGTERM while credentials are refused, want 0", code)
	}
	if n := s.inState("PENDING"); n != 1 {
		t.Errorf("%d events are PENDING, want the one", n)
	}
	s.checkNoAttempts(t)
}
