package cli

import (
	"bytes"
	"testing"

	"github.com/postrider/postrider/cmd/postrider/internal/demo"
)

func TestLedgerDecidesTheExitCode(t *testing.T) {
	for ledger, want := range map[demo.Ledger]int{
		{Committed: 2, Published: 2, Applied: 2, DuplicatesPublished: 1}: exitDone,
		{Committed: 2, Published: 1, Applied: 1, Missing: 1}:             exitFailed,
		{Committed: 2, Published: 3, Applied: 3, Ghosts: 1}:              exitFailed,
		{Committed: 2, Published: 2, Applied: 2, OutOfOrder: 1}:          exitFailed,
		{Committed: 2, Published: 2, Applied: 2, DuplicatesApplied: 1}:   exitFailed,
	} {
		var out bytes.Buffer
		c := &command{stdout: &out, stderr: &out, started: true}
		if got := c.exitCode(c.printLedger(ledger)); got != want || out.Len() == 0 {
			t.Errorf("%+v: exit code %d, want %d; printed %q", ledger, got, want, out.String())
		}
	}
}
