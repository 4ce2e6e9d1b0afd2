// Package servers launches servers that one test owns, so that it can stop and kill them.
package servers

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/await"
)

// Server is a server on a port of loopback, with its data in a folder of its own.
type Server struct {
	name        string
	dir         string
	port        int
	environment []string
	pid         int // 0 while it does not run
}

// Address is that of a server which scripts/services has started, by the name of its variable. Without it the test ends.
func Address(t testing.TB, variable string) string {
	t.Helper()
	address := os.Getenv(variable)
	if address == "" {
		t.Fatalf("%s is not set: scripts/services starts the servers", variable)
	}
	return address
}

// Launch starts a server of scripts/servers by name; environment are its variations, as NAME=VALUE. It ends with the
// test.
func Launch(t testing.TB, name string, environment ...string) *Server {
	t.Helper()
	return LaunchAt(t, FreePort(t), name, environment...)
}

// LaunchAt is Launch at a port that the environment depends on.
func LaunchAt(t testing.TB, port int, name string, environment ...string) *Server {
	t.Helper()
	s := &Server{name: name, dir: folder(t, name), port: port, environment: environment}
	s.Start(t)
	t.Cleanup(func() {
		if s.pid != 0 {
			s.Resume(t)
			s.End(t)
		}
	})
	return s
}

// folder is one that the server can have its data in.
func folder(t testing.TB, name string) string {
	t.Helper()
	home := strings.TrimSpace(services(t, nil, "home", name))
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

// Port is the one at which it serves.
func (s *Server) Port() int { return s.port }

// File returns the path of a file that the server's script made in its folder.
func (s *Server) File(name string) string { return filepath.Join(s.dir, name) }

// Start starts it again on the same data and port, and waits until it serves.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	output := services(t, s.environment, "launch", s.name, s.dir, strconv.Itoa(s.port))
	lines := strings.Fields(output)
	var err error
	if s.pid, err = strconv.Atoi(lines[len(lines)-1]); err != nil {
		t.Fatalf("launch %s printed no pid: %q", s.name, output)
	}
}

// services runs scripts/services and returns what it prints.
func services(t testing.TB, environment []string, arguments ...string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	command := exec.Command(filepath.Join(filepath.Dir(file), "..", "..", "scripts", "services"), arguments...)
	command.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("services %s: %v\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return string(output)
}

// End ends it in good order, and waits until it has ended.
func (s *Server) End(t testing.TB) {
	t.Helper()
	services(t, nil, "stop", s.name, s.dir)
	s.pid = 0
}

// Stop ends it by a signal and waits until it has ended. SIGKILL is what a crash does; which signal ends a server in good
// order is in scripts/servers.
func (s *Server) Stop(t testing.TB, signal syscall.Signal) {
	t.Helper()
	s.signal(t, signal)
	await.True(t, time.Minute, fmt.Sprintf("%s (pid %d) ends", s.name, s.pid), func() bool { return !runs(s.pid) })
	s.pid = 0
}

// Hang lets it keep its connections without answering, until Resume.
func (s *Server) Hang(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Resume ends Hang.
func (s *Server) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

// Reload lets it read its configuration again, if its kind does so on SIGHUP. It does not wait for that.
func (s *Server) Reload(t testing.TB) { s.signal(t, syscall.SIGHUP) }

func (s *Server) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.pid, signal); err != nil {
		t.Fatalf("%s to %s (pid %d): %v", signal, s.name, s.pid, err)
	}
}

// runs tells whether a process is there and no zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat, []byte(") ")) // the name before it may hold blanks
	return len(state) > 0 && state[0] != 'Z'
}

// FreePort returns the first of three ports of loopback that nobody listens on: Kafka and RabbitMQ take the next two as well. No
// other call in this process returns it, so that tests side by side do not get the same one before its server listens. It lies
// below those that the system gives to outgoing connections, so that it stays free while a server is down.
func FreePort(t testing.TB) int {
	t.Helper()
	for range triples {
		port := firstPort + 3*int(nextTriple.Add(1)%triples)
		if isFree("127.0.0.1", port) && isFree("127.0.0.1", port+1) && isFree("127.0.0.1", port+2) && isFree("127.0.0.2", port+1) && isFree("127.0.0.3", port+2) {
			return port
		}
	}
	t.Fatal("found no three free ports in a row")
	return 0
}

const (
	firstPort = 26000
	triples   = 2000
)

// nextTriple begins at random: tests of other packages run at the same time.
var nextTriple = func() *atomic.Int64 {
	var n atomic.Int64
	n.Store(rand.Int64N(triples))
	return &n
}()

func isFree(host string, port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
