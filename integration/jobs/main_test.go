// Package jobs_test lets jobs redrive dead letters while the processes that carry them out are killed. The relays and
// the commands are processes of their own, databases and broker are real.
package jobs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/postrider/postrider/integration/internal/daemon"
)

var binary string // the postrider command

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "jobs")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "postrider")
	if err := daemon.Build(binary, "../../cmd/postrider"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
