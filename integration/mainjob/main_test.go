// Package mainjob tests what Postrider is for: events that were committed to PostgreSQL arrive at Kafka, whatever
// happens on the way. The relays are processes of the real command, the servers are real, and what arrived is read by
// a client of others and compared with the ledgers of the producers.
//
// POSTRIDER_FULL=1 makes the runs as long as the promises are worded: 100,000 events, outages of two minutes.
package mainjob_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/postrider/postrider/integration/internal/daemon"
)

var (
	binary string // the postrider command
	load   string // the load generator of examples/wallet
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "mainjob")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary, load = filepath.Join(dir, "postrider"), filepath.Join(dir, "load")
	if err := daemon.Build(binary, "../../cmd/postrider"); err != nil {
		return 0, err
	}
	if err := daemon.Build(load, "../../examples/wallet/load"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// full returns the first value in a full run and the second otherwise.
func full[T int | time.Duration](inFull, otherwise T) T {
	if os.Getenv("POSTRIDER_FULL") == "1" {
		return inFull
	}
	return otherwise
}

func server(t *testing.T, variable string) string {
	t.Helper()
	address := os.Getenv(variable)
	if address == "" {
		t.Fatalf("%s is not set: scripts/services starts the servers", variable)
	}
	return address
}
