package mainjob_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/integration/internal/ledger"
)

const (
	wallets = 1000
	plain   = "../../examples/wallet/plain/"
)

// producers are processes that add events of the same wallets at the same time.
type producers []*producer

type producer struct {
	command *exec.Cmd
	ledger  string
	output  bytes.Buffer
	ended   chan error
}

// produce starts the Go producer with the library, which commits n events; plainly adds that many with psql and
// with JavaScript each.
func (s *stage) produce(t *testing.T, n, plainly int, options ...string) producers {
	t.Helper()
	modules := fetch(t)
	s.load(t, "-events", "0", "-wallets", "1").wait(t) // makes the tables, which producers of plain SQL expect
	documents := filepath.Join(modules, "@octokit/webhooks-examples/api.github.com/index.json")
	options = append(options, "-events", fmt.Sprint(n), "-wallets", fmt.Sprint(wallets), "-documents", documents)
	all := s.load(t, options...)
	if plainly == 0 {
		return all
	}
	node := exec.Command("node", plain+"producer.cjs", fmt.Sprint(plainly))
	node.Env = append(os.Environ(), "NODE_PATH="+modules)
	return append(all,
		s.startProducer(t, exec.Command(plain+"producer.sh", fmt.Sprint(plainly))),
		s.startProducer(t, node),
	)
}

// load starts the Go producer alone.
func (s *stage) load(t *testing.T, options ...string) producers {
	t.Helper()
	return producers{s.startProducer(t, exec.Command(load, append(options, "-ledger")...))}
}

// startProducer starts a command whose last argument is to be the name of its ledger.
func (s *stage) startProducer(t *testing.T, command *exec.Cmd) *producer {
	t.Helper()
	p := &producer{command: command, ledger: filepath.Join(t.TempDir(), "ledger"), ended: make(chan error, 1)}
	command.Args = append(command.Args, p.ledger)
	if command.Env == nil {
		command.Env = os.Environ()
	}
	command.Env = append(command.Env, "DATABASE_URL="+s.dsn, fmt.Sprintf("WALLETS=%d", wallets))
	command.Stdout, command.Stderr = &p.output, &p.output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		p.ended <- command.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // fails when it has ended
		<-done
	})
	return p
}

// wait waits until all have ended well and returns what they wrote down.
func (all producers) wait(t *testing.T) []ledger.Event {
	t.Helper()
	var ledgers []string
	for _, p := range all {
		select {
		case err := <-p.ended:
			if err != nil {
				t.Fatalf("%s: %v\n%s", p.command, err, p.output.String())
			}
		case <-time.After(drainLimit):
			t.Fatalf("%s has not ended within %v", p.command, drainLimit)
		}
		ledgers = append(ledgers, p.ledger)
	}
	events, err := ledger.Read(ledgers...)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// fetch returns the folder of the npm packages that examples/wallet uses.
func fetch(t *testing.T) string {
	t.Helper()
	command := exec.Command(plain + "fetch.sh")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, stderr.String())
	}
	return strings.TrimSpace(string(output))
}

// keys counts the keys of committed events.
func keys(events []ledger.Event) int {
	seen := make(map[string]bool)
	for _, e := range events {
		if e.Committed {
			seen[e.Key] = true
		}
	}
	return len(seen)
}
