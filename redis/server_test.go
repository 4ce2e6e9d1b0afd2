package redis

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sinktest"
)

// kinds are the servers that tests run against.
var kinds = []string{"redis", "valkey"}

// shared returns host:port of the real server of a kind that the tests share.
func shared(t testing.TB, kind string) string {
	t.Helper()
	variable := "POSTRIDER_TEST_" + strings.ToUpper(kind)
	address := os.Getenv(variable)
	if address == "" {
		t.Fatalf("%s is not set: `scripts/services up %s` starts a server, `scripts/services env` prints its address", variable, kind)
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	return options.Addr
}

// server is one that a test owns.
type server struct {
	kind, dir   string
	port        int
	environment []string
	pid         int // 0 while it does not run
}

// launch starts a server of its own for the test; environment are its variations, as NAME=VALUE.
func launch(t *testing.T, kind string, environment ...string) *server {
	t.Helper()
	s := &server{kind: kind, dir: folder(t, kind), port: freePort(t), environment: environment}
	s.begin(t)
	return s
}

// begin starts it for the first time. It ends with the test.
func (s *server) begin(t *testing.T) {
	t.Helper()
	s.start(t)
	t.Cleanup(func() {
		if s.pid != 0 {
			s.signal(t, syscall.SIGCONT)
			services(t, nil, "stop", s.kind, s.dir)
		}
	})
}

// folder is one that the server can have its data in.
func folder(t *testing.T, kind string) string {
	t.Helper()
	home := strings.TrimSpace(services(t, nil, "home", kind))
	if home == "" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(home, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// freePort returns the first of two ports that nobody listens on, below those of outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	for {
		port := int(lastPort.Add(2))
		if port > 32000 {
			t.Fatal("found no free ports")
		}
		if isFree(port) && isFree(port+1) {
			return port
		}
	}
}

var lastPort atomic.Int64 // that a test of this process has taken

func init() { lastPort.Store(int64(26000 + os.Getpid()%2000)) }

func isFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func services(t *testing.T, environment []string, arguments ...string) string {
	t.Helper()
	command := exec.Command(filepath.Join("..", "scripts", "services"), arguments...)
	command.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("services %s: %v\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return string(output)
}

// start starts it again on its data and waits until it serves.
func (s *server) start(t *testing.T) {
	t.Helper()
	lines := strings.Fields(services(t, s.environment, "launch", s.kind, s.dir, strconv.Itoa(s.port)))
	var err error
	if s.pid, err = strconv.Atoi(lines[len(lines)-1]); err != nil {
		t.Fatalf("launch %s printed no pid: %q", s.kind, lines)
	}
}

// kill is what a crash does.
func (s *server) kill(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGKILL)
	await(t, "the server ends", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
		return err != nil || bytes.Contains(stat, []byte(") Z"))
	})
	s.pid = 0
}

func (s *server) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.pid, signal); err != nil {
		t.Fatalf("%s to %s (pid %d): %v", signal, s.kind, s.pid, err)
	}
}

func (s *server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// await waits until the condition holds.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for end := time.Now().Add(time.Minute); !condition(); <-pause.C {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// client returns an independent connection.
func client(t testing.TB, address string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, ReadTimeout: 30 * time.Second})
	t.Cleanup(func() { c.Close() })
	return c
}

// do sends one command, as words.
func do(t testing.TB, c redis.UniversalClient, command ...any) any {
	t.Helper()
	answer, err := c.Do(testContext(t), command...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("%v: %v", command, err)
	}
	return answer
}

// newStream returns a key that nobody else uses.
func newStream(t testing.TB, c redis.UniversalClient) string {
	t.Helper()
	name := "test-" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		if err := c.Del(context.Background(), name).Err(); err != nil {
			t.Logf("deleting stream %s: %v", name, err)
		}
	})
	return name
}

func open(t testing.TB, c Config) *Sink {
	t.Helper()
	sink, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return sink
}

// readAll returns everything that is in the stream.
func readAll(t testing.TB, c redis.UniversalClient, stream string) []sinktest.Stored {
	t.Helper()
	entries, err := c.Do(testContext(t), "XRANGE", stream, "-", "+").Slice()
	if err != nil {
		t.Fatalf("reading the stream: %v", err)
	}
	var all []sinktest.Stored
	for _, entry := range entries {
		parts := entry.([]any)
		s := sinktest.Stored{Coordinates: "redis:" + stream + "@" + parts[0].(string)}
		values := parts[1].([]any)
		for i := 0; i < len(values); i += 2 {
			name, value := values[i].(string), values[i+1].(string)
			switch header, found := strings.CutPrefix(name, "h:"); {
			case found:
				s.Headers = append(s.Headers, relay.Header{Name: header, Value: value})
			case name == "key":
				s.Key = value
			case name == "payload":
				s.Payload = []byte(value)
			}
		}
		all = append(all, s)
	}
	return all
}

func publishOne(t testing.TB, s *Sink, m relay.Message) relay.Outcome {
	t.Helper()
	return s.Publish(testContext(t), []relay.Message{m})[0]
}

// wantOutcome wants a class and a reason that has all of these words in it.
func wantOutcome(t testing.TB, o relay.Outcome, class relay.Class, words ...string) {
	t.Helper()
	if o.Class != class {
		t.Errorf("outcome %s (%v), want %s", o.Class, o.Err, class)
		return
	}
	for _, word := range words {
		if !strings.Contains(fmt.Sprint(o.Err), word) {
			t.Errorf("reason %q does not mention %q", o.Err, word)
		}
	}
}

func wantFinding(t testing.TB, findings []operator.Finding, level operator.Level, words string) {
	t.Helper()
	for _, f := range findings {
		if f.Level == level && strings.Contains(f.Subject+": "+f.Message, words) {
			return
		}
	}
	t.Errorf("Check found %+v, want %s: %s", findings, level, words)
}
