// Package daemon runs the postrider command as processes of their own.
package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/relay"
)

// Main is what TestMain calls: it builds the command of each Go package into a file whose name it puts at the pointer, runs the
// tests, and ends the process.
func Main(m *testing.M, packages map[*string]string) {
	code, err := buildAndRun(m, packages)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M, packages map[*string]string) (code int, err error) {
	dir, err := os.MkdirTemp("", "commands")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	for file, path := range packages {
		*file = filepath.Join(dir, filepath.Base(path))
		output, err := exec.Command("go", "build", "-o", *file, path).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("build %s: %w\n%s", path, err, output)
		}
	}
	return m.Run(), nil
}

// Result is what a command printed and its exit code.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Run runs a command to its end, which must come within a minute.
func Run(t *testing.T, binary string, arguments ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, binary, arguments...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%s %s: %v, %v\n%s", binary, strings.Join(arguments, " "), err, ctx.Err(), stderr.String())
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: command.ProcessState.ExitCode()}
}

// Process is a running postrider run.
type Process struct {
	command *exec.Cmd
	admin   string
	output  output
	ended   chan struct{}
}

// Start starts postrider run. admin is the host:port at which its configuration lets it listen. It is killed after the
// test if it still runs; what it logged is shown when the test fails.
func Start(t *testing.T, binary, config, admin string) *Process {
	t.Helper()
	p := &Process{command: exec.Command(binary, "run", "-c", config), admin: admin, ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // Wait of Process tells the exit code
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // fails when it has ended
		<-p.ended
		if t.Failed() {
			t.Logf("output of postrider run with pid %d:\n%s", p.command.Process.Pid, p.output.tail())
		}
	})
	return p
}

// Signal sends a signal to the process.
func (p *Process) Signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatalf("%s to postrider run: %v", signal, err)
	}
}

// Wait waits until the process has ended and returns its exit code, -1 when a signal ended it.
func (p *Process) Wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	await.True(t, limit, "postrider run ends", func() bool { return !p.Running() })
	return p.command.ProcessState.ExitCode()
}

// Running tells whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Output returns what the process has printed and logged so far.
func (p *Process) Output() string { return p.output.String() }

// Health returns what /readyz says; ok is false when it does not answer.
func (p *Process) Health() (health relay.Health, status int, ok bool) {
	response, err := client.Get("http://" + p.admin + "/readyz")
	if err != nil {
		return relay.Health{}, 0, false
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&health)
	return health, response.StatusCode, err == nil
}

// Post sends an empty request to the admin server and returns the status of the answer.
func (p *Process) Post(t *testing.T, path string) (status int) {
	t.Helper()
	response, err := client.Post("http://"+p.admin+path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// Metric returns the sum of all series of a metric whose labels contain each of the texts, such as `sink="main"`. It
// fails the test when there is no such series.
func (p *Process) Metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	response, err := client.Get("http://" + p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	sum, found := 0.0, false
	for line := range strings.Lines(body.String()) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if base, _, _ := strings.Cut(series, "{"); base != name || !containsAll(series, labels) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("metric %s: %v", series, err)
		}
		sum, found = sum+number, true
	}
	if !found {
		t.Fatalf("there is no metric %s with %v", name, labels)
	}
	return sum
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

var client = &http.Client{Timeout: 5 * time.Second}

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) tail() string {
	const shown = 20_000
	text := o.String()
	return text[max(0, len(text)-shown):]
}
